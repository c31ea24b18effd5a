//! What a decision says about itself.

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
#[case(android().by_store(tap(1)), "The Play Store handed over the id of a click, made 59 minutes before the install.")]
#[case(android().by_client(tap(1).before(3 * DAY)), "The app handed over the id of a click, made 3 days before the install.")]
#[case(android().by_client(tap(1).before(1)), "The app handed over the id of a click, made 1 second before the install.")]
#[case(
    android().by_client(tap(1).before(60)).store_times(90, 61).fraud(FraudPolicy::Flag),
    "The app handed over the id of a click; it counts but is marked, because it came after the installation had begun."
)]
#[case(android().names(ClickIdSource::Client, ClickLookup::BadToken), "The click id that this install delivered is not genuine.")]
#[case(
    android().names(ClickIdSource::Client, ClickLookup::Foreign(click_id(1))),
    "The click id that this install delivered belongs to another app."
)]
#[case(
    android().names(ClickIdSource::Client, ClickLookup::Unknown(click_id(1))),
    "The click that this install names is not stored yet; it is looked for during 24 hours."
)]
#[case(android().by_client(tap(1).bot()), "The click that this install names was made by a crawler or a preview, not by a person.")]
#[case(android().by_client(tap(1).taken()), "The click that this install names has led to another install already.")]
#[case(
    android().by_client(tap(1).before(8 * DAY)),
    "The click that this install names is older than the 7 days for which a click counts."
)]
#[case(
    android().by_store(tap(1)).store_times(HOUR + 3 * MINUTE, 60),
    "The click that this install names cannot have led to this install: the tap in the Play Store came more than 2 minutes before the click."
)]
#[case(ios().apple(AdServices::Tap(Box::default())), "Apple reports that a tap on an Apple Ads ad led to this install.")]
#[case(ios().apple(test_data()), "No click was found for this install: Apple answered with test data, which does not count for a live install.")]
#[case(ios().apple(AdServices::Pending), "No click was found for this install: Apple has not answered yet.")]
#[case(
    ios(),
    "No click was found for this install: the device showed no sign of one."
)]
#[case(android().referrer(""), "No click was found for this install: the Play Store reported an organic install.")]
#[case(
    android(),
    "No click was found for this install: the device sent no referrer of the Play Store."
)]
#[case(
    android().referrer("gclid=x"),
    "The Play Store names an ad of network_b that did not lead through a link of this app."
)]
#[case(
    android().same_advertising_id(&[tap(1), tap(2)]),
    "The latest of 2 clicks with this device's advertising id was made 1 hour before the install."
)]
#[case(
    android().same_advertising_id(&[tap(1).taken()]),
    "No click could be matched to this install: the click with its advertising id has led to another install."
)]
#[case(android().same_address(&[tap(1)]), "Only click from this address within 24 hours; OS version and language agree.")]
#[case(
    android().same_address(&[tap(1), tap(2).model("Pixel 8")]),
    "Best fitting of 2 clicks from this address within 24 hours; OS version, model and language agree."
)]
#[case(android().same_address(&taps(2)), "No click could be matched to this install: 2 clicks from its address fit it equally well.")]
#[case(
    android().same_address(&taps(21)),
    "No click could be matched to this install: more than 20 clicks came from its address within 24 hours, so many people share it."
)]
#[case(
    android().same_address(&[tap(1).language("")]),
    "No click could be matched to this install: the click from its address does not fit it well enough."
)]
#[case(
    ios().same_address(&[tap(1).platform(crate::device::Platform::Ios)]),
    "No click could be matched to this install: 1 click came from its address, but matching by likeness is switched off for iOS."
)]
fn why_in_one_sentence(#[case] scene: Scene, #[case] expected: &str) {
    assert_eq!(scene.decide().reason, expected);
}

#[test]
fn the_winner_is_among_the_candidates_that_are_kept() {
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
fn another_apps_click_is_not_named() {
    let scene = android().names(ClickIdSource::Client, ClickLookup::Foreign(click_id(1)));
    assert_eq!(scene.decide().candidates[0].click, None);
}

/// The whole explanation: evidence, settings, candidates with their signals, and why each was rejected.
#[rstest]
#[case("by_store", android().by_store(tap(1)))]
#[case("apple_pending", ios().apple(AdServices::Pending))]
#[case("apple_test_data", ios().apple(test_data()))]
#[case("click_not_stored", android().names(ClickIdSource::Client, ClickLookup::Unknown(click_id(1))))]
#[case("by_likeness", android().same_address(&[tap(1).timezone("Asia/Tokyo").before(1_260)]))]
#[case("excluded_by_model", android().same_address(&[tap(1).model("Pixel 7").timezone("Europe/Berlin")]))]
fn explanations(#[case] name: &str, #[case] scene: Scene) {
    insta::assert_debug_snapshot!(name, scene.decide());
}

#[test]
fn the_settings_are_those_of_the_platform() {
    assert!(!ios().decide().settings.probabilistic);
    assert!(android().decide().settings.probabilistic);
    assert_eq!(
        android().window(24).decide().settings.click_window_hours,
        24
    );
}
