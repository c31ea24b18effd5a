//! Parses an AdAttributionKit postback: an unsigned envelope around a JWS signed by Apple.

use crate::skan::postback::fields::{self, PostbackFields, PostbackReader, Scalar};
use crate::skan::postback::keys::Keys;
use crate::skan::postback::{
    ConversionType, Interaction, ParsedPostback, Postback, Protocol, verify,
};
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::jws::Jws;

/// Envelope field with the signed JWS.
pub const JWS_FIELD: &str = "jws-string";
/// Path of the JWS header in faults, used when it is not valid JSON.
pub const JWS_HEADER: &str = "jws-string.header";
/// Path of the JWS payload in faults.
pub const JWS_PAYLOAD: &str = "jws-string.payload";

/// Parses a postback and verifies its signature. `header` and `payload` are the JSON objects inside
/// `jws`. Returns faults only for postbacks that no Apple device sends.
pub fn parse_adattributionkit(
    envelope: &PostbackFields,
    jws: &Jws,
    header: &PostbackFields,
    payload: &PostbackFields,
    keys: &Keys,
) -> Result<ParsedPostback, Faults> {
    let mut faults = Faults::new();
    let unsigned = read_envelope(envelope, &mut faults);
    let head = read_header(header, &mut faults);
    let body = read_payload(payload, &mut faults);
    let (Some((key_id, algorithm)), Some(body), true) = (head, body, faults.is_empty()) else {
        return Err(faults);
    };
    let signature = verify::adattributionkit(
        &key_id,
        &algorithm,
        &jws.signing_input,
        &jws.signature,
        keys,
    );
    let postback = Postback {
        fine_value: unsigned.fine_value,
        coarse_value: unsigned.coarse_value,
        interaction: unsigned.interaction,
        country_code: unsigned.country_code,
        key_id: Some(key_id),
        ..body
    };
    Ok(ParsedPostback {
        postback,
        signature,
    })
}

/// Fields outside the JWS.
struct UnsignedFields {
    fine_value: Option<u8>,
    coarse_value: Option<crate::skan::document::CoarseValue>,
    interaction: Option<Interaction>,
    country_code: Option<String>,
}

fn read_envelope(input: &PostbackFields, faults: &mut Faults) -> UnsignedFields {
    let mut reader = PostbackReader::new(input, "");
    let unsigned = UnsignedFields {
        fine_value: reader.optional("conversion-value", fields::fine_value),
        coarse_value: reader.optional("coarse-conversion-value", fields::coarse_value),
        interaction: reader.optional("ad-interaction-type", interaction),
        country_code: reader.optional("country-code", fields::country_code),
    };
    reader.reject_both("coarse-conversion-value", "conversion-value");
    collect_faults(reader, faults);
    unsigned
}

fn read_header(input: &PostbackFields, faults: &mut Faults) -> Option<(String, String)> {
    let mut reader = PostbackReader::new(input, "jws-string.header.");
    let key_id = reader.required("kid", fields::text);
    let algorithm = reader.required("alg", fields::text);
    collect_faults(reader, faults);
    key_id.zip(algorithm)
}

/// Parses the signed part, without the fields in the envelope.
fn read_payload(input: &PostbackFields, faults: &mut Faults) -> Option<Postback> {
    let mut reader = PostbackReader::new(input, "jws-string.payload.");
    let transaction_id = reader.required("postback-identifier", fields::text);
    let ad_network_id = reader.required("ad-network-identifier", fields::text);
    let app_store_id = reader.required("advertised-item-identifier", fields::store_id);
    let source_identifier = reader.required("source-identifier", fields::source_identifier);
    let conversion_type = reader.required("conversion-type", conversion_type);
    let did_win = reader.required("did-win", fields::boolean);
    let sequence_index = reader.required("postback-sequence-index", fields::sequence_index);
    let source_app_id = reader.optional("publisher-item-identifier", fields::store_id);
    let marketplace_id = reader.optional("marketplace-identifier", fields::text);
    // The value is not used, but it must be text.
    reader.optional("impression-type", fields::text);
    collect_faults(reader, faults);
    Some(Postback {
        protocol: Protocol::AdAttributionKit,
        version: None,
        ad_network_id: ad_network_id?,
        transaction_id: transaction_id?,
        app_store_id: app_store_id?,
        source_identifier: Some(source_identifier?),
        campaign_id: None,
        fine_value: None,
        coarse_value: None,
        sequence_index: sequence_index?,
        did_win: did_win?,
        redownload: None,
        conversion_type: conversion_type?,
        interaction: None,
        source_app_id,
        source_domain: None,
        country_code: None,
        marketplace_id,
        key_id: None,
    })
}

fn collect_faults(reader: PostbackReader<'_>, faults: &mut Faults) {
    for fault in &reader.faults {
        let problem = Problem::new(fault.code, fault.message.clone());
        faults.add(fault.field.clone(), problem);
    }
}

fn interaction(value: &Scalar) -> Result<Interaction, Problem> {
    let word = fields::text(value)?;
    let unknown = || Problem::new(FaultCode::UnknownValue, "Must be one of click, view.");
    Interaction::parse(&word).ok_or_else(unknown)
}

fn conversion_type(value: &Scalar) -> Result<ConversionType, Problem> {
    let word = fields::text(value)?;
    let message = "Must be one of download, redownload, re-engagement.";
    let unknown = || Problem::new(FaultCode::UnknownValue, message);
    ConversionType::parse(&word).ok_or_else(unknown)
}

#[cfg(test)]
mod tests;
