//! Explanations of decisions.

use super::scene::*;
use crate::app::FraudPolicy;
use crate::attribution::ad_services::{AdServices, AdServicesRecord, TEST_CAMPAIGN_ID};
use crate::attribution::evidence::ClickIdSource;
use crate::attribution::{ClickLookup, DECISION_CANDIDATES_MAX};
use rstest::rstest;

fn test_data() -> AdServices {
    let campaign_id = Some(TEST_CAMPAIGN_ID.to_owned());
    AdServices::Tap(Box::new(AdServicesRecord {
        campaign_id,
        ..AdServicesRecord::default()
    }))
}

fn taps(count: u8) -> Vec<Tap> {
    (1..=count).map(tap).collect()
}

#[rstest]
#[case(android().through_store(tap(1)), "The Play Store passed on the id of a click made 59 minutes before the installation began.")]
#[case(android().through_client(tap(1).before(3 * DAY)), "The app passed on the id of a click made 3 days before the first open.")]
#[case(android().through_client(tap(1).before(1)), "The app passed on the id of a click made 1 second before the first open.")]
#[case(
    android().through_client(tap(1).before(60)).store_times(90, 61).fraud(FraudPolicy::Flag),
    "The app passed on the id of a click; it counts but is flagged, because it came after the installation had begun."
)]
#[case(android().delivers(ClickIdSource::Client, ClickLookup::BadToken), "The click id sent with this install is invalid.")]
#[case(
    android().delivers(ClickIdSource::Client, ClickLookup::Foreign(click_id(1))),
    "The click id sent with this install belongs to another app."
)]
#[case(
    android().delivers(ClickIdSource::Client, ClickLookup::Unknown(click_id(1))),
    "The click reported by the device is not stored yet; Tributary waits up to 24 hours for it."
)]
#[case(android().through_client(tap(1).bot()), "The click reported by the device was made by a bot or a link preview, not by a person.")]
#[case(android().through_client(tap(1).on_test_link()), "The click reported by the device is on a test link, whose clicks never count.")]
#[case(android().through_client(tap(1).taken()), "The click reported by the device is already credited with another install.")]
#[case(
    android().through_client(tap(1).before(8 * DAY)),
    "The click reported by the device is older than the click window of 7 days."
)]
#[case(
    android().through_store(tap(1)).store_times(HOUR + 3 * MINUTE, 60),
    "The click reported by the device cannot have led to this install: the tap in the Play Store came more than 2 minutes before the click."
)]
#[case(ios().apple(AdServices::Tap(Box::default())), "Apple reports that a tap on an Apple Ads ad led to this install.")]
#[case(ios().apple(test_data()), "No click was found for this install: Apple returned test data, which does not count for a live install.")]
#[case(ios().apple(AdServices::Pending), "No click was found for this install: Apple has not responded yet.")]
#[case(
    ios(),
    "No click was found for this install: the device reported no click id and no store referrer."
)]
#[case(android().referrer(""), "No click was found for this install: the Play Store reported an organic install.")]
#[case(
    android(),
    "No click was found for this install: the device sent no Play Store referrer."
)]
#[case(
    android().referrer("gclid=x"),
    "The Play Store names a Google Ads (network_b) ad that used none of this app's links."
)]
#[case(
    android().same_advertising_id(&[tap(1), tap(2)]),
    "The latest of 2 clicks with this device's advertising id was made 1 hour before the first open."
)]
#[case(
    android().same_advertising_id(&[tap(1).taken()]),
    "No click could be matched to this install: the click with its advertising id is already credited with another install."
)]
#[case(android().same_address(&[tap(1)]), "Only click from this address within 24 hours; OS version and language match.")]
#[case(
    android().same_address(&[tap(1), tap(2).model("Pixel 8")]),
    "Best match of 2 clicks from this address within 24 hours; OS version, model and language match."
)]
#[case(android().same_address(&taps(2)), "No click could be matched to this install: 2 clicks from its address match equally well.")]
#[case(
    android().same_address(&taps(21)),
    "No click could be matched to this install: more than 20 clicks came from its address within 24 hours, so the address is shared."
)]
#[case(
    android().same_address(&[tap(1).language("")]),
    "No click could be matched to this install: the click from its address does not match well enough."
)]
#[case(
    ios().same_address(&[tap(1).platform(crate::device::Platform::Ios)]),
    "No click could be matched to this install: 1 click came from its address, but probabilistic matching is off for iOS."
)]
fn explains_in_one_sentence(#[case] scene: Scene, #[case] expected: &str) {
    assert_eq!(scene.decide().reason, expected);
}

#[test]
fn stores_the_winner_among_the_candidates() {
    let mut taps = taps(30);
    taps[0] = tap(1).before(2 * HOUR);
    let older: Vec<_> = taps.iter().skip(1).map(|tap| tap.clone().bot()).collect();
    let scene = android()
        .same_advertising_id(&older)
        .same_advertising_id(&taps[..1]);
    let decision = scene.decide();
    assert_eq!(decision.click, Some(click_id(1)));
    assert_eq!(decision.candidates.len(), DECISION_CANDIDATES_MAX);
    let accepted: Vec<_> = decision
        .candidates
        .iter()
        .filter(|one| one.rejection.is_none())
        .collect();
    assert_eq!(accepted.len(), 1);
    assert_eq!(accepted[0].click, decision.click);
}

#[test]
fn does_not_reveal_another_apps_click() {
    let scene = android().delivers(ClickIdSource::Client, ClickLookup::Foreign(click_id(1)));
    assert_eq!(scene.decide().candidates[0].click, None);
}

/// Full explanations: evidence, settings, and candidates with their signals and rejections.
#[rstest]
#[case("by_store", android().through_store(tap(1)))]
#[case("apple_pending", ios().apple(AdServices::Pending))]
#[case("apple_test_data", ios().apple(test_data()))]
#[case("click_not_stored", android().delivers(ClickIdSource::Client, ClickLookup::Unknown(click_id(1))))]
#[case("probabilistic", android().same_address(&[tap(1).timezone("Asia/Tokyo").before(1_260)]))]
#[case("excluded_by_model", android().same_address(&[tap(1).model("Pixel 7").timezone("Europe/Berlin")]))]
fn explains_every_detail(#[case] name: &str, #[case] scene: Scene) {
    insta::assert_debug_snapshot!(name, scene.decide());
}

#[test]
fn records_the_settings_of_the_platform() {
    assert!(!ios().decide().settings.probabilistic);
    assert!(android().decide().settings.probabilistic);
    assert_eq!(
        android().window(24).decide().settings.click_window_hours,
        24
    );
}
