//! Signatures of every shape, with test keys.

use super::*;
use crate::skan::postback::message::SEPARATOR;
use rstest::rstest;

const ID: &str = "6aafb7a5-0170-41b5-bbe4-fe71dedf1e28";
/// The ad was not shown by an app, or Apple withholds which one.
const NO_APP: (&str, &str) = ("source-app-id", "");

/// In the messages, `·` stands for the separator and `#` for the id. They are written out in full,
/// because the other tests in this file verify signatures that they made themselves.
#[rstest]
#[case::v1_0("1.0", &[], "n.skadnetwork·42·525463029·#")]
#[case::v2_0("2.0", &[], "2.0·n.skadnetwork·42·525463029·#·true·1234567891")]
#[case::v2_0_without("2.0", &[NO_APP], "2.0·n.skadnetwork·42·525463029·#·true")]
#[case::v2_1("2.1", &[], "2.1·n.skadnetwork·42·525463029·#·true·1234567891")]
#[case::v2_2("2.2", &[], "2.2·n.skadnetwork·42·525463029·#·true·1234567891·0")]
#[case::v2_2_without("2.2", &[NO_APP], "2.2·n.skadnetwork·42·525463029·#·true·0")]
#[case::v3_0("3.0", &[], "3.0·n.skadnetwork·42·525463029·#·true·1234567891·0·true")]
#[case::v3_0_without("3.0", &[NO_APP], "3.0·n.skadnetwork·42·525463029·#·true·0·true")]
#[case::v4_0(
    "4.0",
    &[],
    "4.0·n.skadnetwork·0239·525463029·#·false·1234567891·1·true·0"
)]
#[case::v4_0_without("4.0", &[NO_APP], "4.0·n.skadnetwork·0239·525463029·#·false·1·true·0")]
#[case::v4_0_web(
    "4.0",
    &[NO_APP, ("source-domain", "example.com")],
    "4.0·n.skadnetwork·0239·525463029·#·false·example.com·1·true·0"
)]
fn signed_messages_of_every_version(
    #[case] version: &str,
    #[case] changes: &[(&str, &str)],
    #[case] expected: &str,
) {
    let mut input = changed(shape(version), &[("transaction-id", ID.into())]);
    for (name, text) in changes {
        match *text {
            "" => input.remove(name),
            text => input.set(name, text),
        }
    }
    let postback = parse_skadnetwork(&input, &keys()).unwrap().postback;
    let expected = expected
        .replace('·', &SEPARATOR.to_string())
        .replace('#', ID);
    assert_eq!(signed_message(&postback), Some(expected));
}

#[rstest]
#[case::v1_0("1.0", &[])]
#[case::v1_0_without_saying("1.0", &[("version", Scalar::Null)])]
#[case::v2_0("2.0", &[])]
#[case::v2_0_without_source("2.0", &[("source-app-id", Scalar::Null)])]
#[case::v2_1("2.1", &[])]
#[case::v2_1_without_source("2.1", &[("source-app-id", Scalar::Null)])]
#[case::v2_2("2.2", &[])]
#[case::v2_2_without_source("2.2", &[("source-app-id", Scalar::Null)])]
#[case::v3_0("3.0", &[])]
#[case::v3_0_lost("3.0", &[("source-app-id", Scalar::Null), ("did-win", Scalar::Boolean(false))])]
#[case::v4_0("4.0", &[])]
#[case::v4_0_web("4.0", &[("source-app-id", Scalar::Null), ("source-domain", "example.com".into())])]
#[case::v4_0_without_source("4.0", &[("source-app-id", Scalar::Null)])]
#[case::v4_0_second("4.0", &[("postback-sequence-index", Scalar::Integer(1))])]
#[case::v4_0_third("4.0", &[("postback-sequence-index", Scalar::Integer(2))])]
#[case::v4_0_two_digits("4.0", &[("source-identifier", "39".into())])]
#[case::v4_0_lost("4.0", &[("source-app-id", Scalar::Null), ("did-win", Scalar::Boolean(false))])]
fn every_shape_verifies_until_a_signed_field_changes(
    #[case] version: &str,
    #[case] changes: &[(&str, Scalar)],
) {
    let mut input = changed(shape(version), changes);
    sign(&mut input);
    assert_eq!(signature(&input), Signature::Valid);
    let signed: &[&str] = match version {
        "1.0" => &[],
        "2.0" | "2.1" => &["redownload"],
        "2.2" => &["redownload", "fidelity-type"],
        "3.0" => &["redownload", "fidelity-type", "did-win"],
        _ => &[
            "redownload",
            "fidelity-type",
            "did-win",
            "postback-sequence-index",
        ],
    };
    let always = ["ad-network-id", "app-id", "transaction-id"];
    let campaign = if version == "4.0" {
        "source-identifier"
    } else {
        "campaign-id"
    };
    for name in always.iter().chain(signed).chain(&[campaign]) {
        let other = match input.get(name).unwrap() {
            Scalar::Text(_) if *name == campaign => Scalar::from("77"),
            Scalar::Text(text) => Scalar::Text(format!("{text}x")),
            Scalar::Integer(0) => Scalar::Integer(1),
            Scalar::Integer(number) => Scalar::Integer(number - 1),
            Scalar::Boolean(flag) => Scalar::Boolean(!flag),
            Scalar::Null | Scalar::Other => unreachable!(),
        };
        let forged = changed(input.clone(), &[(name, other)]);
        assert_eq!(signature(&forged), Signature::Invalid, "{name}");
    }
    // The source app is added or removed.
    if version != "1.0" {
        let is_present = input.get("source-app-id").is_some();
        let other = if is_present {
            Scalar::Null
        } else {
            Scalar::Integer(5)
        };
        let without_domain = ("source-domain", Scalar::Null);
        let forged = changed(input.clone(), &[("source-app-id", other), without_domain]);
        assert_eq!(signature(&forged), Signature::Invalid);
    }
    let unsigned = [
        ("conversion-value", Scalar::Integer(1)),
        ("x", Scalar::Other),
    ];
    assert_eq!(signature(&changed(input, &unsigned)), Signature::Valid);
}

#[rstest]
#[case::next("4.1")]
#[case::far("10.0")]
#[case::spelled_otherwise("4")]
#[case::with_space("4.0 ")]
fn an_unknown_version_is_parsed_and_unverifiable(#[case] version: &str) {
    let mut input = shape("4.0");
    sign(&mut input);
    let odd = [
        ("version", version.into()),
        ("coarse-conversion-value", "low".into()),
        ("postback-sequence-index", Scalar::Integer(9)),
        ("did-win", "maybe".into()),
    ];
    let found = parse_skadnetwork(&changed(input, &odd), &keys()).unwrap();
    assert_eq!(found.signature, Signature::Unverifiable);
    let postback = found.postback;
    assert_eq!(postback.version.as_deref(), Some(version));
    assert_eq!(
        (postback.fine_value, postback.coarse_value),
        (Some(63), None)
    );
    assert_eq!((postback.sequence_index, postback.did_win), (0, true));
    let mut nothing = PostbackFields::default();
    nothing.set("version", version);
    assert_eq!(codes(&nothing).len(), 3);
}

#[rstest]
#[case::empty("")]
#[case::not_base64("***")]
#[case::not_der("AAAA")]
#[case::zeros("MAYCAQACAQA=")]
fn an_undecodable_signature_is_invalid(#[case] text: &str) {
    for version in ["1.0", "2.0", "2.1", "4.0"] {
        let input = changed(shape(version), &[("attribution-signature", text.into())]);
        assert_eq!(signature(&input), Signature::Invalid);
    }
}

#[test]
fn a_missing_key_makes_its_versions_unverifiable() {
    let without = Keys {
        p192: None,
        ..keys()
    };
    for (version, expected) in [("2.0", Signature::Unverifiable), ("2.1", Signature::Valid)] {
        let mut input = shape(version);
        sign(&mut input);
        let found = parse_skadnetwork(&input, &without).unwrap().signature;
        assert_eq!(found, expected, "{version}");
    }
}

#[test]
fn high_and_low_s_are_both_valid() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let mut input = shape("3.0");
    sign(&mut input);
    let der = STANDARD
        .decode(input.text("attribution-signature").unwrap())
        .unwrap();
    let (r, s) = p256::ecdsa::Signature::from_der(&der)
        .unwrap()
        .split_scalars();
    let other = p256::ecdsa::Signature::from_scalars(r, -s)
        .unwrap()
        .to_der();
    assert_ne!(other.as_bytes(), der);
    input.set(
        "attribution-signature",
        STANDARD.encode(other.as_bytes()).as_str(),
    );
    assert_eq!(signature(&input), Signature::Valid);
}
