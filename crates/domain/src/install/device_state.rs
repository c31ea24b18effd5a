//! What is known of a device when it calls.

use crate::attribution::{
    AttributionSummary, DECISION_CANDIDATES_MAX, Decision, Rejection, SupersededDecision,
    click_never_stored, effective_state,
};
use crate::device::{Device, Identity};
use crate::event::Credit;
use crate::vocabulary::id::{AttributionId, EventId};
use crate::vocabulary::time::Timestamp;

/// The decision about a device, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// Its id. A better decision keeps it.
    pub id: AttributionId,
    /// How many decisions there were, this one included.
    pub revision: u32,
    /// When it was made.
    pub decided_at: Timestamp,
    /// The one it replaced.
    pub supersedes: Option<SupersededDecision>,
    /// The decision.
    pub decision: Decision,
}

impl Attribution {
    /// The first decision about a device.
    pub fn first(id: AttributionId, decision: Decision, at: Timestamp) -> Self {
        Self {
            id,
            revision: 1,
            decided_at: at,
            supersedes: None,
            decision,
        }
    }

    /// A better decision in the place of this one. What was considered before is kept behind what was
    /// considered now, so that the story stays whole.
    #[must_use]
    pub fn replaced_by(&self, mut decision: Decision, at: Timestamp) -> Self {
        for earlier in &self.decision.candidates {
            let known = decision
                .candidates
                .iter()
                .any(|now| now.click == earlier.click && now.method == earlier.method);
            if !known && decision.candidates.len() < DECISION_CANDIDATES_MAX {
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
        }
    }

    /// The same decision, when what was shown later did not change it. What was refused is written down all the
    /// same: "why not?" is asked of late evidence, too.
    #[must_use]
    pub fn with_late_evidence(&self, fresh: &Decision) -> Self {
        let mut seen = self.clone();
        for late in fresh
            .candidates
            .iter()
            .filter(|late| late.rejection.is_some())
        {
            let known = seen.decision.candidates.iter().any(|one| {
                one.click == late.click
                    && one.method == late.method
                    && one.rejection == late.rejection
            });
            if !known && seen.decision.candidates.len() < DECISION_CANDIDATES_MAX {
                seen.decision.candidates.push(late.clone());
            }
        }
        let token = &mut seen.decision.evidence.click_token;
        *token = token.take().or_else(|| fresh.evidence.click_token.clone());
        seen
    }

    /// Whether Apple has said its word, or is being asked. One that did not know the token, or was not reached
    /// while it lived, may be asked with another.
    pub fn has_ad_services_result(&self) -> bool {
        let word = self.decision.evidence.ad_services.as_deref();
        !matches!(word, None | Some("invalid" | "expired"))
    }

    /// The decision as it reads now: a click that nobody stored within a day was never made.
    #[must_use]
    pub fn as_of(&self, now: Timestamp) -> Self {
        let state = effective_state(self.decision.state, self.decided_at, now);
        let mut read = self.clone();
        if state == self.decision.state {
            return read;
        }
        read.decision.state = state;
        read.decision.reason = click_never_stored();
        for one in &mut read.decision.candidates {
            if one.rejection == Some(Rejection::PendingClick) {
                one.rejection = Some(Rejection::BadToken);
            }
        }
        read
    }

    /// What the device's events are credited to.
    pub fn credit(&self) -> Credit {
        Credit {
            network: self.decision.network,
            match_type: self.decision.match_type,
            link: self.decision.link,
            click: self.decision.click,
            campaign: self.decision.campaign.clone(),
        }
    }

    /// What later evidence is held against.
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

/// What is known of a device when it calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceState {
    /// The device, when it was configured before.
    pub device: Option<Device>,
    /// The decision about it.
    pub attribution: Option<Attribution>,
    /// The person behind it.
    pub identity: Identity,
    /// Its first counted payment.
    pub first_payment: Option<EventId>,
}

impl DeviceState {
    /// Whether nothing is known of the device or its person. A device may still have events.
    pub fn is_empty(&self) -> bool {
        self.device.is_none() && self.identity == Identity::default()
    }
}
