//! Step 7: probabilistic match.
//!
//! Only a click that could have led to the install is a candidate. It must be a person's click on
//! the same platform, before the install and within the window. It must not be credited to another
//! install or rejected by a more reliable method. Every further candidate lowers the confidence,
//! even if its OS version or model rules it out, because other people's clicks from the same
//! address make a match less certain. Clicks that are not candidates neither lower the confidence
//! nor make the address count as shared.
//!
//! A click that is contradicted by timestamps never wins in this step, whatever the app's fraud
//! policy. The window ends at the first open, because the device's address was read at that time.
//!
//! There is no probabilistic match while a valid click id is waiting for its click to be stored.
//! That click is the right one, and a guess would use up a click that belongs to another install.

use super::Case;
use super::evaluation::{EvaluationLog, InstallCredit, considered, latest_first};
use super::{fraud, reason, time};
use crate::app::FraudPolicy;
use crate::attribution::probabilistic::{
    self, ADDRESS_CANDIDATES_MAX, MARGIN_MIN, MatchScore, SCORE_MIN, WINDOW_HOURS_MAX,
};
use crate::attribution::{
    AttributionCandidates, Candidate, ClickLookup, ConsideredCandidate, MatchMethod, MatchType,
    Rejection,
};
use crate::click::address::AddressClass;

/// Credits the click that matches the device, if exactly one does.
pub(super) fn step(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    log: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let evidence = case.evidence;
    // Relay and private addresses are not compared.
    let comparable = evidence.fingerprint.address_class == Some(AddressClass::Other);
    let waiting = facts
        .delivered
        .iter()
        .any(|one| matches!(one.lookup, ClickLookup::Unknown(_)));
    if !evidence.probabilistic_allowed || !comparable || waiting {
        return None;
    }
    let mut found = latest_first(&facts.same_address);
    // A click on another platform cannot match.
    found.retain(|one| {
        !log.has_considered(&one.click) && one.click.platform() == case.evidence.platform
    });
    let (mut eligible, mut latest_rejection) = (Vec::new(), None);
    for candidate in found {
        match ineligible(case, candidate) {
            Some(rejection) => {
                log.consider(rejected_entry(case, candidate, rejection));
                latest_rejection = latest_rejection.or(Some(rejection));
            }
            None => eligible.push(candidate),
        }
    }
    let blanket_rejection = if !case.probabilistic_enabled() {
        Some((
            Rejection::MethodDisabled,
            reason::probabilistic_disabled(eligible.len(), evidence.platform),
        ))
    } else if eligible.len() > ADDRESS_CANDIDATES_MAX {
        Some((
            Rejection::SharedAddress,
            reason::shared_address(window_hours(case)),
        ))
    } else {
        None
    };
    match blanket_rejection {
        _ if eligible.is_empty() => {
            let miss = latest_rejection
                .map(|rejection| reason::same_address_rejected(rejection, window_hours(case)));
            log.near_miss = log.near_miss.take().or(miss);
            None
        }
        None => best(case, facts, &eligible, log),
        Some((rejection, miss)) => {
            let all = eligible
                .iter()
                .map(|one| rejected_entry(case, one, rejection));
            all.for_each(|one| log.consider(one));
            log.near_miss = Some(miss);
            None
        }
    }
}

/// Credits the best-scoring candidate, if it reaches the minimum score and no other comes close.
fn best(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    eligible: &[&Candidate],
    log: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let device = &case.evidence.fingerprint;
    let compared: Vec<_> = eligible
        .iter()
        .map(|one| (*one, probabilistic::compare(&one.click, device)))
        .collect();
    let best = compared
        .iter()
        .filter_map(|(_, similarity)| similarity.score)
        .max()
        .unwrap_or(0);
    let is_close = |similarity: &MatchScore| {
        similarity
            .score
            .is_some_and(|score| score.saturating_add(MARGIN_MIN) > best)
    };
    let close_count = compared
        .iter()
        .filter(|(_, similarity)| is_close(similarity))
        .count();
    let is_enough = best >= SCORE_MIN;
    let mut winner = None;
    for (candidate, similarity) in &compared {
        let rejection = match (is_enough && is_close(similarity), close_count) {
            (true, 1) => None,
            (true, _) => Some(Rejection::Ambiguous),
            (false, _) => Some(Rejection::ScoreTooLow),
        };
        log.consider(ConsideredCandidate {
            score: Some(similarity.score.unwrap_or(0)),
            signals: Some(similarity.signals),
            rejection,
            ..rejected_entry(case, candidate, Rejection::ScoreTooLow)
        });
        if rejection.is_none() {
            winner = Some((*candidate, similarity));
        }
    }
    let Some((candidate, similarity)) = winner else {
        let comparable = compared
            .iter()
            .any(|(_, similarity)| similarity.score.is_some());
        let miss = match (is_enough, comparable) {
            (true, _) => reason::ambiguous(close_count),
            (false, true) => reason::score_too_low(eligible.len()),
            (false, false) => reason::another_device(eligible.len()),
        };
        log.near_miss = Some(miss);
        return None;
    };
    let confidence = probabilistic::confidence(age_millis(case, candidate), eligible.len() - 1);
    let mut credit = InstallCredit::of_click(candidate, MatchType::Probabilistic, confidence);
    credit.reason = reason::probabilistic(eligible.len(), window_hours(case), similarity.signals);
    credit.flags = case.flags(facts, &candidate.click, None);
    Some(credit)
}

/// Returns why a click is not a candidate.
fn ineligible(case: &Case<'_>, candidate: &Candidate) -> Option<Rejection> {
    let contradiction = fraud::click_contradiction(case.evidence, candidate.click.clicked_at);
    let outside = !time::is_within(age_millis(case, candidate), window_hours(case));
    fraud::rejection_of(FraudPolicy::Refuse, candidate, contradiction)
        .or_else(|| outside.then_some(Rejection::OutsideWindow))
}

fn rejected_entry(
    case: &Case<'_>,
    candidate: &Candidate,
    rejection: Rejection,
) -> ConsideredCandidate {
    let age_seconds = time::in_seconds(age_millis(case, candidate));
    let entry = considered(&candidate.click, MatchMethod::Probabilistic, age_seconds);
    ConsideredCandidate {
        rejection: Some(rejection),
        ..entry
    }
}

fn age_millis(case: &Case<'_>, candidate: &Candidate) -> i64 {
    time::age_millis(candidate.click.clicked_at, case.evidence.first_open_at)
}

fn window_hours(case: &Case<'_>) -> i64 {
    case.rules.probabilistic_window_hours.min(WINDOW_HOURS_MAX)
}
