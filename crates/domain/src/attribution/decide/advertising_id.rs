//! Step 5: a click with the device's advertising id. The last touch has the install.

use super::Case;
use super::evaluation::{EvaluationLog, InstallCredit, considered, latest_first};
use super::fraud::Contradiction;
use super::{fraud, reason, time};
use crate::attribution::{
    AttributionCandidates, Candidate, ConsideredCandidate, MatchMethod, MatchType, Rejection,
};

/// How sure an advertising id is: people reset it and hand devices on.
const CONFIDENCE: u8 = 95;

/// The last click with the device's advertising id that may have the install. One that its times contradict
/// comes after all that they do not.
pub(super) fn step(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    course: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let mut candidates = latest_first(&facts.same_advertising_id);
    candidates.retain(|one| !course.has_considered(&one.click));
    let judged: Vec<_> = candidates
        .into_iter()
        .map(|one| EvaluatedCandidate::new(case, one))
        .collect();
    let acceptable = || judged.iter().filter(|one| one.rejected.is_none());
    let clean = acceptable().filter(|one| one.against.is_none());
    let winner = clean.clone().next().or_else(|| acceptable().next());
    for one in &judged {
        let rejected = match winner {
            Some(winner) if winner.candidate.click.id == one.candidate.click.id => None,
            Some(_) if one.against.is_some() => one.rejected.or(Some(Rejection::Implausible)),
            _ => one.rejected.or(Some(Rejection::OlderThanWinner)),
        };
        let shown = considered(
            &one.candidate.click,
            MatchMethod::AdvertisingId,
            one.age_seconds(),
        );
        course.consider(ConsideredCandidate {
            rejection: rejected,
            ..shown
        });
    }
    let Some(winner) = winner else {
        let latest = judged.first().and_then(|one| one.rejected);
        let miss =
            latest.map(|why| reason::advertising_id_rejected(why, case.rules.click_window_hours));
        course.near_miss = miss.or(course.near_miss.take());
        return None;
    };
    let mut credit = InstallCredit::of_click(winner.candidate, MatchType::ClickId, CONFIDENCE);
    credit.reason = reason::advertising_id(clean.count(), winner.age_seconds(), winner.against);
    credit.flags = case.flags(facts, &winner.candidate.click, winner.against);
    Some(credit)
}

struct EvaluatedCandidate<'a> {
    candidate: &'a Candidate,
    age_millis: i64,
    against: Option<Contradiction>,
    rejected: Option<Rejection>,
}

impl<'a> EvaluatedCandidate<'a> {
    fn new(case: &Case<'_>, candidate: &'a Candidate) -> Self {
        let clicked_at = candidate.click.clicked_at;
        let against = fraud::click_contradiction(case.evidence, clicked_at);
        let age_millis = time::age_millis(clicked_at, time::install_at(case.evidence));
        let outside = !time::is_within(age_millis, case.rules.click_window_hours);
        let rejected = fraud::rejection_of(case.rules.fraud, candidate, against)
            .or_else(|| outside.then_some(Rejection::OutsideWindow));
        Self {
            candidate,
            age_millis,
            against,
            rejected,
        }
    }

    const fn age_seconds(&self) -> i64 {
        time::in_seconds(self.age_millis)
    }
}
