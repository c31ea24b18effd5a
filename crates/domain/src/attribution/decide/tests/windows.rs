//! How old a click may be, and by whose clock.

use super::scene::*;
use rstest::rstest;

const WEEK: i64 = 7 * DAY;

#[rstest]
#[case::exactly_at_the_window_wins(android().by_client(tap(1).before(WEEK)), true)]
#[case::a_second_past_the_window_loses(android().by_client(tap(1).before(WEEK + 1)), false)]
#[case::the_window_is_the_apps(android().by_client(tap(1).before(HOUR)).window(1), true)]
#[case::a_second_past_the_apps_own_window_loses(
    android().by_client(tap(1).before(HOUR + 1)).window(1),
    false
)]
#[case::thirty_days_at_most(android().by_client(tap(1).before(30 * DAY)).window(720), true)]
#[case::by_the_store_the_window_ends_with_the_begin_of_the_installation(
    android().by_store(tap(1).before(20 * DAY)).store_times(20 * DAY, 13 * DAY),
    true
)]
#[case::a_second_past_it_by_googles_clock_loses(
    android().by_store(tap(1).before(20 * DAY)).store_times(20 * DAY, 13 * DAY - 1),
    false
)]
#[case::googles_clock_counts_for_a_click_that_the_app_names(
    android().by_client(tap(1).before(20 * DAY)).store_times(20 * DAY, 13 * DAY),
    true
)]
#[case::googles_clock_counts_before_the_devices(
    android()
        .by_store(tap(1).before(20 * DAY))
        .store_times(20 * DAY, 13 * DAY - 1)
        .device_times(20 * DAY, 19 * DAY),
    false
)]
#[case::without_googles_clock_the_devices_has_to_do(
    android().by_store_untimed(tap(1).before(20 * DAY)).device_times(20 * DAY, 13 * DAY),
    true
)]
#[case::a_second_past_it_by_the_devices_clock_loses(
    android().by_store_untimed(tap(1).before(20 * DAY)).device_times(20 * DAY, 13 * DAY - 1),
    false
)]
#[case::a_device_that_installed_before_the_click_has_a_wrong_clock(
    android().by_store_untimed(tap(1).before(20 * DAY)).device_times(999 * DAY, 999 * DAY),
    false
)]
#[case::a_wrong_clock_costs_a_fresh_click_nothing(
    android().by_store_untimed(tap(1).before(HOUR)).device_times(999 * DAY, 999 * DAY),
    true
)]
#[case::without_any_clock_the_first_open_counts(
    android().by_store_untimed(tap(1).before(WEEK)),
    true
)]
#[case::a_second_past_the_first_open_loses(
    android().by_store_untimed(tap(1).before(WEEK + 1)),
    false
)]
#[case::the_devices_clock_is_not_asked_about_what_the_store_did_not_deliver(
    android().by_client(tap(1).before(20 * DAY)).device_times(20 * DAY, 19 * DAY),
    false
)]
fn how_old_a_named_click_may_be(#[case] scene: Scene, #[case] wins: bool) {
    let decision = scene.decide();
    assert_eq!(decision.click.is_some(), wins);
    assert_eq!(
        decision.state.as_str(),
        if wins { "attributed" } else { "outside_window" }
    );
}
