//! Tests of parsed fields, and helpers for the other tests of this module.

mod refused;
mod signed;

use super::*;
use crate::skan::postback::fields::Scalar;
use crate::skan::postback::signing::{fields, keys, sign};
use crate::vocabulary::fault::FaultCode;

const V1_0: &str = r#"{"ad-network-id":"n.skadnetwork","campaign-id":42,"app-id":525463029,
    "transaction-id":"6AAFB7A5-0170-41B5-BBE4-FE71DEDF1E28","attribution-signature":"x"}"#;
const V2_1: &str = r#"{"version":"2.1","ad-network-id":"n.skadnetwork","campaign-id":42,
    "app-id":525463029,"transaction-id":"6aafb7a5-0170-41b5-bbe4-fe71dedf1e28",
    "attribution-signature":"x","redownload":true,"source-app-id":1234567891}"#;
const V4_0: &str = r#"{"version":"4.0","ad-network-id":"n.skadnetwork","source-identifier":"0239",
    "app-id":525463029,"transaction-id":"6aafb7a5-0170-41b5-bbe4-fe71dedf1e28",
    "attribution-signature":"x","redownload":false,"source-app-id":1234567891,"fidelity-type":1,
    "did-win":true,"postback-sequence-index":0,"conversion-value":63}"#;

/// Returns a postback with the required fields of its version, and a source app if it can have one.
fn shape(version: &str) -> PostbackFields {
    let mut input = match version {
        "1.0" => fields(V1_0),
        "4.0" => fields(V4_0),
        _ => fields(V2_1),
    };
    input.set("version", version);
    if ["2.2", "3.0"].contains(&version) {
        input.set("fidelity-type", 0);
    }
    if version == "3.0" {
        input.set("did-win", true);
    }
    input
}

fn changed(mut input: PostbackFields, changes: &[(&str, Scalar)]) -> PostbackFields {
    for (name, value) in changes {
        input.set(name, value.clone());
    }
    input
}

fn signature(input: &PostbackFields) -> Signature {
    parse_skadnetwork(input, &keys()).unwrap().signature
}

fn codes(input: &PostbackFields) -> Vec<(String, FaultCode)> {
    let faults = parse_skadnetwork(input, &keys()).unwrap_err();
    faults
        .iter()
        .map(|one| (one.field.clone(), one.code))
        .collect()
}

#[test]
fn fields_of_other_versions_are_ignored() {
    let foreign = [
        ("did-win", Scalar::Boolean(false)),
        ("postback-sequence-index", Scalar::Integer(2)),
        ("country-code", "US".into()),
        ("source-identifier", "1234".into()),
        ("source-domain", "example.com".into()),
        ("fidelity-type", Scalar::Integer(0)),
    ];
    let mut input = shape("2.0");
    sign(&mut input);
    let plain = parse_skadnetwork(&input, &keys()).unwrap();
    let with_foreign = parse_skadnetwork(&changed(input, &foreign), &keys()).unwrap();
    assert_eq!(with_foreign, plain);
    assert!(plain.postback.did_win && plain.postback.sequence_index == 0);
}

#[test]
fn all_fields_of_a_4_0_postback_are_parsed() {
    let input = changed(shape("4.0"), &[("country-code", "us".into())]);
    let found = parse_skadnetwork(&input, &keys()).unwrap().postback;
    let expected = Postback {
        protocol: Protocol::SkAdNetwork,
        version: Some("4.0".to_owned()),
        ad_network_id: "n.skadnetwork".to_owned(),
        transaction_id: "6aafb7a5-0170-41b5-bbe4-fe71dedf1e28".to_owned(),
        app_store_id: 525_463_029,
        source_identifier: Some("0239".to_owned()),
        campaign_id: None,
        fine_value: Some(63),
        coarse_value: None,
        sequence_index: 0,
        did_win: true,
        redownload: Some(false),
        conversion_type: ConversionType::Download,
        interaction: Some(Interaction::Click),
        source_app_id: Some(1_234_567_891),
        source_domain: None,
        country_code: Some("US".to_owned()),
        marketplace_id: None,
        key_id: None,
    };
    assert_eq!(found, expected);
}

#[test]
fn a_1_0_postback_has_few_fields() {
    let mut input = shape("1.0");
    input.remove("version");
    let extra = [
        ("conversion-value", Scalar::Integer(5)),
        ("source-app-id", Scalar::Integer(0)),
    ];
    let found = parse_skadnetwork(&changed(input, &extra), &keys())
        .unwrap()
        .postback;
    assert_eq!(found.version.as_deref(), Some("1.0"));
    assert_eq!(
        (found.fine_value, found.source_app_id, found.redownload),
        (None, None, None)
    );
    assert_eq!(found.conversion_type, ConversionType::Download);
    assert!(!found.is_test());
}

#[test]
fn copies_of_a_postback_have_the_same_key() {
    let key = |input: PostbackFields| parse_skadnetwork(&input, &keys()).unwrap().postback.key();
    let first = key(shape("4.0"));
    let upper = [
        (
            "transaction-id",
            "6AAFB7A5-0170-41B5-BBE4-FE71DEDF1E28".into(),
        ),
        ("ad-network-id", "N.SKADNetwork".into()),
        ("conversion-value", Scalar::Integer(1)),
        ("app-id", Scalar::Integer(1)),
    ];
    assert_eq!(key(changed(shape("4.0"), &upper)), first);
    for (name, value) in [
        (
            "transaction-id",
            "6aafb7a5-0170-41b5-bbe4-fe71dedf1e29".into(),
        ),
        ("ad-network-id", "m.skadnetwork".into()),
        ("postback-sequence-index", Scalar::Integer(1)),
        ("did-win", Scalar::Boolean(false)),
    ] {
        assert_ne!(
            key(changed(shape("4.0"), &[(name, value)])),
            first,
            "{name}"
        );
    }
}
