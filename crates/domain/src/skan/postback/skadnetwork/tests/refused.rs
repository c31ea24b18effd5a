//! Postbacks that no device sends.

use super::*;
use crate::skan::document::CoarseValue;
use crate::skan::postback::fields::TEXT_CHARS_MAX;
use proptest::prelude::*;
use rstest::rstest;

#[rstest]
#[case::v1_0("1.0", &["ad-network-id", "app-id", "attribution-signature", "campaign-id", "transaction-id"])]
#[case::v2_0("2.0", &["ad-network-id", "app-id", "attribution-signature", "campaign-id", "redownload", "transaction-id"])]
#[case::v2_1("2.1", &["ad-network-id", "app-id", "attribution-signature", "campaign-id", "redownload", "transaction-id"])]
#[case::v2_2("2.2", &["ad-network-id", "app-id", "attribution-signature", "campaign-id", "fidelity-type", "redownload", "transaction-id"])]
#[case::v3_0("3.0", &["ad-network-id", "app-id", "attribution-signature", "campaign-id", "did-win", "fidelity-type", "redownload", "transaction-id"])]
#[case::v4_0("4.0", &["ad-network-id", "app-id", "attribution-signature", "did-win", "fidelity-type", "postback-sequence-index", "redownload", "source-identifier", "transaction-id"])]
fn each_version_requires_its_fields(#[case] version: &str, #[case] required: &[&str]) {
    let mut nothing = PostbackFields::default();
    nothing.set("version", version);
    let mut missing = codes(&nothing);
    missing.sort_by(|one, other| one.0.cmp(&other.0));
    let expected: Vec<_> = required
        .iter()
        .map(|name| ((*name).to_owned(), FaultCode::Required))
        .collect();
    assert_eq!(missing, expected);
}

#[rstest]
#[case::boolean_in_words("redownload", "false".into(), FaultCode::WrongType)]
#[case::did_win_in_words("did-win", "true".into(), FaultCode::WrongType)]
#[case::did_win_as_number("did-win", Scalar::Integer(1), FaultCode::WrongType)]
#[case::campaign_in_words("campaign-id", "42".into(), FaultCode::WrongType)]
#[case::campaign_0("campaign-id", Scalar::Integer(0), FaultCode::OutOfRange)]
#[case::campaign_101("campaign-id", Scalar::Integer(101), FaultCode::OutOfRange)]
#[case::source_as_number("source-identifier", Scalar::Integer(39), FaultCode::WrongType)]
#[case::source_of_one_digit("source-identifier", "9".into(), FaultCode::InvalidFormat)]
#[case::source_of_five_digits("source-identifier", "12345".into(), FaultCode::InvalidFormat)]
#[case::source_of_letters("source-identifier", "3a".into(), FaultCode::InvalidFormat)]
#[case::app_in_words("app-id", "525463029".into(), FaultCode::WrongType)]
#[case::app_below_0("app-id", Scalar::Integer(-1), FaultCode::OutOfRange)]
#[case::app_with_fraction("app-id", Scalar::Other, FaultCode::WrongType)]
#[case::source_app_in_words("source-app-id", "1".into(), FaultCode::WrongType)]
#[case::fine_64("conversion-value", Scalar::Integer(64), FaultCode::OutOfRange)]
#[case::fine_below_0("conversion-value", Scalar::Integer(-1), FaultCode::OutOfRange)]
#[case::fine_in_words("conversion-value", "20".into(), FaultCode::WrongType)]
#[case::coarse_unknown("coarse-conversion-value", "none".into(), FaultCode::UnknownValue)]
#[case::coarse_as_number("coarse-conversion-value", Scalar::Integer(1), FaultCode::WrongType)]
#[case::index_3("postback-sequence-index", Scalar::Integer(3), FaultCode::OutOfRange)]
#[case::index_below_0("postback-sequence-index", Scalar::Integer(-1), FaultCode::OutOfRange)]
#[case::index_256("postback-sequence-index", Scalar::Integer(256), FaultCode::OutOfRange)]
#[case::fidelity_2("fidelity-type", Scalar::Integer(2), FaultCode::OutOfRange)]
#[case::country_of_three("country-code", "USA".into(), FaultCode::InvalidFormat)]
#[case::country_of_digits("country-code", "12".into(), FaultCode::InvalidFormat)]
#[case::network_as_number("ad-network-id", Scalar::Integer(1), FaultCode::WrongType)]
#[case::network_empty("ad-network-id", "".into(), FaultCode::TooShort)]
#[case::network_with_separator("ad-network-id", "a\u{2063}1".into(), FaultCode::InvalidCharacter)]
#[case::network_with_nul("ad-network-id", "a\0".into(), FaultCode::InvalidCharacter)]
#[case::id_too_long("transaction-id", "x".repeat(TEXT_CHARS_MAX + 1).as_str().into(), FaultCode::TooLong)]
#[case::domain_as_list("source-domain", Scalar::Other, FaultCode::WrongType)]
#[case::signature_as_number("attribution-signature", Scalar::Integer(1), FaultCode::WrongType)]
fn rejects_values_that_no_device_sends(
    #[case] name: &str,
    #[case] value: Scalar,
    #[case] code: FaultCode,
) {
    // The rules apply in every known version, even to fields that the version does not have.
    for version in ["1.0", "2.0", "3.0", "4.0"] {
        let mut input = shape(version);
        for optional in [
            "conversion-value",
            "coarse-conversion-value",
            "source-app-id",
        ] {
            input.remove(optional);
        }
        input.set(name, value.clone());
        assert_eq!(codes(&input), [(name.to_owned(), code)], "{version}");
    }
}

#[rstest]
#[case::a_number(Scalar::Integer(4))]
#[case::a_fraction(Scalar::Other)]
fn rejects_a_version_that_is_not_text(#[case] version: Scalar) {
    let input = changed(shape("4.0"), &[("version", version)]);
    assert_eq!(
        codes(&input),
        [("version".to_owned(), FaultCode::WrongType)]
    );
}

#[rstest]
#[case::fine_and_coarse("4.0", "coarse-conversion-value", "low".into())]
#[case::fine_and_coarse_before_4_0("3.0", "coarse-conversion-value", "low".into())]
#[case::app_and_domain("4.0", "source-domain", "example.com".into())]
fn rejects_fields_that_exclude_each_other(
    #[case] version: &str,
    #[case] name: &str,
    #[case] value: Scalar,
) {
    let input = changed(
        shape(version),
        &[("conversion-value", Scalar::Integer(1)), (name, value)],
    );
    assert_eq!(codes(&input), [(name.to_owned(), FaultCode::NotAllowed)]);
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        Just(Scalar::Null),
        Just(Scalar::Other),
        any::<bool>().prop_map(Scalar::Boolean),
        any::<i64>().prop_map(Scalar::Integer),
        (-2..70_i64).prop_map(Scalar::Integer),
        any::<String>().prop_map(Scalar::Text),
        "[a-z0-9.]{1,4}".prop_map(Scalar::Text),
        prop::sample::select(vec![
            "1.0", "2.0", "2.1", "2.2", "3.0", "4.0", "low", "high"
        ])
        .prop_map(Scalar::from),
    ]
}

const NAMES: [&str; 16] = [
    "version",
    "ad-network-id",
    "campaign-id",
    "source-identifier",
    "app-id",
    "transaction-id",
    "attribution-signature",
    "redownload",
    "source-app-id",
    "source-domain",
    "fidelity-type",
    "did-win",
    "conversion-value",
    "coarse-conversion-value",
    "postback-sequence-index",
    "country-code",
];

/// Each case may verify a signature, which is slow without optimisation.
const CASES: u32 = 128;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn random_fields_never_panic_or_verify(
        start in 0..4_usize,
        drawn in prop::collection::vec((0..NAMES.len(), scalar()), 0..6),
    ) {
        let mut input = match start {
            0 => PostbackFields::default(),
            1 => shape("1.0"),
            2 => shape("3.0"),
            _ => shape("4.0"),
        };
        for (name, value) in drawn {
            input.set(NAMES[name], value);
        }
        match parse_skadnetwork(&input, &keys()) {
            Err(faults) => prop_assert!(!faults.is_empty()),
            Ok(ParsedPostback { postback, signature }) => {
                prop_assert_ne!(signature, Signature::Valid);
                prop_assert!(postback.sequence_index <= 2);
                prop_assert!(postback.fine_value.is_none_or(|fine| fine <= 63));
                prop_assert!(
                    postback.fine_value.is_none() || postback.coarse_value.is_none()
                );
            }
        }
    }

    #[test]
    fn coarse_values_are_parsed(index in 0..3_i64, word in 0..3_usize) {
        let mut input = shape("4.0");
        input.remove("conversion-value");
        let value = crate::skan::document::CoarseValue::ALL[word];
        input.set("coarse-conversion-value", value.as_str());
        input.set("postback-sequence-index", index);
        let found = parse_skadnetwork(&input, &keys()).unwrap().postback;
        prop_assert_eq!(found.coarse_value.map(CoarseValue::as_str), Some(value.as_str()));
    }
}
