//! Decides which click gets the credit for an install.
//!
//! Evidence is evaluated in order of reliability, and the first acceptable candidate wins. Rejected
//! candidates are recorded. A rejected claim by the device itself also sets the install's state;
//! rejected clicks that were only found in the database leave the install organic.
//!
//! All evidence is evaluated as of the first open, even if it arrives later. The order in which
//! clicks were found does not matter.

mod advertising_id;
mod apple;
mod delivered;
mod evaluation;
mod fraud;
mod probabilistic;
mod reason;
mod third_party;
mod time;

#[cfg(test)]
mod tests;

pub use fraud::INSTALL_BURST_MAX;
pub(crate) use reason::click_never_stored;

use super::candidate::{AttributionCandidates, ClickLookup};
use super::decision::{
    CreditedNetwork, Decision, EvidenceSummary, Flag, MatchState, MatchType, SettingsSummary,
};
use super::evidence::{ClickIdSource, Evidence};
use super::referrer::Referrer;
use crate::app::AttributionRules;
use crate::click::Click;
use crate::click::address::AddressClass;
use crate::device::Platform;
use evaluation::{EvaluationLog, InstallCredit};
use fraud::Contradiction;
use std::collections::BTreeSet;

/// Evaluation of one kind of evidence. Returns the credit, if any.
type Step = fn(&Case<'_>, &AttributionCandidates, &mut EvaluationLog) -> Option<InstallCredit>;

/// Evaluation steps, most reliable first.
const STEPS: [Step; 6] = [
    delivered::step,
    apple::tap,
    third_party::step,
    advertising_id::step,
    apple::view,
    probabilistic::step,
];

/// Evidence and rules for one decision.
struct Case<'a> {
    evidence: &'a Evidence,
    rules: &'a AttributionRules,
}

/// Decides which click gets the credit for an install.
pub fn decide(
    evidence: &Evidence,
    facts: &AttributionCandidates,
    rules: &AttributionRules,
) -> Decision {
    let case = Case { evidence, rules };
    let mut log = EvaluationLog::default();
    let credit = STEPS.iter().find_map(|step| step(&case, facts, &mut log));
    let credited = credit.is_some();
    let credit = credit.unwrap_or_else(|| case.uncredited(&mut log));
    let mut flags = credit.flags;
    flags.extend(fraud::impossible_device(
        evidence.platform,
        &evidence.fingerprint,
    ));
    flags.extend(evidence.attestation.and_then(fraud::unproven_app));
    Decision {
        state: credit.state,
        match_type: credit.match_type,
        network: credit.network,
        confidence: credited.then_some(credit.confidence),
        click: credit.click,
        link: credit.link,
        campaign: credit.campaign,
        keyword: credit.keyword,
        network_click_id: credit.network_click_id,
        deep_link: credit.deep_link,
        custom_data: credit.custom_data,
        query_params: credit.query_params,
        reason: credit.reason,
        flags,
        candidates: log.into_candidates(),
        evidence: case.evidence_summary(facts),
        times: evidence.times,
        settings: SettingsSummary {
            click_window_hours: rules.click_window_hours,
            probabilistic: case.probabilistic_enabled(),
            window_hours: rules.probabilistic_window_hours,
        },
    }
}

impl Case<'_> {
    /// Returns whether probabilistic matching is enabled for this platform.
    const fn probabilistic_enabled(&self) -> bool {
        match self.evidence.platform {
            Platform::Ios => self.rules.probabilistic_ios,
            Platform::Android => self.rules.probabilistic_android,
            Platform::Web => false,
        }
    }

    /// Returns the fraud flags for an install that is credited to this click.
    fn flags(
        &self,
        facts: &AttributionCandidates,
        click: &Click,
        contradiction: Option<Contradiction>,
    ) -> BTreeSet<Flag> {
        let flags = [
            (Flag::Implausible, contradiction.is_some()),
            (
                Flag::ShortCtit,
                fraud::is_short_ctit(self.evidence, click.clicked_at),
            ),
            (
                Flag::InstallBurst,
                fraud::is_burst(&facts.installs_from_address, click.link),
            ),
        ];
        flags
            .into_iter()
            .filter_map(|(flag, is)| is.then_some(flag))
            .collect()
    }

    /// Returns the outcome for an install without credit.
    fn uncredited(&self, log: &mut EvaluationLog) -> InstallCredit {
        let rejected = log
            .take_rejected_claim()
            .map(|claim| (claim.state, claim.reason));
        let (state, reason) = rejected.unwrap_or_else(|| {
            let reason = reason::no_match(self.evidence, log.near_miss.as_deref());
            (self.uncredited_state(), reason)
        });
        let (match_type, network) = (MatchType::Organic, CreditedNetwork::Organic);
        InstallCredit {
            reason,
            ..InstallCredit::without_click(state, match_type, network, 0)
        }
    }

    /// Returns the state of an install without credit. On Android a missing referrer counts as
    /// unreadable, because an SDK omits a referrer that it cannot read.
    fn uncredited_state(&self) -> MatchState {
        let on_android = self.evidence.platform == Platform::Android;
        match &self.evidence.referrer {
            Some(Referrer::Unavailable) => MatchState::Unavailable,
            None if on_android => MatchState::Unavailable,
            _ => MatchState::Organic,
        }
    }

    fn evidence_summary(&self, facts: &AttributionCandidates) -> EvidenceSummary {
        let evidence = self.evidence;
        let apple = &evidence.ad_services;
        let test_data = apple.is_test_data_in(evidence.environment);
        let apple = if test_data {
            Some("not_attributed")
        } else {
            apple.as_str()
        };
        // If the device delivered several click ids, the summary shows the best lookup result: an
        // invalid id does not hide a valid one.
        let token = facts
            .delivered
            .iter()
            .map(|one| match (&one.lookup, one.source) {
                (ClickLookup::Found(_), ClickIdSource::AppLink) => (1, "opened_link"),
                (ClickLookup::Found(_), _) => (0, "valid"),
                (ClickLookup::Unknown(_), _) => (2, "not_stored"),
                (ClickLookup::Foreign(_), _) => (3, "foreign"),
                (ClickLookup::BadToken, _) => (4, "bad"),
            });
        let token = token.min().map(|(_, word)| word);
        let class = evidence.fingerprint.address_class.map(AddressClass::as_str);
        EvidenceSummary {
            referrer: evidence
                .referrer
                .as_ref()
                .map(|one| one.as_str().to_owned()),
            ad_services: apple.map(str::to_owned),
            click_token: token.map(str::to_owned),
            address_class: class.map(str::to_owned),
            attestation: evidence.attestation,
        }
    }
}
