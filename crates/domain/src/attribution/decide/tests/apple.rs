//! Steps 3 and 6: Apple's AdServices record.

use super::scene::*;
use crate::access::Environment;
use crate::app::FraudPolicy;
use crate::attribution::ad_services::{AdServices, AdServicesRecord, TEST_CAMPAIGN_ID};
use crate::device::Platform;
use rstest::rstest;

fn record(campaign: &str) -> Box<AdServicesRecord> {
    Box::new(AdServicesRecord {
        campaign_id: Some(campaign.to_owned()),
        ..AdServicesRecord::default()
    })
}

fn tapped() -> AdServices {
    AdServices::Tap(record("542370539"))
}

fn viewed() -> AdServices {
    AdServices::View(record("542370539"))
}

fn test_data() -> AdServices {
    AdServices::Tap(record(TEST_CAMPAIGN_ID))
}

fn tapped_at(seconds_before_open: i64) -> AdServices {
    let at = Some(before_open(seconds_before_open));
    AdServices::Tap(Box::new(AdServicesRecord {
        at,
        ..AdServicesRecord::default()
    }))
}

fn in_test(scene: Scene) -> Scene {
    scene.evidence(|evidence| evidence.environment = Environment::Test)
}

fn with_similar_click(scene: Scene) -> Scene {
    let tap = tap(1).platform(Platform::Ios).os("17.5");
    scene
        .rules(|rules| rules.probabilistic_ios = true)
        .same_address(&[tap])
}

#[rstest]
#[case::a_tap_wins(ios().apple(tapped()), "attributed adservices apple_ads 100")]
#[case::a_view_wins_without_stronger_evidence(ios().apple(viewed()), "attributed adservices apple_ads 90")]
#[case::no_record_is_organic(ios().apple(AdServices::NotAttributed), "organic")]
#[case::no_answer_yet_is_organic(ios().apple(AdServices::Pending), "organic")]
#[case::an_invalid_token_is_organic(ios().apple(AdServices::Invalid), "organic")]
#[case::an_expired_token_is_organic(ios().apple(AdServices::Expired), "organic")]
#[case::test_data_does_not_count_for_a_live_install(ios().apple(test_data()), "organic")]
#[case::test_data_counts_with_a_test_key(
    in_test(ios().apple(test_data())),
    "attributed adservices apple_ads 100"
)]
#[case::test_data_does_not_prevent_a_later_step(
    with_similar_click(ios().apple(test_data())),
    "attributed probabilistic network_a 75 #1"
)]
#[case::a_tap_of_29_days_ago_is_within_apples_window(
    ios().apple(tapped_at(29 * DAY)),
    "attributed adservices apple_ads 100"
)]
#[case::a_tap_after_the_first_open_is_implausible(ios().apple(tapped_at(-60)), "implausible")]
#[case::under_every_policy(ios().apple(tapped_at(-60)).fraud(FraudPolicy::Flag), "implausible")]
#[case::a_delivered_click_comes_before_apples_tap(
    ios().apple(tapped()).through_client(tap(1)),
    "attributed click_id network_a 100 #1"
)]
#[case::a_tap_comes_before_an_advertising_id(
    ios().apple(tapped()).same_advertising_id(&[tap(1)]),
    "attributed adservices apple_ads 100"
)]
#[case::an_advertising_id_comes_before_a_view(
    ios().apple(viewed()).same_advertising_id(&[tap(1)]),
    "attributed click_id network_a 95 #1"
)]
#[case::a_view_comes_before_a_probabilistic_match(
    with_similar_click(ios().apple(viewed())),
    "attributed adservices apple_ads 90"
)]
fn credits_apples_record(#[case] scene: Scene, #[case] expected: &str) {
    assert_eq!(scene.outcome(), expected);
}

#[test]
fn apples_ids_become_the_campaign() {
    let record = AdServicesRecord {
        org_id: Some("40669820".to_owned()),
        campaign_id: Some("542370539".to_owned()),
        ad_group_id: Some("542317095".to_owned()),
        keyword_id: Some("87675432".to_owned()),
        ad_id: Some("542317136".to_owned()),
        ..AdServicesRecord::default()
    };
    let decision = ios().apple(AdServices::Tap(Box::new(record))).decide();
    assert_eq!(decision.campaign.id.as_deref(), Some("542370539"));
    assert_eq!(decision.campaign.adset_id.as_deref(), Some("542317095"));
    assert_eq!(decision.campaign.ad_id.as_deref(), Some("542317136"));
    assert_eq!(decision.keyword.as_deref(), Some("87675432"));
    assert_eq!(decision.link, None);
}
