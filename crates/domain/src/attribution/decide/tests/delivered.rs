//! Steps 1 and 2: delivered click ids, and what contradicts them.

use super::scene::*;
use crate::app::FraudPolicy;
use crate::attribution::evidence::ClickIdSource;
use crate::attribution::{ClickLookup, Rejection};
use crate::device::Platform;
use crate::integration::Network;
use rstest::rstest;

#[rstest]
#[case::a_click_id_from_the_store_wins(
    android().through_store(tap(1)),
    "attributed referrer network_a 100 #1"
)]
#[case::a_click_id_from_the_app_wins(
    android().through_client(tap(1)),
    "attributed click_id network_a 100 #1"
)]
#[case::a_click_id_from_an_iphone_wins(
    ios().through_client(tap(1).platform(Platform::Ios)),
    "attributed click_id network_a 100 #1"
)]
#[case::a_delivered_click_may_come_from_a_desktop(
    android().through_client(tap(1).platform(Platform::Web)),
    "attributed click_id network_a 100 #1"
)]
#[case::every_network_is_credited(
    android().through_store(tap(1).network(Some(Network::D))),
    "attributed referrer network_d 100 #1"
)]
#[case::a_link_without_network_is_credited_to_others(
    android().through_store(tap(1).network(None)),
    "attributed referrer other 100 #1"
)]
#[case::a_wrong_signature_is_a_bad_token(android().delivers(ClickIdSource::Referrer, ClickLookup::BadToken), "bad_token")]
#[case::another_apps_click_is_foreign(
    android().delivers(ClickIdSource::Referrer, ClickLookup::Foreign(click_id(1))),
    "foreign_click"
)]
#[case::a_valid_id_without_a_click_is_pending(
    android().delivers(ClickIdSource::Referrer, ClickLookup::Unknown(click_id(1))),
    "pending_click"
)]
#[case::a_taken_click_is_a_duplicate(android().through_store(tap(1).taken()), "duplicate_click")]
#[case::a_bots_click_leaves_the_install_organic(android().through_store(tap(1).bot()), "organic")]
#[case::so_does_a_click_on_a_test_link(android().through_client(tap(1).on_test_link()), "organic")]
fn credits_delivered_clicks(#[case] scene: Scene, #[case] expected: &str) {
    assert_eq!(scene.outcome(), expected);
}

#[rstest]
#[case::a_click_after_the_start_of_the_installation(
    android().through_store(tap(1).before(60)).store_times(60, 61)
)]
#[case::the_same_for_an_id_from_the_app(
    android().through_client(tap(1).before(60)).store_times(90, 61)
)]
#[case::a_store_tap_after_the_start_of_the_installation(
    android().through_store(tap(1).before(HOUR)).store_times(HOUR - 61, HOUR - 60)
)]
#[case::a_store_tap_three_minutes_before_the_click(
    android().through_store(tap(1).before(HOUR)).store_times(HOUR + 3 * MINUTE, 60)
)]
#[case::a_store_tap_a_second_too_early(
    android().through_store(tap(1).before(HOUR)).store_times(HOUR + 2 * MINUTE + 1, 60)
)]
#[case::a_store_tap_a_second_too_late(
    android().through_store(tap(1).before(HOUR)).store_times(HOUR - 30 * MINUTE - 1, 60)
)]
fn the_policy_rejects_or_flags_a_contradicted_click(#[case] scene: Scene) {
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
#[case::at_the_start_of_the_installation(
    android().through_store(tap(1).before(60)).store_times(60, 60)
)]
#[case::in_the_same_second(
    android()
        .through_store(tap(1).with(|click| click.clicked_at = after(before_open(60), 999)))
        .store_times(60, 60)
)]
#[case::a_store_tap_just_early_enough(
    android().through_store(tap(1).before(HOUR)).store_times(HOUR + 2 * MINUTE, 60)
)]
#[case::a_store_tap_just_late_enough(
    android().through_store(tap(1).before(HOUR)).store_times(HOUR - 30 * MINUTE, 60)
)]
#[case::store_taps_do_not_affect_ids_from_the_app(
    android().through_client(tap(1).before(HOUR)).store_times(DAY, 60)
)]
fn accepts_barely_plausible_clicks(#[case] scene: Scene) {
    assert_eq!(scene.decide().click, Some(click_id(1)));
    assert!(scene.decide().flags.is_empty());
}

#[rstest]
#[case::refuse(FraudPolicy::Refuse)]
#[case::hold(FraudPolicy::Hold)]
#[case::flag(FraudPolicy::Flag)]
fn no_policy_credits_an_impossible_click(#[case] policy: FraudPolicy) {
    let rejected = [
        (
            android().through_store_without_times(tap(1).before(-1)),
            "implausible",
        ),
        (android().through_client(tap(1).before(-1)), "implausible"),
        (android().through_store(tap(1).taken()), "duplicate_click"),
        (android().through_store(tap(1).bot()), "organic"),
        (
            android().delivers(ClickIdSource::Client, ClickLookup::BadToken),
            "bad_token",
        ),
        (
            android().delivers(ClickIdSource::Client, ClickLookup::Foreign(click_id(1))),
            "foreign_click",
        ),
    ];
    for (scene, expected) in rejected {
        assert_eq!(scene.fraud(policy).outcome(), expected);
    }
}

#[test]
fn late_evidence_is_judged_as_of_the_first_open() {
    let late = |scene: Scene| scene.evidence(|evidence| evidence.now = before_open(-5 * DAY));
    let between = late(android().through_client(tap(1).before(-2 * DAY)));
    assert_eq!(between.outcome(), "implausible");
    let first = late(android().through_client(tap(1).before(6 * DAY)));
    assert_eq!(first.outcome(), "attributed click_id network_a 100 #1");
}

#[test]
fn the_winning_click_supplies_url_and_link_data() {
    let mut candidate_click = tap(1)
        .with(|click| {
            click.captured.campaign.id = Some("42".to_owned());
            click.captured.keyword = Some("running".to_owned());
            click
                .captured
                .query_params
                .insert("ref".to_owned(), "x".to_owned());
        })
        .candidate();
    candidate_click.deep_link = Some("runner://offer/42".to_owned());
    candidate_click
        .custom_data
        .insert("invite".to_owned(), "abc".to_owned());
    let scene = android().delivers(
        ClickIdSource::Client,
        ClickLookup::Found(Box::new(candidate_click.clone())),
    );
    let decision = scene.decide();
    assert_eq!(decision.link, Some(link_id(1)));
    assert_eq!(decision.campaign, candidate_click.click.captured.campaign);
    assert_eq!(decision.keyword, candidate_click.click.captured.keyword);
    assert_eq!(
        decision.query_params,
        candidate_click.click.captured.query_params
    );
    assert_eq!(decision.deep_link, candidate_click.deep_link);
    assert_eq!(decision.custom_data, candidate_click.custom_data);
    assert_eq!(decision.network_click_id, None);
}

fn after(
    at: crate::vocabulary::time::Timestamp,
    millis: u64,
) -> crate::vocabulary::time::Timestamp {
    at.plus(std::time::Duration::from_millis(millis))
}

#[rstest]
#[case::two_minutes_are_clock_skew(-120, "attributed referrer network_a 100 #1")]
#[case::more_than_two_minutes_are_implausible(-121, "implausible")]
#[case::so_is_the_far_future(-40 * 365 * 86_400, "implausible")]
fn an_installation_cannot_begin_after_the_first_open(#[case] start: i64, #[case] expected: &str) {
    let scene = android()
        .through_store(tap(1))
        .evidence(|evidence| evidence.times.install_begin_at_server = Some(before_open(start)));
    assert_eq!(scene.outcome(), expected);
}
