//! Steps 1 and 2: click ids that the device delivered.

use super::Case;
use super::evaluation::{EvaluationLog, InstallCredit, RejectedClaim, considered, without_click};
use super::{fraud, reason, time};
use crate::attribution::evidence::ClickIdSource;
use crate::attribution::{
    AttributionCandidates, Candidate, ClickLookup, ConsideredCandidate, DeliveredClick, Flag,
    MatchMethod, MatchState, MatchType, Rejection,
};

/// Confidence of a valid click id, in percent.
const CONFIDENCE: u8 = 100;
/// Subject of the sentence that explains a rejection.
const SUBJECT: &str = "The click reported by the device";

/// Credits the first delivered click that is acceptable. If no click is acceptable, the first
/// rejection determines the install's state.
pub(super) fn step(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    log: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let mut delivered: Vec<&DeliveredClick> = facts.delivered.iter().collect();
    delivered.sort_by_key(|one| one.source);
    delivered
        .into_iter()
        .find_map(|one| evaluate(case, facts, one, log))
}

fn evaluate(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    one: &DeliveredClick,
    log: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let (state, rejection, click, reason) = match &one.lookup {
        ClickLookup::Found(candidate) => {
            return evaluate_stored(case, facts, candidate, one.source, log);
        }
        ClickLookup::BadToken => (
            MatchState::BadToken,
            Rejection::BadToken,
            None,
            reason::BAD_TOKEN.to_owned(),
        ),
        // Does not reveal another app's click, not even its id.
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
    log.consider(ConsideredCandidate {
        click,
        ..without_click(method(one.source), Some(rejection))
    });
    log.reject_claim(RejectedClaim { state, reason });
    None
}

fn method(source: ClickIdSource) -> MatchMethod {
    match source {
        ClickIdSource::Referrer => MatchMethod::Referrer,
        ClickIdSource::Client | ClickIdSource::AppLink => MatchMethod::ClickId,
    }
}

fn evaluate_stored(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    candidate: &Candidate,
    source: ClickIdSource,
    log: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let (evidence, rules) = (case.evidence, case.rules);
    let click = &candidate.click;
    let by_store = source == ClickIdSource::Referrer;
    let (install_at, contradiction, match_type) = if by_store {
        let install_at = time::install_at_for_referrer(evidence, click.clicked_at);
        let contradiction = fraud::referrer_contradiction(evidence, click.clicked_at);
        (install_at, contradiction, MatchType::Referrer)
    } else {
        let contradiction = fraud::click_contradiction(evidence, click.clicked_at);
        (
            time::install_at(evidence),
            contradiction,
            MatchType::ClickId,
        )
    };
    let age_millis = time::age_millis(click.clicked_at, install_at);
    let age_seconds = time::in_seconds(age_millis);
    let outside = !time::is_within(age_millis, rules.click_window_hours);
    let rejection = fraud::rejection_of(rules.fraud, candidate, contradiction)
        .or_else(|| outside.then_some(Rejection::OutsideWindow));
    log.consider(ConsideredCandidate {
        rejection,
        ..considered(click, method(source), age_seconds)
    });
    if let Some(rejection) = rejection {
        let state = match rejection {
            Rejection::Implausible => MatchState::Implausible,
            Rejection::OutsideWindow => MatchState::OutsideWindow,
            Rejection::DuplicateClick => MatchState::DuplicateClick,
            // A click that never counts is treated like no click at all.
            _ => MatchState::Organic,
        };
        let reason = reason::rejected(SUBJECT, rejection, contradiction, rules.click_window_hours);
        log.reject_claim(RejectedClaim { state, reason });
        return None;
    }
    let mut credit = InstallCredit::of_click(candidate, match_type, CONFIDENCE);
    credit.reason = reason::delivered(
        source,
        age_seconds,
        time::name_of_install(evidence, install_at),
        contradiction,
    );
    credit.flags = case.flags(facts, click, contradiction);
    if source == ClickIdSource::AppLink {
        // The tap itself opened the app, so a short click-to-install time is expected.
        credit.flags.remove(&Flag::ShortCtit);
    }
    if by_store && time::is_unverified(&evidence.times) {
        credit.flags.insert(Flag::UnverifiedTime);
    }
    Some(credit)
}
