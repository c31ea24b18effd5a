//! Step 7: a click that is like the first open.
//!
//! Only a click that could have led to the install is a candidate: a person's, on the same platform, before
//! the install, within the window, without an install yet, and not refused by a surer method. Such a click
//! counts as company on the address even when its version or model excludes it, since somebody else's taps
//! from there are just what makes a guess unsure. Any other click counts for nothing: it takes no
//! confidence, and does not make an address a shared one.
//!
//! A guess that the times contradict is wrong, whatever the app's policy says, so such a click never wins
//! here. The window ends at the first open, because the address is that of the first open.
//!
//! Nothing is guessed while a genuine click id waits for its click: that click is the one, and a guess would
//! use up somebody else's.

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

/// The click that is like the device, if exactly one is.
pub(super) fn step(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    course: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let evidence = case.evidence;
    // An address that many share, or that means nothing outside its own network, is not compared.
    let comparable = evidence.fingerprint.address_class == Some(AddressClass::Other);
    let waiting = facts
        .delivered
        .iter()
        .any(|one| matches!(one.lookup, ClickLookup::Unknown(_)));
    if !evidence.probabilistic_allowed || !comparable || waiting {
        return None;
    }
    let mut found = latest_first(&facts.same_address);
    // A click on another platform is nobody's clue.
    found.retain(|one| {
        !course.has_considered(&one.click) && one.click.platform() == case.evidence.platform
    });
    let (mut eligible, mut latest_refused) = (Vec::new(), None);
    for candidate in found {
        match ineligible(case, candidate) {
            Some(rejection) => {
                course.consider(shown(case, candidate, rejection));
                latest_refused = latest_refused.or(Some(rejection));
            }
            None => eligible.push(candidate),
        }
    }
    let whole = if !case.probabilistic_enabled() {
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
    match whole {
        _ if eligible.is_empty() => {
            let miss =
                latest_refused.map(|why| reason::same_address_rejected(why, window_hours(case)));
            course.near_miss = course.near_miss.take().or(miss);
            None
        }
        None => best(case, facts, &eligible, course),
        Some((rejection, miss)) => {
            let all = eligible.iter().map(|one| shown(case, one, rejection));
            all.for_each(|one| course.consider(one));
            course.near_miss = Some(miss);
            None
        }
    }
}

/// The most like, if it is like enough and nothing else is nearly as like.
fn best(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    eligible: &[&Candidate],
    course: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let device = &case.evidence.fingerprint;
    let compared: Vec<_> = eligible
        .iter()
        .map(|one| (*one, probabilistic::compare(&one.click, device)))
        .collect();
    let best = compared
        .iter()
        .filter_map(|(_, likeness)| likeness.score)
        .max()
        .unwrap_or(0);
    let rivals = |likeness: &MatchScore| {
        likeness
            .score
            .is_some_and(|score| score.saturating_add(MARGIN_MIN) > best)
    };
    let near = compared
        .iter()
        .filter(|(_, likeness)| rivals(likeness))
        .count();
    let enough = best >= SCORE_MIN;
    let mut winner = None;
    for (candidate, likeness) in &compared {
        let rejected = match (enough && rivals(likeness), near) {
            (true, 1) => None,
            (true, _) => Some(Rejection::Ambiguous),
            (false, _) => Some(Rejection::ScoreTooLow),
        };
        course.consider(ConsideredCandidate {
            score: Some(likeness.score.unwrap_or(0)),
            signals: Some(likeness.signals),
            rejection: rejected,
            ..shown(case, candidate, Rejection::ScoreTooLow)
        });
        if rejected.is_none() {
            winner = Some((*candidate, likeness));
        }
    }
    let Some((candidate, likeness)) = winner else {
        let comparable = compared
            .iter()
            .any(|(_, likeness)| likeness.score.is_some());
        let miss = match (enough, comparable) {
            (true, _) => reason::ambiguous(near),
            (false, true) => reason::score_too_low(eligible.len()),
            (false, false) => reason::another_device(eligible.len()),
        };
        course.near_miss = Some(miss);
        return None;
    };
    let confidence = probabilistic::confidence(age_millis(case, candidate), eligible.len() - 1);
    let mut credit = InstallCredit::of_click(candidate, MatchType::Probabilistic, confidence);
    credit.reason = reason::probabilistic(eligible.len(), window_hours(case), likeness.signals);
    credit.flags = case.flags(facts, &candidate.click, None);
    Some(credit)
}

/// Why a click is no candidate at all.
fn ineligible(case: &Case<'_>, candidate: &Candidate) -> Option<Rejection> {
    let against = fraud::click_contradiction(case.evidence, candidate.click.clicked_at);
    let outside = !time::is_within(age_millis(case, candidate), window_hours(case));
    fraud::rejection_of(FraudPolicy::Refuse, candidate, against)
        .or_else(|| outside.then_some(Rejection::OutsideWindow))
}

fn shown(case: &Case<'_>, candidate: &Candidate, rejection: Rejection) -> ConsideredCandidate {
    let age_seconds = time::in_seconds(age_millis(case, candidate));
    let shown = considered(&candidate.click, MatchMethod::Probabilistic, age_seconds);
    ConsideredCandidate {
        rejection: Some(rejection),
        ..shown
    }
}

fn age_millis(case: &Case<'_>, candidate: &Candidate) -> i64 {
    time::age_millis(candidate.click.clicked_at, case.evidence.first_open_at)
}

fn window_hours(case: &Case<'_>) -> i64 {
    case.rules.probabilistic_window_hours.min(WINDOW_HOURS_MAX)
}
