//! Referrers of every kind, plain and encoded once more.

use super::*;
use crate::vocabulary::digest::hex;
use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce};
use rstest::rstest;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const NONCE: &str = "a0a1a2a3a4a5a6a7a8a9aaab";
/// Encrypted by an independent implementation.
const DATA: &str = "9d3a1d491aa2669d5847b6f12b58a3bf1ddc3879f5d91d0bee6153f620c21123e85475cc8d5f9518c021be14f63b08f98157225e9467";
const PLAIN: &[u8] = br#"{"ad_id":"1","campaign_group_id":"23"}"#;

fn envelope(data: &str, nonce: &str) -> String {
    format!(r#"{{"app":123,"t":1700000000,"source":{{"data":"{data}","nonce":"{nonce}"}}}}"#)
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

fn opened(referrer: &str, key: &str) -> Option<Vec<u8>> {
    match Referrer::parse(Some(referrer)) {
        Referrer::Meta {
            envelope,
            campaign: None,
        } => envelope.open(key),
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case::ours("ar_click_id=abc", "ours")]
#[case::ours_among_others("utm_source=x&ar_click_id=abc&gclid=y", "ours")]
#[case::ours_encoded_again("ar_click_id%3Dabc%26utm_source%3Dx", "ours")]
#[case::ours_encoded_twice("ar_click_id%253Dabc", "ours")]
#[case::ours_in_capitals("AR_CLICK_ID=abc", "ours")]
#[case::ours_even_if_empty("ar_click_id=", "ours")]
#[case::a_longer_name_is_not_ours("my_ar_click_id=abc", "other")]
#[case::empty("", "organic")]
#[case::blank("  ", "organic")]
#[case::organic("utm_source=google-play&utm_medium=organic", "organic")]
#[case::organic_encoded_again("utm_source%3Dgoogle-play%26utm_medium%3Dorganic", "organic")]
#[case::organic_without_medium("utm_source=google-play", "organic")]
#[case::the_stores_source_with_another_medium("utm_source=google-play&utm_medium=cpc", "other")]
#[case::gclid("gclid=Cj0KCQ&utm_source=google", "google")]
#[case::gbraid("gbraid=0AAA", "google")]
#[case::wbraid("wbraid=0AAA", "google")]
#[case::gclid_encoded_again("gclid%3DCj0KCQ", "google")]
#[case::an_unexpanded_macro("gclid={gclid}&utm_source=x", "other")]
#[case::other_tags("utm_source=newsletter", "other")]
#[case::no_tags("foo=bar", "other")]
#[case::no_parameters("hello", "other")]
#[case::tags_with_placeholders("utm_source=(not%20set)&utm_medium=(not%20set)", "other")]
fn classifies_every_kind(#[case] referrer: &str, #[case] expected: &str) {
    assert_eq!(Referrer::parse(Some(referrer)).as_str(), expected);
}

#[test]
fn a_missing_referrer_is_not_an_empty_one() {
    assert_eq!(Referrer::parse(None), Referrer::Unavailable);
    assert_eq!(Referrer::Unavailable.as_str(), "unavailable");
}

#[rstest]
#[case::plain("ar_click_id=clk_a-B.9_~")]
#[case::first_of_two("ar_click_id=clk_a-B.9_~&ar_click_id=x")]
#[case::encoded_again("ar_click_id%3Dclk_a-B.9_~%26a%3Db")]
#[case::encoded_twice("ar_click_id%253Dclk_a-B.9_~%2526a%253Db")]
fn keeps_our_click_id_verbatim(#[case] referrer: &str) {
    let expected = Referrer::Ours("clk_a-B.9_~".to_owned());
    assert_eq!(Referrer::parse(Some(referrer)), expected);
}

#[rstest]
#[case::a_plus_stays_in_an_id("gclid=a+b", "gclid", "a+b")]
#[case::gclid_first("wbraid=w&gclid=g", "gclid", "g")]
#[case::still_encoded("gbraid=a%2Db", "gbraid", "a-b")]
fn reads_google_ads_click_ids(#[case] referrer: &str, #[case] name: &str, #[case] value: &str) {
    match Referrer::parse(Some(referrer)) {
        Referrer::Google(ad) => assert_eq!((ad.parameter, ad.click_id.as_str()), (name, value)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cleans_tags() {
    let long = "x".repeat(NAME_CHARS_MAX + 1);
    let referrer =
        format!("utm_source=a+b&utm_medium=%20&utm_campaign=spring%20sale&utm_term={long}");
    let expected = Utm {
        source: Some("a b".to_owned()),
        medium: None,
        campaign: Some("spring sale".to_owned()),
        content: None,
        term: Some("x".repeat(NAME_CHARS_MAX)),
    };
    assert_eq!(
        Referrer::parse(Some(&referrer)),
        Referrer::Other(Box::new(expected))
    );
}

#[test]
fn cuts_long_referrers_between_characters() {
    let long = format!("ar_click_id={}", "ä".repeat(REFERRER_BYTES_MAX));
    match Referrer::parse(Some(&long)) {
        Referrer::Ours(id) => assert!(id.len() < REFERRER_BYTES_MAX && !id.is_empty()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn decrypts_an_envelope_however_often_it_was_encoded() {
    let json = envelope(DATA, NONCE);
    for content in [json.clone(), encoded(&json), encoded(&encoded(&json))] {
        let referrer = format!("utm_source=apps.facebook.com&utm_content={content}");
        assert_eq!(opened(&referrer, KEY).as_deref(), Some(PLAIN), "{referrer}");
    }
    let whole = encoded(&format!("utm_content={json}"));
    assert_eq!(opened(&whole, KEY).as_deref(), Some(PLAIN));
}

#[test]
fn the_longest_envelope_fits() {
    let plain = vec![b'x'; 1_000];
    let key: [u8; 32] = from_hex(KEY);
    let nonce: [u8; 12] = from_hex(NONCE);
    let sealed = Aes256Gcm::new(&key.into())
        .encrypt(&Nonce::from(nonce), plain.as_slice())
        .unwrap();
    let referrer = format!(
        "utm_content={}",
        encoded(&encoded(&envelope(&hex(&sealed), NONCE)))
    );
    assert_eq!(opened(&referrer, KEY), Some(plain));
}

fn from_hex<const N: usize>(text: &str) -> [u8; N] {
    crate::vocabulary::digest::from_hex(text)
        .unwrap()
        .try_into()
        .unwrap()
}

#[rstest]
#[case::not_a_key("")]
#[case::a_digit_short(&KEY[1..])]
#[case::a_digit_too_many("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0")]
#[case::not_hex("g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")]
#[case::another_apps_key("ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")]
fn a_wrong_key_decrypts_nothing(#[case] key: &str) {
    let referrer = format!("utm_content={}", envelope(DATA, NONCE));
    assert_eq!(opened(&referrer, key), None);
}

#[test]
fn ignores_white_space_around_a_key() {
    let referrer = format!("utm_content={}", envelope(DATA, NONCE));
    assert!(opened(&referrer, &format!(" {}\n", KEY.to_ascii_uppercase())).is_some());
}

#[rstest]
#[case::damaged_data(&DATA[2..], NONCE)]
#[case::odd_digits(&DATA[1..], NONCE)]
#[case::no_data("", NONCE)]
#[case::short_nonce(DATA, "a0a1")]
#[case::no_hex("zz", NONCE)]
fn recognises_a_damaged_envelope_but_cannot_decrypt_it(#[case] data: &str, #[case] nonce: &str) {
    let referrer = format!("utm_content={}", envelope(data, nonce));
    assert_eq!(opened(&referrer, KEY), None);
}

#[rstest]
#[case::members_in_another_order(r#"{"source":{"nonce":"00","data":"00"},"app":1}"#, true)]
#[case::blanks(r#"{ "source" : { "data" : "00" , "nonce" : "00" } }"#, true)]
#[case::a_value_that_reads_like_a_name(
    r#"{"app":"source","source":{"data":"00","nonce":"00"}}"#,
    true
)]
#[case::no_nonce(r#"{"source":{"data":"00"}}"#, false)]
#[case::no_data(r#"{"source":{"nonce":"00"}}"#, false)]
#[case::outside_the_source(r#"{"source":{},"data":"00","nonce":"00"}"#, false)]
#[case::no_object(r#""source":{"data":"00","nonce":"00"}"#, false)]
#[case::not_text(r#"{"source":{"data":1,"nonce":2}}"#, false)]
#[case::cut_off(r#"{"source":{"data":"00","nonce":"0"#, false)]
#[case::words("banner", false)]
fn finds_the_shape_without_a_json_parser(#[case] content: &str, #[case] expected: bool) {
    assert_eq!(meta::envelope(content).is_some(), expected);
}

#[test]
fn translates_older_field_names() {
    let text = |value: &str| Some(value.to_owned());
    let opened = MetaCampaign {
        campaign_group_id: text("1"),
        campaign_group_name: text("campaign"),
        campaign_id: text("2"),
        campaign_name: text("ad set"),
        adgroup_id: text("3"),
        adgroup_name: text("ad"),
        ad_id: text("4"),
    };
    let campaign = opened.campaign();
    assert_eq!((campaign.id, campaign.name), (text("1"), text("campaign")));
    assert_eq!(
        (campaign.adset_id, campaign.adset_name),
        (text("2"), text("ad set"))
    );
    assert_eq!((campaign.ad_id, campaign.ad_name), (text("3"), text("ad")));
    let without = MetaCampaign {
        adgroup_id: None,
        ..opened
    };
    assert_eq!(without.campaign().ad_id, text("4"));
}
