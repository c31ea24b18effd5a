//! Apple's answer, which arrives after the first decision.

use super::device_state::{Attribution, DeviceState};
use crate::access::Environment;
use crate::app::AttributionRules;
use crate::attribution::ad_services::AdServices;
use crate::attribution::evidence::{DeviceFingerprint, ReferrerTimes};
use crate::attribution::{AttributionCandidates, Evidence, MatchState, decide, improves};
use crate::vocabulary::id::ClickId;
use crate::vocabulary::time::Timestamp;

/// What Apple said about a device's install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdServicesOutcome {
    /// Live or test.
    pub environment: Environment,
    /// How the app attributes.
    pub rules: AttributionRules,
    /// What Apple said, for good.
    pub answer: AdServices,
    /// When.
    pub at: Timestamp,
}

/// What the answer changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributionUpdate {
    /// The decision that stands now.
    pub attribution: Attribution,
    /// Whether it was replaced: then the device's events so far are credited anew.
    pub is_replaced: bool,
    /// The click that the install had before, free again.
    pub released_click: Option<ClickId>,
}

/// What Apple's answer comes to. Nothing when there is no decision that it could be held against.
pub fn apply_ad_services(
    answer: &AdServicesOutcome,
    known: &DeviceState,
) -> Option<AttributionUpdate> {
    let (device, standing) = (known.device.as_ref()?, known.attribution.as_ref()?);
    let evidence = Evidence {
        platform: device.traits.platform,
        environment: answer.environment,
        first_open_at: device.first_seen_at,
        now: answer.at,
        referrer: None,
        times: ReferrerTimes::default(),
        ad_services: answer.answer.clone(),
        fingerprint: DeviceFingerprint::default(),
        probabilistic_allowed: false,
    };
    let fresh = decide(&evidence, &AttributionCandidates::default(), &answer.rules);
    let better = improves(
        &standing.summary(device.first_seen_at),
        &fresh,
        answer.rules.click_window_hours,
        answer.at,
    );
    if better {
        return Some(AttributionUpdate {
            attribution: standing.replaced_by(fresh, answer.at),
            is_replaced: true,
            // A test device has no click to itself.
            released_click: standing
                .decision
                .click
                .filter(|_| answer.environment == Environment::Live),
        });
    }
    // The decision stands, and its story says what Apple answered.
    let mut attribution = standing.clone();
    let decision = &mut attribution.decision;
    let asked_apple_only = decision.state == MatchState::Organic
        && decision.candidates.is_empty()
        && decision.evidence.referrer.is_none();
    if asked_apple_only {
        // Its sentence was that Apple had not answered.
        decision.reason = fresh.reason;
    }
    decision.evidence.ad_services = fresh.evidence.ad_services;
    Some(AttributionUpdate {
        attribution,
        is_replaced: false,
        released_click: None,
    })
}
