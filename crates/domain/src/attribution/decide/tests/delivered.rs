//! Steps 1 and 2: the click that the device names, and what contradicts it.

use super::scene::*;
use crate::app::FraudPolicy;
use crate::attribution::evidence::ClickIdSource;
use crate::attribution::{ClickLookup, Rejection};
use crate::device::Platform;
use crate::integration::Network;
use rstest::rstest;

#[rstest]
#[case::a_click_that_the_store_names_wins(
    android().by_store(tap(1)),
    "attributed referrer network_a 100 #1"
)]
#[case::a_click_that_the_app_names_wins(
    android().by_client(tap(1)),
    "attributed click_id network_a 100 #1"
)]
#[case::a_click_that_an_iphone_names_wins(
    ios().by_client(tap(1).platform(Platform::Ios)),
    "attributed click_id network_a 100 #1"
)]
#[case::a_named_click_may_come_from_a_desktop(
    android().by_client(tap(1).platform(Platform::Web)),
    "attributed click_id network_a 100 #1"
)]
#[case::every_network_is_credited_alike(
    android().by_store(tap(1).network(Some(Network::D))),
    "attributed referrer network_d 100 #1"
)]
#[case::a_link_without_network_is_credited_to_others(
    android().by_store(tap(1).network(None)),
    "attributed referrer other 100 #1"
)]
#[case::a_wrong_tag_is_a_bad_token(android().names(ClickIdSource::Referrer, ClickLookup::BadToken), "bad_token")]
#[case::another_apps_click_is_foreign(
    android().names(ClickIdSource::Referrer, ClickLookup::Foreign(click_id(1))),
    "foreign_click"
)]
#[case::a_genuine_id_without_click_is_pending(
    android().names(ClickIdSource::Referrer, ClickLookup::Unknown(click_id(1))),
    "pending_click"
)]
#[case::a_taken_click_is_a_duplicate(android().by_store(tap(1).taken()), "duplicate_click")]
#[case::a_bots_click_leaves_the_install_organic(android().by_store(tap(1).bot()), "organic")]
fn what_the_device_names(#[case] scene: Scene, #[case] expected: &str) {
    assert_eq!(scene.outcome(), expected);
}

#[rstest]
#[case::a_click_after_the_begin_of_the_installation(
    android().by_store(tap(1).before(60)).store_times(60, 61)
)]
#[case::the_same_when_the_app_names_it(
    android().by_client(tap(1).before(60)).store_times(90, 61)
)]
#[case::a_tap_in_the_store_after_the_begin_of_the_installation(
    android().by_store(tap(1).before(HOUR)).store_times(HOUR - 61, HOUR - 60)
)]
#[case::a_tap_in_the_store_three_minutes_before_the_click(
    android().by_store(tap(1).before(HOUR)).store_times(HOUR + 3 * MINUTE, 60)
)]
#[case::a_tap_in_the_store_a_second_too_early(
    android().by_store(tap(1).before(HOUR)).store_times(HOUR + 2 * MINUTE + 1, 60)
)]
#[case::a_tap_in_the_store_a_second_too_late(
    android().by_store(tap(1).before(HOUR)).store_times(HOUR - 30 * MINUTE - 1, 60)
)]
fn a_contradicted_click_is_refused_or_marked_as_the_app_says(#[case] scene: Scene) {
    assert_eq!(scene.outcome(), "implausible");
    assert_eq!(scene.rejection(1), Some(Rejection::Implausible));
    for policy in [FraudPolicy::Flag, FraudPolicy::Hold] {
        let decision = scene.clone().fraud(policy).decide();
        assert_eq!(decision.click, Some(click_id(1)), "{policy:?}");
        assert_eq!(decision.state.as_str(), "attributed");
        let flags: Vec<_> = decision.flags.iter().map(|flag| flag.as_str()).collect();
        assert_eq!(flags, ["implausible"], "{policy:?}");
    }
}

#[rstest]
#[case::at_the_begin_of_the_installation(
    android().by_store(tap(1).before(60)).store_times(60, 60)
)]
#[case::in_the_second_of_the_begin(
    android().by_store(tap(1).with(|click| click.clicked_at = after(before_open(60), 999))).store_times(60, 60)
)]
#[case::a_tap_in_the_store_just_early_enough(
    android().by_store(tap(1).before(HOUR)).store_times(HOUR + 2 * MINUTE, 60)
)]
#[case::a_tap_in_the_store_just_late_enough(
    android().by_store(tap(1).before(HOUR)).store_times(HOUR - 30 * MINUTE, 60)
)]
#[case::the_store_is_not_asked_about_what_it_did_not_deliver(
    android().by_client(tap(1).before(HOUR)).store_times(DAY, 60)
)]
fn what_is_just_plausible_is_taken(#[case] scene: Scene) {
    assert_eq!(scene.decide().click, Some(click_id(1)));
    assert!(scene.decide().flags.is_empty());
}

#[rstest]
#[case::refuse(FraudPolicy::Refuse)]
#[case::hold(FraudPolicy::Hold)]
#[case::flag(FraudPolicy::Flag)]
fn no_policy_gives_an_install_to_what_cannot_have_led_to_it(#[case] policy: FraudPolicy) {
    let refused = [
        (android().by_store_untimed(tap(1).before(-1)), "implausible"),
        (android().by_client(tap(1).before(-1)), "implausible"),
        (android().by_store(tap(1).taken()), "duplicate_click"),
        (android().by_store(tap(1).bot()), "organic"),
        (
            android().names(ClickIdSource::Client, ClickLookup::BadToken),
            "bad_token",
        ),
        (
            android().names(ClickIdSource::Client, ClickLookup::Foreign(click_id(1))),
            "foreign_click",
        ),
    ];
    for (scene, expected) in refused {
        assert_eq!(scene.fraud(policy).outcome(), expected);
    }
}

#[test]
fn evidence_that_comes_days_later_is_judged_as_of_the_first_open() {
    let late = |scene: Scene| scene.evidence(|evidence| evidence.now = before_open(-5 * DAY));
    let between = late(android().by_client(tap(1).before(-2 * DAY)));
    assert_eq!(between.outcome(), "implausible");
    let first = late(android().by_client(tap(1).before(6 * DAY)));
    assert_eq!(first.outcome(), "attributed click_id network_a 100 #1");
}

#[test]
fn the_winning_click_brings_what_its_url_and_its_link_said() {
    let mut clicked = tap(1)
        .with(|click| {
            click.captured.campaign.id = Some("42".to_owned());
            click.captured.keyword = Some("running".to_owned());
            click
                .captured
                .query_params
                .insert("ref".to_owned(), "x".to_owned());
        })
        .candidate();
    clicked.deep_link = Some("runner://offer/42".to_owned());
    clicked
        .custom_data
        .insert("invite".to_owned(), "abc".to_owned());
    let scene = android().names(
        ClickIdSource::Client,
        ClickLookup::Found(Box::new(clicked.clone())),
    );
    let decision = scene.decide();
    assert_eq!(decision.link, Some(link_id(1)));
    assert_eq!(decision.campaign, clicked.click.captured.campaign);
    assert_eq!(decision.keyword, clicked.click.captured.keyword);
    assert_eq!(decision.query_params, clicked.click.captured.query_params);
    assert_eq!(decision.deep_link, clicked.deep_link);
    assert_eq!(decision.custom_data, clicked.custom_data);
    assert_eq!(decision.network_click_id, None);
}

fn after(
    at: crate::vocabulary::time::Timestamp,
    millis: u64,
) -> crate::vocabulary::time::Timestamp {
    at.plus(std::time::Duration::from_millis(millis))
}

#[rstest]
#[case::a_moment_ahead_is_a_clock(-120, "attributed referrer network_a 100 #1")]
#[case::more_than_two_minutes_are_made_up(-121, "implausible")]
#[case::so_is_the_far_future(-40 * 365 * 86_400, "implausible")]
fn an_installation_cannot_begin_after_the_first_open(#[case] begin: i64, #[case] expected: &str) {
    let scene = android()
        .by_store(tap(1))
        .evidence(|evidence| evidence.times.install_begin_at_server = Some(before_open(begin)));
    assert_eq!(scene.outcome(), expected);
}
