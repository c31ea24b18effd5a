//! Order of evidence: the most reliable evidence wins. If it is rejected, the next kind is used.

use super::scene::*;
use crate::attribution::ad_services::AdServices;
use crate::attribution::evidence::ClickIdSource;
use crate::attribution::{ClickLookup, Rejection};
use rstest::rstest;

fn apple_tap() -> AdServices {
    AdServices::Tap(Box::default())
}

fn apple_view() -> AdServices {
    AdServices::View(Box::default())
}

/// Returns a scene with evidence of every kind, each for a different click.
fn everything() -> Scene {
    android()
        .through_client(tap(1))
        .apple(apple_tap())
        .referrer("gclid=x")
        .same_advertising_id(&[tap(2)])
        .same_address(&[tap(3)])
}

#[rstest]
#[case::a_delivered_click_first(everything(), "attributed click_id network_a 100 #1")]
#[case::then_apples_tap(
    everything().through_client(tap(1).taken()),
    "attributed adservices apple_ads 100"
)]
#[case::then_a_third_party_referrer(
    everything().through_client(tap(1).taken()).apple(apple_view()),
    "third_party referrer network_b 100"
)]
#[case::then_the_advertising_id(
    everything().through_client(tap(1).taken()).apple(apple_view()).referrer(""),
    "attributed click_id network_a 95 #2"
)]
#[case::then_apples_view(
    android()
        .through_client(tap(1).taken())
        .apple(apple_view())
        .same_advertising_id(&[tap(2).bot()])
        .same_address(&[tap(3)]),
    "attributed adservices apple_ads 90"
)]
#[case::then_a_probabilistic_match(
    android()
        .through_client(tap(1).taken())
        .same_advertising_id(&[tap(2).bot()])
        .same_address(&[tap(3)]),
    "attributed probabilistic network_a 75 #3"
)]
#[case::then_the_state_of_the_rejected_claim(
    android().through_client(tap(1).taken()).same_address(&[tap(3).bot()]),
    "duplicate_click"
)]
#[case::a_claim_of_the_device_outweighs_a_rejected_referrer(
    android()
        .delivers(ClickIdSource::Client, ClickLookup::BadToken)
        .referrer("gclid=x")
        .store_times(59, 60),
    "bad_token"
)]
#[case::a_bad_token_leaves_room_for_apple(
    ios().delivers(ClickIdSource::Client, ClickLookup::BadToken).apple(apple_tap()),
    "attributed adservices apple_ads 100"
)]
fn the_first_acceptable_evidence_wins(#[case] scene: Scene, #[case] expected: &str) {
    assert_eq!(scene.outcome(), expected);
}

#[test]
fn no_weaker_method_accepts_what_a_stronger_one_rejected() {
    let scene = android()
        .same_advertising_id(&[tap(1).before(2 * HOUR)])
        .same_address(&[tap(1).before(2 * HOUR)])
        .window(1);
    assert_eq!(scene.decide().click, None);
    assert_eq!(scene.rejection(1), Some(Rejection::OutsideWindow));
    assert_eq!(scene.decide().candidates.len(), 1);
}

#[test]
fn the_same_evidence_gives_the_same_decision() {
    assert_eq!(everything().decide(), everything().decide());
}
