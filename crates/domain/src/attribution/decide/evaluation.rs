//! Log of the candidates that were evaluated for a decision.

use crate::attribution::{
    Candidate, ConsideredCandidate, CreditedNetwork, DECISION_CANDIDATES_MAX, Flag, MatchMethod,
    MatchState, MatchType, Rejection,
};
use crate::click::Click;
use crate::link::Campaign;
use crate::vocabulary::id::{ClickId, LinkId};
use std::collections::{BTreeMap, BTreeSet};

/// Candidates evaluated so far, in order.
#[derive(Debug, Default)]
pub(super) struct EvaluationLog {
    considered: Vec<ConsideredCandidate>,
    /// The first claim by the device that was rejected.
    rejected_claim: Option<RejectedClaim>,
    /// Why the closest click found in the database did not match, as the end of a sentence.
    pub(super) near_miss: Option<String>,
}

/// A claim by the device that was rejected, such as a delivered click id.
#[derive(Debug)]
pub(super) struct RejectedClaim {
    /// State of the install if nothing else matches.
    pub(super) state: MatchState,
    /// Explanation in one sentence.
    pub(super) reason: String,
}

/// Credit for an install.
#[derive(Debug)]
pub(super) struct InstallCredit {
    pub(super) state: MatchState,
    pub(super) match_type: MatchType,
    pub(super) network: CreditedNetwork,
    pub(super) confidence: u8,
    pub(super) click: Option<ClickId>,
    pub(super) link: Option<LinkId>,
    pub(super) campaign: Campaign,
    pub(super) keyword: Option<String>,
    pub(super) network_click_id: Option<(String, String)>,
    pub(super) deep_link: Option<String>,
    pub(super) custom_data: BTreeMap<String, String>,
    pub(super) query_params: BTreeMap<String, String>,
    pub(super) reason: String,
    pub(super) flags: BTreeSet<Flag>,
}

impl EvaluationLog {
    /// Adds a candidate.
    pub(super) fn consider(&mut self, one: ConsideredCandidate) {
        self.considered.push(one);
    }

    /// Returns whether a more reliable method already evaluated this click. A less reliable method
    /// must not accept a click that was rejected before.
    pub(super) fn has_considered(&self, click: &Click) -> bool {
        self.considered
            .iter()
            .any(|one| one.click == Some(click.id))
    }

    /// Records a rejected claim by the device. Only the first one is kept.
    pub(super) fn reject_claim(&mut self, claim: RejectedClaim) {
        self.rejected_claim.get_or_insert(claim);
    }

    /// Takes the rejected claim that determines the install's state.
    pub(super) fn take_rejected_claim(&mut self) -> Option<RejectedClaim> {
        self.rejected_claim.take()
    }

    /// Returns the candidates to store: the winner first, then others up to the limit.
    pub(super) fn into_candidates(self) -> Vec<ConsideredCandidate> {
        let is_winner = |one: &ConsideredCandidate| one.rejection.is_none();
        let (mut kept, others): (Vec<_>, Vec<_>) = self.considered.into_iter().partition(is_winner);
        kept.extend(others);
        kept.truncate(DECISION_CANDIDATES_MAX);
        kept
    }
}

impl InstallCredit {
    /// Creates the credit for one of our clicks.
    pub(super) fn of_click(candidate: &Candidate, match_type: MatchType, confidence: u8) -> Self {
        let click = &candidate.click;
        Self {
            click: Some(click.id),
            link: Some(click.link),
            campaign: click.campaign().clone(),
            keyword: click.captured.keyword.clone(),
            deep_link: candidate.deep_link.clone(),
            custom_data: candidate.custom_data.clone(),
            query_params: click.captured.query_params.clone(),
            ..Self::without_click(
                MatchState::Attributed,
                match_type,
                network_of(click),
                confidence,
            )
        }
    }

    /// Creates a credit that is not for one of our clicks.
    pub(super) fn without_click(
        state: MatchState,
        match_type: MatchType,
        network: CreditedNetwork,
        confidence: u8,
    ) -> Self {
        Self {
            state,
            match_type,
            network,
            confidence,
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
        }
    }
}

/// Creates the log entry for a candidate click.
pub(super) fn considered(
    click: &Click,
    method: MatchMethod,
    age_seconds: i64,
) -> ConsideredCandidate {
    ConsideredCandidate {
        click: Some(click.id),
        link: Some(click.link),
        network: Some(network_of(click)),
        clicked_at: Some(click.clicked_at),
        age_seconds: Some(age_seconds),
        method,
        score: None,
        signals: None,
        rejection: None,
    }
}

/// Creates the log entry for a candidate without a stored click.
pub(super) const fn without_click(
    method: MatchMethod,
    rejection: Option<Rejection>,
) -> ConsideredCandidate {
    ConsideredCandidate {
        click: None,
        link: None,
        network: None,
        clicked_at: None,
        age_seconds: None,
        method,
        score: None,
        signals: None,
        rejection,
    }
}

/// Sorts candidates by click time, newest first, and removes duplicates, so that the order in which
/// they were found does not matter.
pub(super) fn latest_first(found: &[Candidate]) -> Vec<&Candidate> {
    let mut candidates: Vec<_> = found.iter().collect();
    candidates.sort_by_key(|one| std::cmp::Reverse((one.click.clicked_at, one.click.id)));
    candidates.dedup_by_key(|one| one.click.id);
    candidates
}

fn network_of(click: &Click) -> CreditedNetwork {
    click
        .network
        .map_or(CreditedNetwork::Other, CreditedNetwork::Ad)
}
