//! Later evidence, case by case.

use super::*;
use crate::attribution::evidence::ReferrerTimes;
use crate::attribution::{CreditedNetwork, EvidenceSummary, SettingsSummary};
use crate::link::Campaign;
use crate::vocabulary::time::Timestamp;
use rstest::rstest;
use std::collections::{BTreeMap, BTreeSet};

const HOURS: i64 = 60 * 60 * 1_000;
const WINDOW_HOURS: i64 = 168;
const WINDOW: i64 = WINDOW_HOURS * HOURS;

/// State and kind of evidence of a decision.
type Outcome = (MatchState, MatchType);

const BY_CLICK_ID: Outcome = (MatchState::Attributed, MatchType::ClickId);
const BY_STORE: Outcome = (MatchState::Attributed, MatchType::Referrer);
const BY_APPLE: Outcome = (MatchState::Attributed, MatchType::AdServices);
const PROBABILISTIC: Outcome = (MatchState::Attributed, MatchType::Probabilistic);
const THIRD_PARTY: Outcome = (MatchState::ThirdParty, MatchType::Referrer);
const ORGANIC: Outcome = (MatchState::Organic, MatchType::Organic);
const UNAVAILABLE: Outcome = (MatchState::Unavailable, MatchType::Organic);
const PENDING: Outcome = (MatchState::PendingClick, MatchType::Organic);
const BAD_TOKEN: Outcome = (MatchState::BadToken, MatchType::Organic);
const FOREIGN: Outcome = (MatchState::ForeignClick, MatchType::Organic);
const IMPLAUSIBLE: Outcome = (MatchState::Implausible, MatchType::Organic);
const OUTSIDE: Outcome = (MatchState::OutsideWindow, MatchType::Organic);
const DUPLICATE: Outcome = (MatchState::DuplicateClick, MatchType::Organic);

fn decision((state, match_type): Outcome) -> Decision {
    Decision {
        state,
        match_type,
        network: CreditedNetwork::Other,
        confidence: Some(100),
        click: None,
        link: None,
        campaign: Campaign::default(),
        keyword: None,
        network_click_id: None,
        deep_link: None,
        custom_data: BTreeMap::new(),
        query_params: BTreeMap::new(),
        reason: String::new(),
        flags: BTreeSet::new(),
        candidates: Vec::new(),
        evidence: EvidenceSummary::default(),
        times: ReferrerTimes::default(),
        settings: SettingsSummary {
            click_window_hours: WINDOW_HOURS,
            probabilistic: true,
            window_hours: 24,
        },
    }
}

/// Returns whether a decision at the first open is replaced by a later one.
fn is_replaced(current: Outcome, later: Outcome, after_millis: i64, window_hours: i64) -> bool {
    let at = Timestamp::from_millis;
    let current = AttributionSummary {
        state: current.0,
        match_type: current.1,
        confidence: Some(100),
        decided_at: at(0),
        first_open_at: at(0),
    };
    improves(&current, &decision(later), window_hours, at(after_millis))
}

#[rstest]
#[case::organic_then_apple(ORGANIC, BY_APPLE)]
#[case::organic_then_a_click_id(ORGANIC, BY_CLICK_ID)]
#[case::organic_then_a_third_party_referrer(ORGANIC, THIRD_PARTY)]
#[case::organic_then_probabilistic(ORGANIC, PROBABILISTIC)]
#[case::unavailable_then_a_referrer(UNAVAILABLE, BY_STORE)]
#[case::unavailable_then_a_third_party_referrer(UNAVAILABLE, THIRD_PARTY)]
#[case::pending_then_its_click(PENDING, BY_STORE)]
#[case::pending_then_apple(PENDING, BY_APPLE)]
#[case::bad_token_then_a_valid_one(BAD_TOKEN, BY_CLICK_ID)]
#[case::foreign_then_one_of_ours(FOREIGN, BY_CLICK_ID)]
#[case::implausible_then_apple(IMPLAUSIBLE, BY_APPLE)]
#[case::too_old_then_apple(OUTSIDE, BY_APPLE)]
#[case::duplicate_then_apple(DUPLICATE, BY_APPLE)]
#[case::probabilistic_then_a_click_id(PROBABILISTIC, BY_CLICK_ID)]
#[case::probabilistic_then_apple(PROBABILISTIC, BY_APPLE)]
#[case::probabilistic_then_a_third_party_referrer(PROBABILISTIC, THIRD_PARTY)]
#[case::pending_then_a_rejection_of_its_click(PENDING, DUPLICATE)]
#[case::pending_then_its_click_is_implausible(PENDING, IMPLAUSIBLE)]
#[case::pending_then_its_click_is_too_old(PENDING, OUTSIDE)]
fn a_better_decision_replaces_the_current_one(#[case] current: Outcome, #[case] later: Outcome) {
    assert!(is_replaced(current, later, HOURS, WINDOW_HOURS));
}

#[rstest]
#[case::certain_then_anything(BY_CLICK_ID, BY_STORE)]
#[case::certain_then_apple(BY_STORE, BY_APPLE)]
#[case::apple_then_a_click_id(BY_APPLE, BY_CLICK_ID)]
#[case::a_third_party_referrer_then_a_click_id(THIRD_PARTY, BY_CLICK_ID)]
#[case::certain_then_probabilistic(BY_CLICK_ID, PROBABILISTIC)]
#[case::certain_then_nothing(BY_CLICK_ID, ORGANIC)]
#[case::probabilistic_then_probabilistic(PROBABILISTIC, PROBABILISTIC)]
#[case::probabilistic_then_nothing(PROBABILISTIC, ORGANIC)]
#[case::probabilistic_then_a_forged_id(PROBABILISTIC, BAD_TOKEN)]
#[case::organic_then_organic(ORGANIC, ORGANIC)]
#[case::organic_then_a_forged_id(ORGANIC, BAD_TOKEN)]
#[case::organic_then_unavailable(ORGANIC, UNAVAILABLE)]
#[case::pending_then_nothing(PENDING, ORGANIC)]
#[case::pending_then_pending(PENDING, PENDING)]
#[case::pending_then_a_forged_id(PENDING, BAD_TOKEN)]
#[case::pending_then_another_apps_click(PENDING, FOREIGN)]
#[case::organic_then_a_rejection_of_a_click(ORGANIC, DUPLICATE)]
fn any_other_decision_does_not(#[case] current: Outcome, #[case] later: Outcome) {
    assert!(!is_replaced(current, later, HOURS, WINDOW_HOURS));
}

#[rstest]
#[case::at_the_end_of_the_window(ORGANIC, BY_APPLE, WINDOW, WINDOW_HOURS, true)]
#[case::after_the_window(ORGANIC, BY_APPLE, WINDOW + 1, WINDOW_HOURS, false)]
#[case::probabilistic_after_the_window(PROBABILISTIC, BY_CLICK_ID, WINDOW + 1, WINDOW_HOURS, false)]
#[case::the_window_is_the_apps(ORGANIC, BY_APPLE, HOURS + 1, 1, false)]
#[case::waits_a_day_for_a_pending_click(PENDING, BY_STORE, 24 * HOURS, 1, true)]
#[case::and_not_longer(PENDING, BY_STORE, 24 * HOURS + 1, 1, false)]
#[case::unless_the_window_is_longer(PENDING, BY_STORE, 24 * HOURS + 1, WINDOW_HOURS, true)]
fn replaces_only_in_time(
    #[case] current: Outcome,
    #[case] later: Outcome,
    #[case] after_millis: i64,
    #[case] window_hours: i64,
    #[case] expected: bool,
) {
    assert_eq!(
        is_replaced(current, later, after_millis, window_hours),
        expected
    );
}

#[rstest]
#[case::pending(MatchState::PendingClick, 24 * HOURS, MatchState::PendingClick)]
#[case::pending_for_more_than_a_day(MatchState::PendingClick, 24 * HOURS + 1, MatchState::BadToken)]
#[case::any_other_stays(MatchState::Organic, 99 * HOURS, MatchState::Organic)]
fn a_pending_click_becomes_a_bad_token_after_a_day(
    #[case] state: MatchState,
    #[case] after_millis: i64,
    #[case] expected: MatchState,
) {
    let at = Timestamp::from_millis;
    assert_eq!(effective_state(state, at(0), at(after_millis)), expected);
}

#[test]
fn a_certain_decision_is_never_replaced() {
    for current in [BY_CLICK_ID, BY_STORE, BY_APPLE, THIRD_PARTY] {
        for state in MatchState::ALL {
            for match_type in MatchType::ALL {
                assert!(!is_replaced(
                    current,
                    (*state, *match_type),
                    0,
                    WINDOW_HOURS
                ));
            }
        }
    }
}

#[rstest]
#[case::a_tap_replaces_a_view(90, Some(100), true)]
#[case::a_view_does_not_replace_a_view(90, Some(90), false)]
#[case::nothing_replaces_a_tap(100, Some(100), false)]
fn taps_replace_views(#[case] before: u8, #[case] later: Option<u8>, #[case] expected: bool) {
    let current = AttributionSummary {
        state: MatchState::Attributed,
        match_type: MatchType::AdServices,
        confidence: Some(before),
        decided_at: Timestamp::from_millis(0),
        first_open_at: Timestamp::from_millis(0),
    };
    let tap = Decision {
        confidence: later,
        ..decision((MatchState::Attributed, MatchType::ClickId))
    };
    assert_eq!(
        improves(&current, &tap, WINDOW_HOURS, Timestamp::from_millis(1)),
        expected
    );
}
