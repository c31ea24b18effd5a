//! Steps 1 and 2: the click that the device names.

use super::Case;
use super::evaluation::{EvaluationLog, InstallCredit, RejectedClaim, considered, without_click};
use super::{fraud, reason, time};
use crate::attribution::evidence::ClickIdSource;
use crate::attribution::{
    AttributionCandidates, Candidate, ClickLookup, ConsideredCandidate, DeliveredClick, Flag,
    MatchMethod, MatchState, MatchType, Rejection,
};

/// How sure a genuine click id is.
const CONFIDENCE: u8 = 100;
/// What a refusal is about.
const SUBJECT: &str = "The click that this install names";

/// The first of the clicks that the device names which may have the install. The first refusal is what the
/// install's state says, should none have it.
pub(super) fn step(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    course: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let mut named: Vec<&DeliveredClick> = facts.delivered.iter().collect();
    named.sort_by_key(|one| one.source);
    named
        .into_iter()
        .find_map(|one| judge(case, facts, one, course))
}

fn judge(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    one: &DeliveredClick,
    course: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let (state, rejection, click, reason) = match &one.lookup {
        ClickLookup::Found(candidate) => return found(case, facts, candidate, one.source, course),
        ClickLookup::BadToken => (
            MatchState::BadToken,
            Rejection::BadToken,
            None,
            reason::BAD_TOKEN.to_owned(),
        ),
        // Another app's click is nobody's business here, not even its id.
        ClickLookup::Foreign(_) => (
            MatchState::ForeignClick,
            Rejection::ForeignClick,
            None,
            reason::FOREIGN_CLICK.to_owned(),
        ),
        ClickLookup::Unknown(click) => (
            MatchState::PendingClick,
            Rejection::PendingClick,
            Some(*click),
            reason::pending_click(),
        ),
    };
    course.consider(ConsideredCandidate {
        click,
        ..without_click(method(one.source), Some(rejection))
    });
    course.reject_claim(RejectedClaim { state, reason });
    None
}

fn method(by: ClickIdSource) -> MatchMethod {
    match by {
        ClickIdSource::Referrer => MatchMethod::Referrer,
        ClickIdSource::Client | ClickIdSource::AppLink => MatchMethod::ClickId,
    }
}

fn found(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    candidate: &Candidate,
    by: ClickIdSource,
    course: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let (evidence, rules) = (case.evidence, case.rules);
    let click = &candidate.click;
    let by_store = by == ClickIdSource::Referrer;
    let (install_at, against, match_type) = if by_store {
        let install_at = time::install_at_for_referrer(evidence, click.clicked_at);
        let against = fraud::referrer_contradiction(evidence, click.clicked_at);
        (install_at, against, MatchType::Referrer)
    } else {
        let against = fraud::click_contradiction(evidence, click.clicked_at);
        (time::install_at(evidence), against, MatchType::ClickId)
    };
    let age_millis = time::age_millis(click.clicked_at, install_at);
    let age_seconds = time::in_seconds(age_millis);
    let outside = !time::is_within(age_millis, rules.click_window_hours);
    let rejected = fraud::rejection_of(rules.fraud, candidate, against)
        .or_else(|| outside.then_some(Rejection::OutsideWindow));
    course.consider(ConsideredCandidate {
        rejection: rejected,
        ..considered(click, method(by), age_seconds)
    });
    if let Some(rejection) = rejected {
        let state = match rejection {
            Rejection::Implausible => MatchState::Implausible,
            Rejection::OutsideWindow => MatchState::OutsideWindow,
            Rejection::DuplicateClick => MatchState::DuplicateClick,
            // A crawler's click is as good as none.
            _ => MatchState::Organic,
        };
        let reason = reason::rejected(SUBJECT, rejection, against, rules.click_window_hours);
        course.reject_claim(RejectedClaim { state, reason });
        return None;
    }
    let mut credit = InstallCredit::of_click(candidate, match_type, CONFIDENCE);
    credit.reason = reason::delivered(by, age_seconds, against);
    credit.flags = case.flags(facts, click, against);
    if by == ClickIdSource::AppLink {
        // The tap opened the app: no time lies between them.
        credit.flags.remove(&Flag::ShortCtit);
    }
    if by_store && time::is_unverified(&evidence.times) {
        credit.flags.insert(Flag::UnverifiedTime);
    }
    Some(credit)
}
