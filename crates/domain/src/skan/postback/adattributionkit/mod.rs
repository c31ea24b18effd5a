//! Reading an AdAttributionKit postback: an envelope that nobody signed around a JWS that Apple did.

use crate::skan::postback::fields::{self, PostbackFields, PostbackReader, Scalar};
use crate::skan::postback::keys::Keys;
use crate::skan::postback::{
    ConversionType, Interaction, ParsedPostback, Postback, Protocol, verify,
};
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::jws::Jws;

/// The field of the envelope with the signed part.
pub const JWS_FIELD: &str = "jws-string";
/// How faults name the header inside the JWS, for who cannot read it as JSON.
pub const JWS_HEADER: &str = "jws-string.header";
/// The same for the payload.
pub const JWS_PAYLOAD: &str = "jws-string.payload";

/// Reads a postback and checks its signature. `header` and `payload` are the JSON objects inside
/// `jws`. The faults are those that no device makes.
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

/// What stands outside the JWS.
struct Unsigned {
    fine_value: Option<u8>,
    coarse_value: Option<crate::skan::document::CoarseValue>,
    interaction: Option<Interaction>,
    country_code: Option<String>,
}

fn read_envelope(given: &PostbackFields, faults: &mut Faults) -> Unsigned {
    let mut reader = PostbackReader::new(given, "");
    let unsigned = Unsigned {
        fine_value: reader.optional("conversion-value", fields::fine_value),
        coarse_value: reader.optional("coarse-conversion-value", fields::coarse_value),
        interaction: reader.optional("ad-interaction-type", interaction),
        country_code: reader.optional("country-code", fields::country_code),
    };
    reader.reject_both("coarse-conversion-value", "conversion-value");
    take(reader, faults);
    unsigned
}

fn read_header(given: &PostbackFields, faults: &mut Faults) -> Option<(String, String)> {
    let mut reader = PostbackReader::new(given, "jws-string.header.");
    let key_id = reader.required("kid", fields::text);
    let algorithm = reader.required("alg", fields::text);
    take(reader, faults);
    key_id.zip(algorithm)
}

/// The signed part, without what the envelope adds.
fn read_payload(given: &PostbackFields, faults: &mut Faults) -> Option<Postback> {
    let mut reader = PostbackReader::new(given, "jws-string.payload.");
    let transaction_id = reader.required("postback-identifier", fields::text);
    let ad_network_id = reader.required("ad-network-identifier", fields::text);
    let app_store_id = reader.required("advertised-item-identifier", fields::store_id);
    let source_identifier = reader.required("source-identifier", fields::source_identifier);
    let conversion_type = reader.required("conversion-type", conversion_type);
    let did_win = reader.required("did-win", fields::boolean);
    let sequence_index = reader.required("postback-sequence-index", fields::sequence_index);
    let source_app_id = reader.optional("publisher-item-identifier", fields::store_id);
    let marketplace_id = reader.optional("marketplace-identifier", fields::text);
    // Nothing depends on it, but it is text.
    reader.optional("impression-type", fields::text);
    take(reader, faults);
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

fn take(reader: PostbackReader<'_>, faults: &mut Faults) {
    for fault in &reader.faults {
        let problem = Problem::new(fault.code, fault.message.clone());
        faults.add(fault.field.clone(), problem);
    }
}

fn interaction(value: &Scalar) -> Result<Interaction, Problem> {
    let word = fields::text(value)?;
    let refused = || Problem::new(FaultCode::UnknownValue, "Must be click or view.");
    Interaction::parse(&word).ok_or_else(refused)
}

fn conversion_type(value: &Scalar) -> Result<ConversionType, Problem> {
    let word = fields::text(value)?;
    let message = "Must be one of download, redownload, re-engagement.";
    let refused = || Problem::new(FaultCode::UnknownValue, message);
    ConversionType::parse(&word).ok_or_else(refused)
}

#[cfg(test)]
mod tests;
