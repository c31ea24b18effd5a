//! Applies Apple's AdServices response, which arrives after the first decision.

use super::device_state::{Attribution, DeviceState};
use crate::access::Environment;
use crate::app::AttributionRules;
use crate::attribution::ad_services::AdServices;
use crate::attribution::evidence::{DeviceFingerprint, ReferrerTimes};
use crate::attribution::{AttributionCandidates, Evidence, MatchState, decide, improves};
use crate::vocabulary::id::ClickId;
use crate::vocabulary::time::Timestamp;

/// Apple's final AdServices response for a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdServicesOutcome {
    /// Live or test environment.
    pub environment: Environment,
    /// The app's attribution rules.
    pub rules: AttributionRules,
    /// The response.
    pub answer: AdServices,
    /// Time of the response.
    pub at: Timestamp,
}

/// Changes made by the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributionUpdate {
    /// The current decision.
    pub attribution: Attribution,
    /// Whether the decision was replaced, so that the device's events must be credited again.
    pub is_replaced: bool,
    /// Previously reserved click to release.
    pub released_click: Option<ClickId>,
}

/// Applies Apple's response. Returns `None` if the device or its attribution is not stored.
pub fn apply_ad_services(
    outcome: &AdServicesOutcome,
    state: &DeviceState,
) -> Option<AttributionUpdate> {
    let (device, current) = (state.device.as_ref()?, state.attribution.as_ref()?);
    let evidence = Evidence {
        platform: device.traits.platform,
        environment: outcome.environment,
        first_open_at: device.first_seen_at,
        now: outcome.at,
        referrer: None,
        times: ReferrerTimes::default(),
        ad_services: outcome.answer.clone(),
        fingerprint: DeviceFingerprint::default(),
        probabilistic_allowed: false,
        attestation: current.decision.evidence.attestation,
    };
    let new_decision = decide(&evidence, &AttributionCandidates::default(), &outcome.rules);
    let is_better = improves(
        &current.summary(device.first_seen_at),
        &new_decision,
        outcome.rules.click_window_hours,
        outcome.at,
    );
    if is_better {
        let better = current.replaced_by(new_decision, outcome.at);
        return Some(AttributionUpdate {
            attribution: better.held_by(outcome.rules.fraud),
            is_replaced: true,
            // Test devices reserve no click.
            released_click: current
                .decision
                .click
                .filter(|_| outcome.environment == Environment::Live),
        });
    }
    // The decision stays, but Apple's response is recorded with it.
    let mut attribution = current.clone();
    let decision = &mut attribution.decision;
    let has_no_other_evidence = decision.state == MatchState::Organic
        && decision.candidates.is_empty()
        && decision.evidence.referrer.is_none();
    if has_no_other_evidence {
        // The old reason says that Apple had not responded.
        decision.reason = new_decision.reason;
    }
    decision.evidence.ad_services = new_decision.evidence.ad_services;
    Some(AttributionUpdate {
        attribution,
        is_replaced: false,
        released_click: None,
    })
}
