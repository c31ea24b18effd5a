//! Step 5: click with the device's advertising id.

use super::scene::*;
use crate::app::FraudPolicy;
use crate::attribution::Rejection;
use rstest::rstest;

#[rstest]
#[case::a_click_with_the_advertising_id_wins(
    android().same_advertising_id(&[tap(1)]),
    Some(1), &[]
)]
#[case::the_last_touch_wins(
    android().same_advertising_id(&[tap(1).before(2 * DAY), tap(2).before(DAY)]),
    Some(2), &[(1, Rejection::OlderThanWinner)]
)]
#[case::of_two_simultaneous_clicks_the_higher_id_wins(
    android().same_advertising_id(&[tap(2), tap(1)]),
    Some(2), &[(1, Rejection::OlderThanWinner)]
)]
#[case::a_bot_never_wins(
    android().same_advertising_id(&[tap(1).before(DAY), tap(2).bot()]),
    Some(1), &[(2, Rejection::Bot)]
)]
#[case::a_taken_click_never_wins(
    android().same_advertising_id(&[tap(1).before(DAY), tap(2).taken()]),
    Some(1), &[(2, Rejection::DuplicateClick)]
)]
#[case::a_click_after_the_first_open_never_wins(
    android().same_advertising_id(&[tap(1).before(DAY), tap(2).before(-1)]).fraud(FraudPolicy::Flag),
    Some(1), &[(2, Rejection::Implausible)]
)]
#[case::a_click_after_the_start_of_the_installation_is_rejected(
    android().same_advertising_id(&[tap(1).before(60)]).store_times(90, 61),
    None, &[(1, Rejection::Implausible)]
)]
#[case::or_flagged_by_policy(
    android().same_advertising_id(&[tap(1).before(60)]).store_times(90, 61).fraud(FraudPolicy::Flag),
    Some(1), &[]
)]
#[case::but_it_ranks_behind_a_plausible_one(
    android()
        .same_advertising_id(&[tap(1).before(60), tap(2).before(DAY)])
        .store_times(90, 61)
        .fraud(FraudPolicy::Flag),
    Some(2), &[(1, Rejection::Implausible)]
)]
#[case::exactly_at_the_window_wins(
    android().same_advertising_id(&[tap(1).before(7 * DAY)]),
    Some(1), &[]
)]
#[case::a_second_past_the_window_loses(
    android().same_advertising_id(&[tap(1).before(7 * DAY + 1)]),
    None, &[(1, Rejection::OutsideWindow)]
)]
fn the_latest_acceptable_click_wins(
    #[case] scene: Scene,
    #[case] winner: Option<u8>,
    #[case] rejected: &[(u8, Rejection)],
) {
    let decision = scene.decide();
    assert_eq!(decision.click, winner.map(click_id));
    assert_eq!(decision.confidence, winner.map(|_| 95));
    for (number, rejection) in rejected {
        assert_eq!(scene.rejection(*number), Some(*rejection));
    }
}

#[test]
fn a_rejected_click_leaves_the_install_organic() {
    let scene = ios().same_advertising_id(&[tap(1).before(8 * DAY)]);
    assert_eq!(scene.outcome(), "organic");
}
