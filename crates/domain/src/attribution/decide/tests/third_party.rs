//! Step 4: third-party referrers.

use super::scene::*;
use crate::app::FraudPolicy;
use crate::attribution::referrer::{MetaCampaign, Referrer};
use rstest::rstest;

const GOOGLE: &str = "gclid=Cj0KCQ";
const META: &str =
    r#"utm_source=apps.facebook.com&utm_content={"app":1,"source":{"data":"00","nonce":"00"}}"#;
const OTHER: &str = "utm_source=newsletter&utm_campaign=spring";
const WEEK: i64 = 7 * DAY;

#[rstest]
#[case::a_gclid_is_google_ads(android().referrer(GOOGLE), "third_party referrer network_b 100")]
#[case::a_wbraid_is_google_ads(android().referrer("wbraid=x"), "third_party referrer network_b 100")]
#[case::the_encrypted_shape_is_meta(android().referrer(META), "third_party referrer network_a 100")]
#[case::other_tags_are_another_network(android().referrer(OTHER), "third_party referrer other 100")]
#[case::an_organic_referrer_is_organic(
    android().referrer("utm_source=google-play&utm_medium=organic"),
    "organic"
)]
#[case::an_empty_referrer_is_organic(android().referrer(""), "organic")]
#[case::a_referrer_without_an_ad_is_organic(android().referrer("utm_source=(not%20set)&foo=bar"), "organic")]
#[case::an_unreadable_referrer_is_unavailable(
    android().evidence(|evidence| evidence.referrer = Some(Referrer::Unavailable)),
    "unavailable"
)]
#[case::on_android_a_missing_referrer_is_unavailable(android(), "unavailable")]
#[case::an_iphone_needs_no_referrer(ios(), "organic")]
#[case::exactly_at_the_window_wins(
    android().referrer(GOOGLE).store_times(8 * DAY, DAY),
    "third_party referrer network_b 100"
)]
#[case::a_second_past_the_window_loses(
    android().referrer(GOOGLE).store_times(8 * DAY + 1, DAY),
    "outside_window"
)]
#[case::without_an_install_start_the_first_open_counts(
    android()
        .referrer(GOOGLE)
        .evidence(|evidence| evidence.times.click_at_server = Some(before_open(WEEK + 1))),
    "outside_window"
)]
#[case::without_googles_clock_the_devices_counts(
    android().referrer(GOOGLE).device_times(8 * DAY + 1, DAY),
    "outside_window"
)]
#[case::a_tap_after_the_start_of_the_installation_is_implausible(
    android().referrer(GOOGLE).store_times(59, 60),
    "implausible"
)]
#[case::unless_the_policy_only_flags_it(
    android().referrer(GOOGLE).store_times(59, 60).fraud(FraudPolicy::Hold),
    "third_party referrer network_b 100"
)]
#[case::a_tap_after_the_first_open_is_implausible(
    android().referrer(GOOGLE).store_times(-121, -150).fraud(FraudPolicy::Flag),
    "implausible"
)]
#[case::googles_clock_may_be_a_little_ahead(
    android().referrer(GOOGLE).store_times(-120, -120),
    "third_party referrer network_b 100"
)]
#[case::it_comes_before_an_advertising_id(
    android().referrer(GOOGLE).same_advertising_id(&[tap(1)]),
    "third_party referrer network_b 100"
)]
#[case::a_rejected_one_leaves_room_for_an_advertising_id(
    android().referrer(GOOGLE).store_times(59, 60).same_advertising_id(&[tap(1)]),
    "attributed click_id network_a 95 #1"
)]
fn credits_third_party_referrers(#[case] scene: Scene, #[case] expected: &str) {
    assert_eq!(scene.outcome(), expected);
}

#[rstest]
#[case::timed_by_google(android().referrer(GOOGLE).store_times(HOUR, MINUTE), &[])]
#[case::timed_by_the_device(android().referrer(GOOGLE).device_times(HOUR, MINUTE), &["unverified_time"])]
#[case::not_timed(android().referrer(GOOGLE), &["unverified_time"])]
#[case::opened_too_soon(android().referrer(GOOGLE).store_times(9, 5), &["short_ctit"])]
#[case::flagged(
    android().referrer(GOOGLE).store_times(59, 60).fraud(FraudPolicy::Flag),
    &["implausible"]
)]
fn flags_suspicious_referrers(#[case] scene: Scene, #[case] expected: &[&str]) {
    let decision = scene.decide();
    let flags: Vec<_> = decision.flags.iter().map(|flag| flag.as_str()).collect();
    assert_eq!(flags, expected);
}

#[test]
fn keeps_a_google_ads_click_id_with_its_name() {
    let decision = android()
        .referrer("gbraid=0AAA_x&utm_campaign=spring&utm_term=run")
        .decide();
    let expected = Some(("gbraid".to_owned(), "0AAA_x".to_owned()));
    assert_eq!(decision.network_click_id, expected);
    assert_eq!(decision.campaign.name.as_deref(), Some("spring"));
    assert_eq!(decision.keyword.as_deref(), Some("run"));
}

#[test]
fn keeps_the_tags_of_a_third_party_link() {
    let decision = android().referrer(OTHER).decide();
    assert_eq!(decision.campaign.name.as_deref(), Some("spring"));
    assert_eq!(decision.query_params["utm_source"], "newsletter");
    assert_eq!(decision.query_params["utm_campaign"], "spring");
}

#[test]
fn a_decrypted_envelope_names_its_campaign() {
    let decrypted = MetaCampaign {
        campaign_group_id: Some("23".to_owned()),
        ..MetaCampaign::default()
    };
    let scene = android().referrer(META).evidence(|evidence| {
        if let Some(Referrer::Meta { campaign, .. }) = &mut evidence.referrer {
            *campaign = Some(Box::new(decrypted));
        }
    });
    assert_eq!(scene.decide().campaign.id.as_deref(), Some("23"));
    assert_eq!(android().referrer(META).decide().campaign.id, None);
}
