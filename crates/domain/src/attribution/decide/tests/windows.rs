//! Maximum age of a click, and the clock that measures it.

use super::scene::*;
use rstest::rstest;

const WEEK: i64 = 7 * DAY;

#[rstest]
#[case::exactly_at_the_window_wins(android().through_client(tap(1).before(WEEK)), true)]
#[case::a_second_past_the_window_loses(android().through_client(tap(1).before(WEEK + 1)), false)]
#[case::the_window_is_the_apps(android().through_client(tap(1).before(HOUR)).window(1), true)]
#[case::a_second_past_the_apps_own_window_loses(
    android().through_client(tap(1).before(HOUR + 1)).window(1),
    false
)]
#[case::thirty_days_at_most(android().through_client(tap(1).before(30 * DAY)).window(720), true)]
#[case::through_the_store_the_window_ends_at_the_start_of_the_installation(
    android().through_store(tap(1).before(20 * DAY)).store_times(20 * DAY, 13 * DAY),
    true
)]
#[case::a_second_past_it_by_googles_clock_loses(
    android().through_store(tap(1).before(20 * DAY)).store_times(20 * DAY, 13 * DAY - 1),
    false
)]
#[case::googles_clock_counts_for_an_id_from_the_app(
    android().through_client(tap(1).before(20 * DAY)).store_times(20 * DAY, 13 * DAY),
    true
)]
#[case::googles_clock_counts_before_the_devices(
    android()
        .through_store(tap(1).before(20 * DAY))
        .store_times(20 * DAY, 13 * DAY - 1)
        .device_times(20 * DAY, 19 * DAY),
    false
)]
#[case::without_googles_clock_the_devices_counts(
    android().through_store_without_times(tap(1).before(20 * DAY)).device_times(20 * DAY, 13 * DAY),
    true
)]
#[case::a_second_past_it_by_the_devices_clock_loses(
    android()
        .through_store_without_times(tap(1).before(20 * DAY))
        .device_times(20 * DAY, 13 * DAY - 1),
    false
)]
#[case::a_device_that_installed_before_the_click_has_a_wrong_clock(
    android()
        .through_store_without_times(tap(1).before(20 * DAY))
        .device_times(999 * DAY, 999 * DAY),
    false
)]
#[case::a_wrong_clock_does_not_affect_a_recent_click(
    android().through_store_without_times(tap(1).before(HOUR)).device_times(999 * DAY, 999 * DAY),
    true
)]
#[case::without_any_clock_the_first_open_counts(
    android().through_store_without_times(tap(1).before(WEEK)),
    true
)]
#[case::a_second_past_the_first_open_loses(
    android().through_store_without_times(tap(1).before(WEEK + 1)),
    false
)]
#[case::the_devices_clock_does_not_count_for_ids_from_the_app(
    android().through_client(tap(1).before(20 * DAY)).device_times(20 * DAY, 19 * DAY),
    false
)]
fn checks_the_age_of_delivered_clicks(#[case] scene: Scene, #[case] wins: bool) {
    let decision = scene.decide();
    assert_eq!(decision.click.is_some(), wins);
    assert_eq!(
        decision.state.as_str(),
        if wins { "attributed" } else { "outside_window" }
    );
}
