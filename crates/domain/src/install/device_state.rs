//! Stored state of a device.

use crate::app::FraudPolicy;
use crate::attestation::AttestationOutcome;
use crate::attribution::{
    AttributionSummary, DECISION_CANDIDATES_MAX, Decision, Flag, HoldState, InstallHold, Rejection,
    SupersededDecision, click_never_stored, counts_as_flagged, effective_state,
};
use crate::device::{Device, Identity};
use crate::event::Credit;
use crate::vocabulary::id::{AttributionId, EventId};
use crate::vocabulary::time::Timestamp;

/// The stored decision about a device's install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// Id; kept when a better decision replaces this one.
    pub id: AttributionId,
    /// Number of decisions, including this one.
    pub revision: u32,
    /// Time of the decision.
    pub decided_at: Timestamp,
    /// The decision that this one replaced.
    pub supersedes: Option<SupersededDecision>,
    /// The decision.
    pub decision: Decision,
    /// The hold, if the install is or was held for a review.
    pub hold: Option<InstallHold>,
}

impl Attribution {
    /// Creates the first attribution of a device.
    pub fn first(id: AttributionId, decision: Decision, at: Timestamp) -> Self {
        Self {
            id,
            revision: 1,
            decided_at: at,
            supersedes: None,
            decision,
            hold: None,
        }
    }

    /// Returns the attribution after a better decision. Appends the earlier candidates, so that the
    /// history stays complete.
    #[must_use]
    pub fn replaced_by(&self, mut decision: Decision, at: Timestamp) -> Self {
        for earlier in &self.decision.candidates {
            let is_known = decision
                .candidates
                .iter()
                .any(|now| now.click == earlier.click && now.method == earlier.method);
            if !is_known && decision.candidates.len() < DECISION_CANDIDATES_MAX {
                let mut earlier = earlier.clone();
                earlier.rejection = earlier.rejection.or(Some(Rejection::OlderThanWinner));
                decision.candidates.push(earlier);
            }
        }
        let (now, before) = (&mut decision.evidence, &self.decision.evidence);
        now.referrer = now.referrer.take().or_else(|| before.referrer.clone());
        now.ad_services = now
            .ad_services
            .take()
            .or_else(|| before.ad_services.clone());
        now.click_token = now
            .click_token
            .take()
            .or_else(|| before.click_token.clone());
        now.address_class = now
            .address_class
            .take()
            .or_else(|| before.address_class.clone());
        Self {
            id: self.id,
            revision: self.revision.saturating_add(1),
            decided_at: at,
            supersedes: Some(SupersededDecision {
                match_type: self.decision.match_type,
                decided_at: self.decided_at,
            }),
            decision,
            hold: self.hold.clone(),
        }
    }

    /// Returns the attribution with the hold that follows from its flags.
    #[must_use]
    pub fn held_by(self, policy: FraudPolicy) -> Self {
        let is_flagged = !self.decision.flags.is_empty();
        let before = self.hold.as_ref();
        let hold = InstallHold::after_decision(before, policy, is_flagged, self.decided_at);
        Self { hold, ..self }
    }

    /// Returns the state of the hold.
    pub fn hold_state(&self) -> Option<HoldState> {
        self.hold.as_ref().map(|hold| hold.state)
    }

    /// Returns the attribution with later, rejected evidence added. The decision does not change,
    /// but the rejection stays visible. The attestation and its flags are updated, too.
    #[must_use]
    pub fn with_late_evidence(&self, new_decision: &Decision) -> Self {
        let mut updated = self.clone();
        for candidate in new_decision
            .candidates
            .iter()
            .filter(|candidate| candidate.rejection.is_some())
        {
            let is_known = updated.decision.candidates.iter().any(|one| {
                one.click == candidate.click
                    && one.method == candidate.method
                    && one.rejection == candidate.rejection
            });
            if !is_known && updated.decision.candidates.len() < DECISION_CANDIDATES_MAX {
                updated.decision.candidates.push(candidate.clone());
            }
        }
        let token = &mut updated.decision.evidence.click_token;
        *token = token
            .take()
            .or_else(|| new_decision.evidence.click_token.clone());
        updated.decision.evidence.attestation = new_decision.evidence.attestation;
        for flag in [Flag::AttestationFailed, Flag::AttestationMissing] {
            if new_decision.flags.contains(&flag) {
                updated.decision.flags.insert(flag);
            } else {
                updated.decision.flags.remove(&flag);
            }
        }
        updated
    }

    /// Returns whether the device proved that it runs the genuine app.
    pub fn is_attested(&self) -> bool {
        self.decision.evidence.attestation == Some(AttestationOutcome::Verified)
    }

    /// Returns whether AdServices gave a result or is still pending. After an invalid or expired
    /// token, another token may be redeemed.
    pub fn has_ad_services_result(&self) -> bool {
        let result = self.decision.evidence.ad_services.as_deref();
        !matches!(result, None | Some("invalid" | "expired"))
    }

    /// Returns the attribution as of now: a pending click that was not stored within a day counts
    /// as invalid.
    #[must_use]
    pub fn as_of(&self, now: Timestamp) -> Self {
        let state = effective_state(self.decision.state, self.decided_at, now);
        let mut updated = self.clone();
        if state == self.decision.state {
            return updated;
        }
        updated.decision.state = state;
        updated.decision.reason = click_never_stored();
        for one in &mut updated.decision.candidates {
            if one.rejection == Some(Rejection::PendingClick) {
                one.rejection = Some(Rejection::BadToken);
            }
        }
        updated
    }

    /// Returns whether the install counts as flagged.
    pub fn is_flagged(&self) -> bool {
        counts_as_flagged(!self.decision.flags.is_empty(), self.hold_state())
    }

    /// Returns the credit for the device's events.
    pub fn credit(&self) -> Credit {
        Credit {
            network: self.decision.network,
            match_type: self.decision.match_type,
            link: self.decision.link,
            click: self.decision.click,
            campaign: self.decision.campaign.clone(),
            hold: self.hold_state(),
        }
    }

    /// Returns the summary that later evidence is compared with.
    pub fn summary(&self, first_open_at: Timestamp) -> AttributionSummary {
        AttributionSummary {
            state: self.decision.state,
            match_type: self.decision.match_type,
            confidence: self.decision.confidence,
            decided_at: self.decided_at,
            first_open_at,
        }
    }
}

/// Stored state of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceState {
    /// The device, if it called `configure` before.
    pub device: Option<Device>,
    /// The device's attribution.
    pub attribution: Option<Attribution>,
    /// The user, as identified by the app.
    pub identity: Identity,
    /// The device's first counted payment.
    pub first_payment: Option<EventId>,
}

impl DeviceState {
    /// Returns whether neither the device nor its user is known. The device may still have events.
    pub fn is_empty(&self) -> bool {
        self.device.is_none() && self.identity == Identity::default()
    }
}
