//! Step 5: click with the device's advertising id. The last touch wins.

use super::Case;
use super::evaluation::{EvaluationLog, InstallCredit, considered, latest_first};
use super::fraud::Contradiction;
use super::{fraud, reason, time};
use crate::attribution::{
    AttributionCandidates, Candidate, ConsideredCandidate, MatchMethod, MatchType, Rejection,
};

/// Confidence of a match by advertising id, in percent. Users reset ids and pass on devices.
const CONFIDENCE: u8 = 95;

/// Credits the latest acceptable click with the device's advertising id. Clicks that are
/// contradicted by timestamps rank last.
pub(super) fn step(
    case: &Case<'_>,
    facts: &AttributionCandidates,
    log: &mut EvaluationLog,
) -> Option<InstallCredit> {
    let mut candidates = latest_first(&facts.same_advertising_id);
    candidates.retain(|one| !log.has_considered(&one.click));
    let evaluated: Vec<_> = candidates
        .into_iter()
        .map(|one| EvaluatedCandidate::new(case, one))
        .collect();
    let acceptable = || evaluated.iter().filter(|one| one.rejection.is_none());
    let clean = acceptable().filter(|one| one.contradiction.is_none());
    let winner = clean.clone().next().or_else(|| acceptable().next());
    for one in &evaluated {
        let rejection = match winner {
            Some(winner) if winner.candidate.click.id == one.candidate.click.id => None,
            Some(_) if one.contradiction.is_some() => {
                one.rejection.or(Some(Rejection::Implausible))
            }
            _ => one.rejection.or(Some(Rejection::OlderThanWinner)),
        };
        let entry = considered(
            &one.candidate.click,
            MatchMethod::AdvertisingId,
            one.age_seconds(),
        );
        log.consider(ConsideredCandidate { rejection, ..entry });
    }
    let Some(winner) = winner else {
        let latest = evaluated.first().and_then(|one| one.rejection);
        let miss = latest.map(|rejection| {
            reason::advertising_id_rejected(rejection, case.rules.click_window_hours)
        });
        log.near_miss = miss.or(log.near_miss.take());
        return None;
    };
    let mut credit = InstallCredit::of_click(winner.candidate, MatchType::ClickId, CONFIDENCE);
    credit.reason = reason::advertising_id(
        clean.count(),
        winner.age_seconds(),
        time::name_of_install(case.evidence, time::install_at(case.evidence)),
        winner.contradiction,
    );
    credit.flags = case.flags(facts, &winner.candidate.click, winner.contradiction);
    Some(credit)
}

struct EvaluatedCandidate<'a> {
    candidate: &'a Candidate,
    age_millis: i64,
    contradiction: Option<Contradiction>,
    rejection: Option<Rejection>,
}

impl<'a> EvaluatedCandidate<'a> {
    fn new(case: &Case<'_>, candidate: &'a Candidate) -> Self {
        let clicked_at = candidate.click.clicked_at;
        let contradiction = fraud::click_contradiction(case.evidence, clicked_at);
        let age_millis = time::age_millis(clicked_at, time::install_at(case.evidence));
        let outside = !time::is_within(age_millis, case.rules.click_window_hours);
        let rejection = fraud::rejection_of(case.rules.fraud, candidate, contradiction)
            .or_else(|| outside.then_some(Rejection::OutsideWindow));
        Self {
            candidate,
            age_millis,
            contradiction,
            rejection,
        }
    }

    const fn age_seconds(&self) -> i64 {
        time::in_seconds(self.age_millis)
    }
}
