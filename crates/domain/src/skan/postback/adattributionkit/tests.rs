use super::*;
use crate::skan::postback::Signature;
use crate::skan::postback::signing::{DEVELOPMENT, PRODUCTION, fields, jws, keys};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use rstest::rstest;

const ENVELOPE: &str =
    r#"{"conversion-value":24,"ad-interaction-type":"click","country-code":"us"}"#;
const PAYLOAD: &str = r#"{"postback-identifier":"85546EB7-FD39-44BC-8990-C98A4AC36A49",
    "ad-network-identifier":"n.adattributionkit","advertised-item-identifier":10738027756,
    "impression-type":"app-impression","source-identifier":"0234","conversion-type":"download",
    "did-win":true,"postback-sequence-index":1,"publisher-item-identifier":55,
    "marketplace-identifier":"com.apple.AppStore"}"#;

fn header(key: &str, algorithm: &str) -> String {
    format!(r#"{{"kid":"{key}","alg":"{algorithm}"}}"#)
}

/// Splits the JWS and parses the postback, as the endpoint does.
fn read(envelope: &str, text: &str) -> Result<ParsedPostback, Faults> {
    let jws = Jws::split(text).expect("a JWS");
    let inner = |bytes: &[u8]| fields(std::str::from_utf8(bytes).unwrap());
    let (header, payload) = (inner(&jws.header), inner(&jws.payload));
    parse_adattributionkit(&fields(envelope), &jws, &header, &payload, &keys())
}

fn payload_with(name: &str, value: &str) -> String {
    let mut payload: serde_json::Value = serde_json::from_str(PAYLOAD).unwrap();
    let object = payload.as_object_mut().unwrap();
    object.remove(name);
    if !value.is_empty() {
        object.insert(name.to_owned(), serde_json::from_str(value).unwrap());
    }
    payload.to_string()
}

#[rstest]
#[case::production(PRODUCTION, "ES256", Signature::Valid)]
#[case::development(DEVELOPMENT, "ES256", Signature::Development)]
#[case::unknown_key("other-key/0", "ES256", Signature::Unverifiable)]
#[case::unknown_key_and_algorithm("other-key/0", "none", Signature::Unverifiable)]
#[case::other_algorithm(PRODUCTION, "HS256", Signature::Invalid)]
#[case::no_algorithm(PRODUCTION, "none", Signature::Invalid)]
#[case::algorithm_in_small_letters(PRODUCTION, "es256", Signature::Invalid)]
fn the_key_is_chosen_by_id_and_the_algorithm_is_fixed(
    #[case] key: &str,
    #[case] algorithm: &str,
    #[case] expected: Signature,
) {
    let text = jws(&header(key, algorithm), PAYLOAD);
    let found = read(ENVELOPE, &text).unwrap();
    assert_eq!(found.signature, expected);
    assert_eq!(found.postback.key_id.as_deref(), Some(key));
}

#[test]
fn a_slash_may_be_escaped() {
    let mut keys = keys();
    keys.by_id[0].0 = "apple/0".to_owned();
    let jws = Jws::split(&jws(r#"{"kid":"apple\/0","alg":"ES256"}"#, PAYLOAD)).unwrap();
    let header = fields(std::str::from_utf8(&jws.header).unwrap());
    let found = parse_adattributionkit(&fields(ENVELOPE), &jws, &header, &fields(PAYLOAD), &keys);
    assert_eq!(found.unwrap().signature, Signature::Valid);
}

#[test]
fn all_fields_are_parsed() {
    let text = jws(&header(PRODUCTION, "ES256"), PAYLOAD);
    let found = read(ENVELOPE, &text).unwrap().postback;
    let expected = Postback {
        protocol: Protocol::AdAttributionKit,
        version: None,
        ad_network_id: "n.adattributionkit".to_owned(),
        transaction_id: "85546EB7-FD39-44BC-8990-C98A4AC36A49".to_owned(),
        app_store_id: 10_738_027_756,
        source_identifier: Some("0234".to_owned()),
        campaign_id: None,
        fine_value: Some(24),
        coarse_value: None,
        sequence_index: 1,
        did_win: true,
        redownload: None,
        conversion_type: ConversionType::Download,
        interaction: Some(Interaction::Click),
        source_app_id: Some(55),
        source_domain: None,
        country_code: Some("US".to_owned()),
        marketplace_id: Some("com.apple.AppStore".to_owned()),
        key_id: Some(PRODUCTION.to_owned()),
    };
    assert_eq!(found, expected);
}

#[rstest]
#[case::postback_identifier("postback-identifier", r#""other""#)]
#[case::ad_network("ad-network-identifier", r#""m.adattributionkit""#)]
#[case::advertised_item("advertised-item-identifier", "1")]
#[case::impression("impression-type", r#""other""#)]
#[case::source("source-identifier", r#""34""#)]
#[case::conversion_type("conversion-type", r#""redownload""#)]
#[case::did_win("did-win", "false")]
#[case::sequence_index("postback-sequence-index", "0")]
#[case::publisher("publisher-item-identifier", "56")]
#[case::no_publisher("publisher-item-identifier", "")]
#[case::no_marketplace("marketplace-identifier", "")]
#[case::an_added_field("extra", "1")]
fn a_changed_payload_has_an_invalid_signature(#[case] name: &str, #[case] value: &str) {
    let genuine = jws(&header(PRODUCTION, "ES256"), PAYLOAD);
    let parts: Vec<&str> = genuine.split('.').collect();
    let other = URL_SAFE_NO_PAD.encode(payload_with(name, value));
    let forged = format!("{}.{other}.{}", parts[0], parts[2]);
    assert_eq!(
        read(ENVELOPE, &forged).unwrap().signature,
        Signature::Invalid
    );
}

#[rstest]
#[case::another_value(r#"{"conversion-value":1}"#)]
#[case::coarse(r#"{"coarse-conversion-value":"high"}"#)]
#[case::nothing("{}")]
#[case::view(r#"{"ad-interaction-type":"view","x":[]}"#)]
fn the_envelope_is_not_signed(#[case] envelope: &str) {
    let text = jws(&header(PRODUCTION, "ES256"), PAYLOAD);
    assert_eq!(read(envelope, &text).unwrap().signature, Signature::Valid);
}

#[rstest]
#[case::cut_off(63)]
#[case::empty_but_one(1)]
#[case::too_long(65)]
fn a_signature_has_64_bytes(#[case] length: usize) {
    let genuine = jws(&header(PRODUCTION, "ES256"), PAYLOAD);
    let (input, signature) = genuine.rsplit_once('.').unwrap();
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
    bytes.resize(length, 0);
    let forged = format!("{input}.{}", URL_SAFE_NO_PAD.encode(bytes));
    assert_eq!(
        read(ENVELOPE, &forged).unwrap().signature,
        Signature::Invalid
    );
}

#[rstest]
#[case::no_postback_identifier("postback-identifier", "", FaultCode::Required)]
#[case::no_ad_network("ad-network-identifier", "", FaultCode::Required)]
#[case::no_advertised_item("advertised-item-identifier", "", FaultCode::Required)]
#[case::no_source("source-identifier", "", FaultCode::Required)]
#[case::no_conversion_type("conversion-type", "", FaultCode::Required)]
#[case::no_did_win("did-win", "", FaultCode::Required)]
#[case::no_sequence_index("postback-sequence-index", "", FaultCode::Required)]
#[case::item_in_words("advertised-item-identifier", r#""1""#, FaultCode::WrongType)]
#[case::source_as_number("source-identifier", "39", FaultCode::WrongType)]
#[case::unknown_type("conversion-type", r#""purchase""#, FaultCode::UnknownValue)]
#[case::did_win_in_words("did-win", r#""true""#, FaultCode::WrongType)]
#[case::index_3("postback-sequence-index", "3", FaultCode::OutOfRange)]
#[case::publisher_in_words("publisher-item-identifier", r#""5""#, FaultCode::WrongType)]
#[case::impression_as_list("impression-type", "[]", FaultCode::WrongType)]
fn rejects_payloads_that_no_device_sends(
    #[case] name: &str,
    #[case] value: &str,
    #[case] code: FaultCode,
) {
    let text = jws(&header(PRODUCTION, "ES256"), &payload_with(name, value));
    let faults = read(ENVELOPE, &text).unwrap_err();
    let found: Vec<_> = faults
        .iter()
        .map(|one| (one.field.as_str(), one.code))
        .collect();
    assert_eq!(
        found,
        [(format!("jws-string.payload.{name}").as_str(), code)]
    );
}

#[rstest]
#[case::both_values(
    r#"{"conversion-value":1,"coarse-conversion-value":"low"}"#,
    FaultCode::NotAllowed
)]
#[case::fine_64(r#"{"conversion-value":64}"#, FaultCode::OutOfRange)]
#[case::unknown_interaction(r#"{"ad-interaction-type":"hover"}"#, FaultCode::UnknownValue)]
#[case::long_country(r#"{"country-code":"USA"}"#, FaultCode::InvalidFormat)]
fn rejects_envelopes_that_no_device_sends(#[case] envelope: &str, #[case] code: FaultCode) {
    let text = jws(&header(PRODUCTION, "ES256"), PAYLOAD);
    let faults = read(envelope, &text).unwrap_err();
    let found: Vec<_> = faults.iter().map(|one| one.code).collect();
    assert_eq!(found, [code]);
}

#[rstest]
#[case::nothing("{}", 2)]
#[case::no_key(r#"{"alg":"ES256"}"#, 1)]
#[case::no_algorithm(r#"{"kid":"test-production"}"#, 1)]
#[case::a_number(r#"{"kid":1,"alg":"ES256"}"#, 1)]
fn rejects_headers_without_key_or_algorithm(#[case] header: &str, #[case] faults: usize) {
    let found = read(ENVELOPE, &jws(header, PAYLOAD)).unwrap_err();
    assert_eq!(found.iter().count(), faults);
}

#[rstest]
#[case::re_engagement(r#""re-engagement""#, ConversionType::ReEngagement)]
#[case::without_hyphen(r#""reengagement""#, ConversionType::ReEngagement)]
#[case::redownload(r#""redownload""#, ConversionType::Redownload)]
fn parses_conversion_types(#[case] word: &str, #[case] expected: ConversionType) {
    let payload = payload_with("conversion-type", word);
    let found = read(ENVELOPE, &jws(&header(PRODUCTION, "ES256"), &payload)).unwrap();
    assert_eq!(found.postback.conversion_type, expected);
}

/// Each case verifies a signature, which is slow without optimisation.
const CASES: u32 = 24;

proptest! {
    #[test]
    fn no_text_panics(text in ".*", parts in prop::collection::vec("[A-Za-z0-9_=-]{0,6}", 0..5)) {
        drop(Jws::split(&text));
        drop(Jws::split(&parts.join(".")));
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn a_flipped_bit_makes_the_signature_invalid(position in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let genuine = Jws::split(&jws(&header(PRODUCTION, "ES256"), PAYLOAD)).unwrap();
        let mut signature = genuine.signature.clone();
        let position = position.index(signature.len());
        signature[position] ^= 1 << bit;
        let forged = Jws { signature, ..genuine };
        let (head, payload) = (fields(&header(PRODUCTION, "ES256")), fields(PAYLOAD));
        let found = parse_adattributionkit(&PostbackFields::default(), &forged, &head, &payload, &keys());
        prop_assert_eq!(found.unwrap().signature, Signature::Invalid);
    }
}
