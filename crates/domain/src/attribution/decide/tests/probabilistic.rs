//! Step 7: probabilistic match.

use super::scene::*;
use crate::app::FraudPolicy;
use crate::attribution::evidence::ClickIdSource;
use crate::attribution::{ADDRESS_CANDIDATES_MAX, ClickLookup, Rejection};
use crate::click::address::AddressClass;
use crate::device::Platform;
use rstest::rstest;

/// Returns an iPhone install of an app with probabilistic matching enabled on iOS.
fn iphone() -> Scene {
    ios().rules(|rules| rules.probabilistic_ios = true)
}

/// Returns a click on an iPhone.
fn apple_tap(number: u8) -> Tap {
    tap(number).platform(Platform::Ios).os("17.5")
}

fn class(scene: Scene, class: Option<AddressClass>) -> Scene {
    scene.fingerprint(|device| device.address_class = class)
}

fn version(scene: Scene, version: &str) -> Scene {
    scene.fingerprint(|device| device.os_version = Some(version.to_owned()))
}

#[rstest]
#[case::exactly_seventy_is_enough(android().same_address(&[tap(1)]), Some((1, 75)))]
#[case::sixty_is_not(android().same_address(&[tap(1).language("")]), None)]
#[case::another_language_gives_no_points(android().same_address(&[tap(1).language("de")]), None)]
#[case::an_unknown_version_gives_no_points(
    android().same_address(&[tap(1).os("")]),
    None
)]
#[case::a_hidden_version_needs_our_landing_page(
    android().same_address(&[tap(1).os("").timezone("Europe/Berlin").screen(400)]),
    Some((1, 75))
)]
#[case::our_landing_page_without_the_screen_is_not_enough(
    android().same_address(&[tap(1).os("").timezone("Europe/Berlin")]),
    None
)]
#[case::another_screen_or_zone_excludes_nothing(
    android().same_address(&[tap(1).timezone("Asia/Tokyo").screen(500)]),
    Some((1, 75))
)]
#[case::a_model_makes_up_for_the_language(
    android().same_address(&[tap(1).model("Pixel 8").language("")]),
    Some((1, 75))
)]
#[case::models_are_compared_without_case(
    android().same_address(&[tap(1).model("PIXEL 8").language("")]),
    Some((1, 75))
)]
#[case::another_model_is_excluded(
    android().same_address(&[
        tap(1).model("Pixel 7").timezone("Europe/Berlin").screen(400)
    ]),
    None
)]
#[case::another_version_is_excluded(
    android().same_address(&[
        tap(1).os("13").model("Pixel 8").timezone("Europe/Berlin").screen(400)
    ]),
    None
)]
#[case::another_platform_is_excluded(
    android().same_address(&[tap(1).platform(Platform::Ios)]),
    None
)]
#[case::the_patch_of_a_version_is_not_compared(
    version(iphone(), "17.5.1").same_address(&[apple_tap(1).os("17.5")]),
    Some((1, 75))
)]
#[case::safari_26_reveals_the_os_version(
    version(iphone(), "26.1").same_address(&[apple_tap(1).os("26.1")]),
    Some((1, 75))
)]
#[case::another_minor_version_is_another_device(
    version(iphone(), "26.1").same_address(&[apple_tap(1).os("26.0")]),
    None
)]
#[case::under_an_hour(android().same_address(&[tap(1).before(HOUR - 1)]), Some((1, 85)))]
#[case::under_six_hours(android().same_address(&[tap(1).before(6 * HOUR - 1)]), Some((1, 75)))]
#[case::six_hours(android().same_address(&[tap(1).before(6 * HOUR)]), Some((1, 65)))]
#[case::exactly_a_day(android().same_address(&[tap(1).before(DAY)]), Some((1, 65)))]
#[case::a_day_and_a_second(android().same_address(&[tap(1).before(DAY + 1)]), None)]
#[case::never_more_than_a_day(
    android()
        .same_address(&[tap(1).before(DAY + 1)])
        .rules(|rules| rules.probabilistic_window_hours = 48),
    None
)]
#[case::the_window_is_the_apps(
    android()
        .same_address(&[tap(1).before(HOUR + 1)])
        .rules(|rules| rules.probabilistic_window_hours = 1),
    None
)]
#[case::two_equal_scores(android().same_address(&[tap(1), tap(2).before(60)]), None)]
#[case::ten_points_ahead_are_enough(
    android().same_address(&[tap(1), tap(2).model("Pixel 8")]),
    Some((2, 60))
)]
#[case::clicks_of_another_version_lower_the_confidence(android().same_address(&crowd(2)), Some((1, 60)))]
#[case::many_clicks_leave_the_minimum_confidence(
    android().same_address(&crowd(ADDRESS_CANDIDATES_MAX)),
    Some((1, 30))
)]
#[case::one_more_and_the_address_is_shared(
    android().same_address(&crowd(ADDRESS_CANDIDATES_MAX + 1)),
    None
)]
#[case::a_bot_does_not_lower_the_confidence(android().same_address(&[tap(1), tap(2).bot()]), Some((1, 75)))]
#[case::a_taken_click_does_not_lower_the_confidence(android().same_address(&[tap(1), tap(2).taken()]), Some((1, 75)))]
#[case::bots_do_not_make_an_address_shared(
    android().same_address(&crowd(ADDRESS_CANDIDATES_MAX)).same_address(&[tap(99).bot()]),
    Some((1, 30))
)]
#[case::a_relay_is_not_compared(
    class(android().same_address(&[tap(1)]), Some(AddressClass::Relay)),
    None
)]
#[case::a_private_address_is_not_compared(
    class(android().same_address(&[tap(1)]), Some(AddressClass::Private)),
    None
)]
#[case::an_unknown_address_is_not_compared(class(android().same_address(&[tap(1)]), None), None)]
#[case::iphones_are_not_matched_by_default(ios().same_address(&[apple_tap(1)]), None)]
#[case::iphones_are_matched_if_enabled(
    iphone().same_address(&[apple_tap(1)]),
    Some((1, 75))
)]
#[case::switched_off(
    android().same_address(&[tap(1)]).rules(|rules| rules.probabilistic_android = false),
    None
)]
#[case::only_the_first_configure_is_matched(
    android().same_address(&[tap(1)]).evidence(|evidence| evidence.probabilistic_allowed = false),
    None
)]
#[case::an_organic_referrer_does_not_rule_it_out(
    android().referrer("").same_address(&[tap(1)]),
    Some((1, 75))
)]
#[case::a_click_after_the_start_of_the_installation_is_no_candidate(
    android()
        .same_address(&[tap(1).before(60)])
        .store_times(90, 61)
        .fraud(FraudPolicy::Flag),
    None
)]
#[case::a_click_after_the_first_open_is_no_candidate(
    android().same_address(&[tap(1).before(-1)]).fraud(FraudPolicy::Flag),
    None
)]
#[case::a_rejected_delivered_click_is_not_matched(
    android()
        .through_client(tap(1).before(2 * HOUR))
        .same_address(&[tap(1).before(2 * HOUR)])
        .window(1),
    None
)]
#[case::nothing_is_matched_while_a_valid_click_is_pending(
    android()
        .delivers(ClickIdSource::Referrer, ClickLookup::Unknown(click_id(9)))
        .same_address(&[tap(1)]),
    None
)]
#[case::a_forged_id_does_not_prevent_a_match(
    android().delivers(ClickIdSource::Referrer, ClickLookup::BadToken).same_address(&[tap(1)]),
    Some((1, 75))
)]
fn matches_similar_clicks(#[case] scene: Scene, #[case] expected: Option<(u8, u8)>) {
    let decision = scene.decide();
    let number = decision.click.map(|click| click.as_bytes()[0]);
    assert_eq!(number.zip(decision.confidence), expected);
    let is_probabilistic = decision.match_type.as_str() == "probabilistic";
    assert_eq!(is_probabilistic, expected.is_some());
}

#[rstest]
#[case::too_low(android().same_address(&[tap(1).language("")]), Rejection::ScoreTooLow)]
#[case::excluded(android().same_address(&[tap(1).os("13")]), Rejection::ScoreTooLow)]
#[case::ambiguous(android().same_address(&[tap(1), tap(2)]), Rejection::Ambiguous)]
#[case::behind_the_best(
    android().same_address(&[tap(1), tap(2).model("Pixel 8")]),
    Rejection::ScoreTooLow
)]
#[case::shared(
    android().same_address(&crowd(ADDRESS_CANDIDATES_MAX + 1)).same_address(&[tap(1).before(1)]),
    Rejection::SharedAddress
)]
#[case::disabled(ios().same_address(&[apple_tap(1)]), Rejection::MethodDisabled)]
#[case::bot(android().same_address(&[tap(1).bot()]), Rejection::Bot)]
#[case::taken(android().same_address(&[tap(1).taken()]), Rejection::DuplicateClick)]
#[case::too_old(android().same_address(&[tap(1).before(DAY + 1)]), Rejection::OutsideWindow)]
fn records_why_a_click_was_rejected(#[case] scene: Scene, #[case] expected: Rejection) {
    assert_eq!(scene.rejection(1), Some(expected));
}
