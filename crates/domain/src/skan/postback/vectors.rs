//! The postbacks that others have published, genuine and not.

use std::io::Write as _;
use std::path::Path;

use serde_json::Value as Json;

use crate::skan::document::CoarseValue;
use crate::skan::postback::signing::fields;
use crate::skan::postback::{
    JWS_FIELD, Keys, ParsedPostback, PostbackFields, Scalar, Signature, parse_adattributionkit,
    parse_skadnetwork, signed_message,
};
use crate::vocabulary::jws::Jws;

/// How many there are; fewer, and some have been lost.
const VECTORS_MIN: usize = 8;

/// A file that belongs to others and is not part of the repository. Where it is missing, that is said
/// past the test harness, which would keep it to itself.
fn sample(name: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/skan");
    if !folder.is_dir() {
        let message = "NOT TESTED: the published postbacks are missing at";
        writeln!(std::io::stderr(), "\n{message} {}\n", folder.display()).unwrap();
        return None;
    }
    Some(std::fs::read_to_string(folder.join(name)).unwrap())
}

/// Every file with what is expected of it.
fn vectors() -> Vec<(String, PostbackFields, Json)> {
    let Some(expected) = sample("expected.json") else {
        return Vec::new();
    };
    let expected: Json = serde_json::from_str(&expected).unwrap();
    let files = expected.as_object().unwrap().iter();
    let vectors: Vec<_> = files
        .map(|(name, expected)| {
            let text = sample(name).unwrap();
            (name.clone(), fields(&text), expected.clone())
        })
        .collect();
    assert!(vectors.len() >= VECTORS_MIN, "only {}", vectors.len());
    vectors
}

fn is_skadnetwork(expected: &Json) -> bool {
    expected["protocol"] == "skadnetwork"
}

fn received(given: &PostbackFields, expected: &Json) -> ParsedPostback {
    if is_skadnetwork(expected) {
        return parse_skadnetwork(given, &Keys::apple()).unwrap();
    }
    let jws = Jws::split(given.text(JWS_FIELD).unwrap()).unwrap();
    let inner = |bytes: &[u8]| fields(std::str::from_utf8(bytes).unwrap());
    let (header, payload) = (inner(&jws.header), inner(&jws.payload));
    parse_adattributionkit(given, &jws, &header, &payload, &Keys::apple()).unwrap()
}

#[test]
fn every_published_postback_is_worth_what_is_expected() {
    for (name, given, expected) in vectors() {
        let ParsedPostback {
            postback,
            signature,
        } = received(&given, &expected);
        let found = serde_json::json!({
            "protocol": postback.protocol.as_str(),
            "state": signature.as_str(),
            "dedupId": postback.transaction_id,
            "appId": postback.app_store_id,
            "conversionType": postback.conversion_type.as_str(),
            "didWin": postback.did_win,
            "sequenceIndex": postback.sequence_index,
            "fine": postback.fine_value,
            "coarse": postback.coarse_value.map(CoarseValue::as_str),
        });
        for (field, found) in found.as_object().unwrap() {
            assert_eq!(*found, expected[field], "{field} of {name}");
        }
        let text = |field: &str| expected[field].as_str().map(str::to_owned);
        assert_eq!(postback.version, text("version"), "{name}");
        assert_eq!(postback.key_id, text("kid"), "{name}");
        let message = signed_message(&postback).map(|message| hex(message.as_bytes()));
        assert_eq!(message, text("signedMessageHex"), "{name}");
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Another value that the field could have.
fn another(field: &str, value: &Scalar) -> Scalar {
    match value {
        Scalar::Boolean(truth) => Scalar::Boolean(!truth),
        Scalar::Integer(1) if field == "fidelity-type" => Scalar::Integer(0),
        Scalar::Integer(number) => Scalar::Integer(number + 1),
        Scalar::Text(text) if field == "version" && text == "2.0" => Scalar::from("2.1"),
        Scalar::Text(text) if field == "version" && text == "2.1" => Scalar::from("2.0"),
        // Neither misses a field for it.
        Scalar::Text(text) if field == "version" && text == "3.0" => Scalar::from("2.2"),
        Scalar::Text(_) if field == "version" => Scalar::from("2.1"),
        Scalar::Text(text) if field == "source-identifier" => Scalar::from(&text[1..]),
        Scalar::Text(text) => Scalar::Text(format!("{text}x")),
        Scalar::Null | Scalar::Other => unreachable!("no signed field is this"),
    }
}

#[test]
fn a_genuine_postback_fails_with_any_signed_field_changed() {
    let mut changed = 0;
    for (name, given, expected) in vectors() {
        if expected["state"] != "valid" {
            continue;
        }
        for field in expected["signedFields"].as_array().unwrap() {
            let field = field.as_str().unwrap();
            let mut given = given.clone();
            let value = another(field, given.get(field).unwrap());
            given.set(field, value);
            // From 4.0 there is no version to go back to without a campaign.
            if field == "version" && expected["version"] == "4.0" {
                given.set("campaign-id", 42);
            }
            let signature = parse_skadnetwork(&given, &Keys::apple()).unwrap().signature;
            assert_eq!(signature, Signature::Invalid, "{field} of {name}");
            changed += 1;
        }
    }
    assert!(changed == 0 || changed > 40, "only {changed}");
}

#[test]
fn a_genuine_postback_fails_without_its_source() {
    for (name, given, expected) in vectors() {
        for field in ["source-app-id", "source-domain"] {
            if expected["state"] == "valid" && given.get(field).is_some() {
                let mut given = given.clone();
                given.remove(field);
                let signature = parse_skadnetwork(&given, &Keys::apple()).unwrap().signature;
                assert_eq!(signature, Signature::Invalid, "{field} of {name}");
            }
        }
    }
}

#[test]
fn what_is_not_signed_changes_nothing() {
    for (name, given, expected) in vectors() {
        let state = expected["state"].as_str().unwrap();
        let still = |given: &PostbackFields, what: &str| {
            let signature = received(given, &expected).signature;
            assert_eq!(signature.as_str(), state, "{what} of {name}");
        };
        let mut given = given;
        given.set("conversion-value", 1);
        still(&given, "conversion-value");
        given.remove("conversion-value");
        still(&given, "no conversion-value");
        given.set("coarse-conversion-value", "low");
        still(&given, "coarse-conversion-value");
        given.set("country-code", "de");
        given.set("timestamp", "12342352346");
        given.set("a-key-of-a-relay", Scalar::Other);
        still(&given, "unknown keys");
    }
}

#[test]
fn without_a_key_nothing_is_verified() {
    for (name, given, expected) in vectors() {
        if is_skadnetwork(&expected) {
            let received = parse_skadnetwork(&given, &Keys::default()).unwrap();
            assert_eq!(received.signature, Signature::Unverifiable, "{name}");
        }
    }
}
