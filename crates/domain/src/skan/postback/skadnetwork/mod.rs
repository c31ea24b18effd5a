//! Parses a SKAdNetwork postback.
//!
//! The version decides which fields are required; type and range of a known field are the same in
//! all versions. A field that the version does not have is checked and then ignored, because it is
//! not signed. For example, a `did-win` in a 2.0 postback cannot be trusted.

use crate::skan::postback::fields::{self, PostbackFields, PostbackReader};
use crate::skan::postback::keys::Keys;
use crate::skan::postback::message::{SignedFields, SkAdNetworkVersion, signed_text};
use crate::skan::postback::{
    ConversionType, Interaction, ParsedPostback, Postback, Protocol, Signature, verify,
};
use crate::vocabulary::fault::Faults;

/// Parses a postback and verifies its signature. Returns faults only for postbacks that no Apple
/// device sends.
pub fn parse_skadnetwork(fields: &PostbackFields, keys: &Keys) -> Result<ParsedPostback, Faults> {
    let mut reader = PostbackReader::new(fields, "");
    let version = reader.optional("version", fields::text);
    if !reader.faults.is_empty() {
        return Err(reader.faults);
    }
    let version = version.unwrap_or_else(|| SkAdNetworkVersion::V1_0.as_str().to_owned());
    match SkAdNetworkVersion::parse(&version) {
        Some(known) => read_known(known, fields, keys),
        None => read_unknown(version, fields),
    }
}

/// Reads a field that is known in all versions and required only in some.
fn required_if<T>(
    reader: &mut PostbackReader<'_>,
    required: bool,
    name: &str,
    rule: fields::FieldRule<T>,
) -> Option<T> {
    if required {
        reader.required(name, rule)
    } else {
        reader.optional(name, rule)
    }
}

fn read_known(
    version: SkAdNetworkVersion,
    input: &PostbackFields,
    keys: &Keys,
) -> Result<ParsedPostback, Faults> {
    use SkAdNetworkVersion::{V1_0, V2_0, V2_2, V3_0, V4_0};
    let since = |first| version >= first;
    let mut reader = PostbackReader::new(input, "");
    let all = &mut reader;
    let ad_network_id = all.required("ad-network-id", fields::text);
    let campaign_id = required_if(all, !since(V4_0), "campaign-id", fields::campaign_id);
    let source_identifier = required_if(
        all,
        since(V4_0),
        "source-identifier",
        fields::source_identifier,
    );
    let app_id = all.required("app-id", fields::store_id);
    let transaction_id = all.required("transaction-id", fields::text);
    let signature = all.required("attribution-signature", fields::any_text);
    let redownload = required_if(all, since(V2_0), "redownload", fields::boolean);
    let source_app_id = all.optional("source-app-id", fields::store_id);
    let source_domain = all.optional("source-domain", fields::text);
    let fidelity = required_if(all, since(V2_2), "fidelity-type", fields::fidelity);
    let did_win = required_if(all, since(V3_0), "did-win", fields::boolean);
    let sequence_index = required_if(
        all,
        since(V4_0),
        "postback-sequence-index",
        fields::sequence_index,
    );
    let fine_value = all.optional("conversion-value", fields::fine_value);
    let coarse_value = all.optional("coarse-conversion-value", fields::coarse_value);
    let country_code = all.optional("country-code", fields::country_code);
    all.reject_both("coarse-conversion-value", "conversion-value");
    if since(V4_0) {
        all.reject_both("source-domain", "source-app-id");
    }
    let (Some(ad_network_id), Some(app_id), Some(transaction_id), Some(signature), true) = (
        ad_network_id,
        app_id,
        transaction_id,
        signature,
        reader.faults.is_empty(),
    ) else {
        return Err(reader.faults);
    };
    let postback = Postback {
        protocol: Protocol::SkAdNetwork,
        version: Some(version.as_str().to_owned()),
        ad_network_id,
        transaction_id,
        app_store_id: app_id,
        source_identifier: source_identifier.filter(|_| since(V4_0)),
        campaign_id: campaign_id.filter(|_| !since(V4_0)),
        fine_value: fine_value.filter(|_| version != V1_0),
        coarse_value: coarse_value.filter(|_| since(V4_0)),
        sequence_index: sequence_index.filter(|_| since(V4_0)).unwrap_or(0),
        did_win: did_win.filter(|_| since(V3_0)).unwrap_or(true),
        redownload,
        conversion_type: conversion_type(redownload),
        interaction: fidelity.filter(|_| since(V2_2)).map(interaction),
        source_app_id: source_app_id.filter(|_| version != V1_0),
        source_domain: source_domain.filter(|_| since(V4_0)),
        country_code: country_code.filter(|_| since(V4_0)),
        marketplace_id: None,
        key_id: None,
    };
    let message = signed_message(&postback).unwrap_or_default();
    let signature = verify::skadnetwork(version, &message, &signature, keys);
    Ok(ParsedPostback {
        postback,
        signature,
    })
}

/// Returns the text that Apple signs; `None` for an unknown version.
pub fn signed_message(postback: &Postback) -> Option<String> {
    let version = postback.version.as_deref();
    let version = version.and_then(SkAdNetworkVersion::parse)?;
    let values = SignedFields {
        ad_network_id: &postback.ad_network_id,
        campaign_id: postback.campaign_id,
        source_identifier: postback.source_identifier.as_deref(),
        app_id: postback.app_store_id,
        transaction_id: &postback.transaction_id,
        redownload: postback.redownload,
        source_app_id: postback.source_app_id,
        source_domain: postback.source_domain.as_deref(),
        fidelity: postback
            .interaction
            .map(|interaction| u8::from(interaction == Interaction::Click)),
        did_win: postback.did_win,
        sequence_index: postback.sequence_index,
    };
    Some(signed_text(version, values))
}

/// Parses a postback of a version that this program does not know. Only the fields that a stored
/// row requires are mandatory. Other fields are used if they can be parsed, so that no genuine
/// postback is rejected.
fn read_unknown(version: String, input: &PostbackFields) -> Result<ParsedPostback, Faults> {
    let mut reader = PostbackReader::new(input, "");
    let ad_network_id = reader.required("ad-network-id", fields::text);
    let app_id = reader.required("app-id", fields::store_id);
    let transaction_id = reader.required("transaction-id", fields::text);
    let (Some(ad_network_id), Some(app_id), Some(transaction_id)) =
        (ad_network_id, app_id, transaction_id)
    else {
        return Err(reader.faults);
    };
    let redownload = read_leniently(input, "redownload", fields::boolean);
    let fine_value = read_leniently(input, "conversion-value", fields::fine_value);
    let coarse_value = read_leniently(input, "coarse-conversion-value", fields::coarse_value);
    let postback = Postback {
        protocol: Protocol::SkAdNetwork,
        version: Some(version),
        ad_network_id,
        transaction_id,
        app_store_id: app_id,
        source_identifier: read_leniently(input, "source-identifier", fields::source_identifier),
        campaign_id: read_leniently(input, "campaign-id", fields::campaign_id),
        fine_value,
        coarse_value: coarse_value.filter(|_| fine_value.is_none()),
        sequence_index: read_leniently(input, "postback-sequence-index", fields::sequence_index)
            .unwrap_or(0),
        did_win: read_leniently(input, "did-win", fields::boolean).unwrap_or(true),
        redownload,
        conversion_type: conversion_type(redownload),
        interaction: read_leniently(input, "fidelity-type", fields::fidelity).map(interaction),
        source_app_id: read_leniently(input, "source-app-id", fields::store_id),
        source_domain: read_leniently(input, "source-domain", fields::text),
        country_code: read_leniently(input, "country-code", fields::country_code),
        marketplace_id: None,
        key_id: None,
    };
    Ok(ParsedPostback {
        postback,
        signature: Signature::Unverifiable,
    })
}

fn read_leniently<T>(input: &PostbackFields, name: &str, rule: fields::FieldRule<T>) -> Option<T> {
    input.get(name).and_then(|value| rule(value).ok())
}

fn conversion_type(redownload: Option<bool>) -> ConversionType {
    if redownload == Some(true) {
        ConversionType::Redownload
    } else {
        ConversionType::Download
    }
}

fn interaction(fidelity: u8) -> Interaction {
    if fidelity == 1 {
        Interaction::Click
    } else {
        Interaction::View
    }
}

#[cfg(test)]
mod tests;
