//! Tests with published postbacks, genuine and forged.

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

/// Minimum number of files; fewer means that some were lost.
const VECTORS_MIN: usize = 8;

/// Reads a file that is not part of the repository. If it is missing, writes that directly to
/// stderr, because the test harness captures output.
fn sample(name: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/skan");
    if !folder.is_dir() {
        let message = "NOT TESTED: the published postbacks are missing at";
        writeln!(std::io::stderr(), "\n{message} {}\n", folder.display()).unwrap();
        return None;
    }
    Some(std::fs::read_to_string(folder.join(name)).unwrap())
}

/// Returns every file with its expected result.
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

fn received(input: &PostbackFields, expected: &Json) -> ParsedPostback {
    if is_skadnetwork(expected) {
        return parse_skadnetwork(input, &Keys::apple()).unwrap();
    }
    let jws = Jws::split(input.text(JWS_FIELD).unwrap()).unwrap();
    let inner = |bytes: &[u8]| fields(std::str::from_utf8(bytes).unwrap());
    let (header, payload) = (inner(&jws.header), inner(&jws.payload));
    parse_adattributionkit(input, &jws, &header, &payload, &Keys::apple()).unwrap()
}

#[test]
fn every_published_postback_has_the_expected_result() {
    for (name, input, expected) in vectors() {
        let ParsedPostback {
            postback,
            signature,
        } = received(&input, &expected);
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

/// Returns another valid value for a field.
fn another(field: &str, value: &Scalar) -> Scalar {
    match value {
        Scalar::Boolean(flag) => Scalar::Boolean(!flag),
        Scalar::Integer(1) if field == "fidelity-type" => Scalar::Integer(0),
        Scalar::Integer(number) => Scalar::Integer(number + 1),
        Scalar::Text(text) if field == "version" && text == "2.0" => Scalar::from("2.1"),
        Scalar::Text(text) if field == "version" && text == "2.1" => Scalar::from("2.0"),
        // The postback has all fields that either version requires.
        Scalar::Text(text) if field == "version" && text == "3.0" => Scalar::from("2.2"),
        Scalar::Text(_) if field == "version" => Scalar::from("2.1"),
        Scalar::Text(text) if field == "source-identifier" => Scalar::from(&text[1..]),
        Scalar::Text(text) => Scalar::Text(format!("{text}x")),
        Scalar::Null | Scalar::Other => unreachable!("signed fields have other types"),
    }
}

#[test]
fn changing_a_signed_field_of_a_genuine_postback_invalidates_it() {
    let mut changed = 0;
    for (name, input, expected) in vectors() {
        if expected["state"] != "valid" {
            continue;
        }
        for field in expected["signedFields"].as_array().unwrap() {
            let field = field.as_str().unwrap();
            let mut input = input.clone();
            let value = another(field, input.get(field).unwrap());
            input.set(field, value);
            // Versions below 4.0 require a campaign id.
            if field == "version" && expected["version"] == "4.0" {
                input.set("campaign-id", 42);
            }
            let signature = parse_skadnetwork(&input, &Keys::apple()).unwrap().signature;
            assert_eq!(signature, Signature::Invalid, "{field} of {name}");
            changed += 1;
        }
    }
    assert!(changed == 0 || changed > 40, "only {changed}");
}

#[test]
fn removing_the_source_of_a_genuine_postback_invalidates_it() {
    for (name, input, expected) in vectors() {
        for field in ["source-app-id", "source-domain"] {
            if expected["state"] == "valid" && input.get(field).is_some() {
                let mut input = input.clone();
                input.remove(field);
                let signature = parse_skadnetwork(&input, &Keys::apple()).unwrap().signature;
                assert_eq!(signature, Signature::Invalid, "{field} of {name}");
            }
        }
    }
}

#[test]
fn unsigned_fields_do_not_affect_the_signature() {
    for (name, input, expected) in vectors() {
        let state = expected["state"].as_str().unwrap();
        let still = |input: &PostbackFields, what: &str| {
            let signature = received(input, &expected).signature;
            assert_eq!(signature.as_str(), state, "{what} of {name}");
        };
        let mut input = input;
        input.set("conversion-value", 1);
        still(&input, "conversion-value");
        input.remove("conversion-value");
        still(&input, "no conversion-value");
        input.set("coarse-conversion-value", "low");
        still(&input, "coarse-conversion-value");
        input.set("country-code", "de");
        input.set("timestamp", "12342352346");
        input.set("a-key-of-a-relay", Scalar::Other);
        still(&input, "unknown keys");
    }
}

#[test]
fn without_keys_nothing_is_verified() {
    for (name, input, expected) in vectors() {
        if is_skadnetwork(&expected) {
            let received = parse_skadnetwork(&input, &Keys::default()).unwrap();
            assert_eq!(received.signature, Signature::Unverifiable, "{name}");
        }
    }
}
