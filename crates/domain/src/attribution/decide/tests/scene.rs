//! Scenes: an install and the clicks around it, built for one rule each.

pub(super) use super::tap::*;

use crate::access::Environment;
use crate::app::{AttributionRules, FraudPolicy};
use crate::attribution::ad_services::AdServices;
use crate::attribution::evidence::{ClickIdSource, DeviceFingerprint, ReferrerTimes};
use crate::attribution::referrer::Referrer;
use crate::attribution::{
    AttributionCandidates, ClickLookup, Decision, DeliveredClick, Evidence, Rejection, decide,
};
use crate::click::address::AddressClass;
use crate::device::Platform;

/// An install with its evidence, candidates and rules.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) evidence: Evidence,
    pub(super) facts: AttributionCandidates,
    pub(super) rules: AttributionRules,
}

/// Returns a live install on Android 14 with default rules and no evidence.
pub(super) fn android() -> Scene {
    let evidence = Evidence {
        platform: Platform::Android,
        environment: Environment::Live,
        first_open_at: before_open(0),
        now: before_open(0),
        referrer: None,
        times: ReferrerTimes::default(),
        ad_services: AdServices::NoToken,
        fingerprint: DeviceFingerprint {
            address_class: Some(AddressClass::Other),
            os_version: text("14"),
            model: text("Pixel 8"),
            timezone: text("Europe/Berlin"),
            locale: text("en_US"),
            screen: screen(400),
        },
        probabilistic_allowed: true,
        attestation: None,
    };
    Scene {
        evidence,
        facts: AttributionCandidates::default(),
        rules: AttributionRules {
            fraud: FraudPolicy::Refuse,
            ..AttributionRules::default()
        },
    }
}

/// Returns the same install on an iPhone.
pub(super) fn ios() -> Scene {
    android().evidence(|evidence| {
        evidence.platform = Platform::Ios;
        evidence.fingerprint.os_version = text("17.5.1");
        evidence.fingerprint.model = text("iPhone15,2");
    })
}

impl Scene {
    pub(super) fn evidence(mut self, change: impl FnOnce(&mut Evidence)) -> Self {
        change(&mut self.evidence);
        self
    }

    pub(super) fn fingerprint(self, change: impl FnOnce(&mut DeviceFingerprint)) -> Self {
        self.evidence(|evidence| change(&mut evidence.fingerprint))
    }

    pub(super) fn rules(mut self, change: impl FnOnce(&mut AttributionRules)) -> Self {
        change(&mut self.rules);
        self
    }

    pub(super) fn fraud(self, policy: FraudPolicy) -> Self {
        self.rules(|rules| rules.fraud = policy)
    }

    pub(super) fn window(self, hours: i64) -> Self {
        self.rules(|rules| rules.click_window_hours = hours)
    }

    pub(super) fn referrer(self, referrer: &str) -> Self {
        self.evidence(|evidence| evidence.referrer = Some(Referrer::parse(Some(referrer))))
    }

    pub(super) fn apple(self, answer: AdServices) -> Self {
        self.evidence(|evidence| evidence.ad_services = answer)
    }

    /// Sets the store tap and the start of the installation by Google's clock, in seconds before
    /// the first open.
    pub(super) fn store_times(self, tap: i64, start: i64) -> Self {
        self.evidence(|evidence| {
            evidence.times.click_at_server = Some(before_open(tap));
            evidence.times.install_begin_at_server = Some(before_open(start));
        })
    }

    /// Sets the store tap and the start of the installation by the device's clock.
    pub(super) fn device_times(self, tap: i64, start: i64) -> Self {
        self.evidence(|evidence| {
            evidence.times.click_at = Some(before_open(tap));
            evidence.times.install_begin_at = Some(before_open(start));
        })
    }

    /// Delivers this click id, and no other.
    pub(super) fn delivers(mut self, source: ClickIdSource, lookup: ClickLookup) -> Self {
        self.facts.delivered = vec![DeliveredClick { source, lookup }];
        self
    }

    /// Delivers this click id through the Play Store, with timestamps.
    pub(super) fn through_store(self, tap: Tap) -> Self {
        let clicked = before_open(0).as_millis() - tap.0.click.clicked_at.as_millis();
        let seconds = clicked / 1_000;
        self.through_store_without_times(tap)
            .store_times(seconds, seconds.min(1))
    }

    /// Delivers this click id through the Play Store, without timestamps.
    pub(super) fn through_store_without_times(self, tap: Tap) -> Self {
        let scene = self.delivers(ClickIdSource::Referrer, ClickLookup::Found(Box::new(tap.0)));
        scene.referrer("ar_click_id=token")
    }

    /// Delivers this click id through the app.
    pub(super) fn through_client(self, tap: Tap) -> Self {
        self.delivers(ClickIdSource::Client, ClickLookup::Found(Box::new(tap.0)))
    }

    pub(super) fn same_advertising_id(mut self, taps: &[Tap]) -> Self {
        self.facts
            .same_advertising_id
            .extend(taps.iter().cloned().map(Tap::candidate));
        self
    }

    pub(super) fn same_address(mut self, taps: &[Tap]) -> Self {
        self.facts
            .same_address
            .extend(taps.iter().cloned().map(Tap::candidate));
        self
    }

    pub(super) fn decide(&self) -> Decision {
        decide(&self.evidence, &self.facts, &self.rules)
    }

    /// Returns the decision in a few words: the state and, if there is a credit, the match type,
    /// network, confidence and click number.
    pub(super) fn outcome(&self) -> String {
        let decision = self.decide();
        let Some(confidence) = decision.confidence else {
            assert_eq!(decision.match_type.as_str(), "organic");
            assert_eq!(decision.network.as_str(), "organic");
            assert_eq!(decision.click, None);
            return decision.state.as_str().to_owned();
        };
        let click = decision
            .click
            .map(|click| format!(" #{}", click.as_bytes()[0]));
        format!(
            "{} {} {} {confidence}{}",
            decision.state.as_str(),
            decision.match_type.as_str(),
            decision.network.as_str(),
            click.unwrap_or_default()
        )
    }

    /// Returns why the click with this number was rejected.
    pub(super) fn rejection(&self, number: u8) -> Option<Rejection> {
        let decision = self.decide();
        let considered = |click| {
            decision
                .candidates
                .iter()
                .find(|one| one.click == Some(click))
        };
        considered(click_id(number))
            .expect("a considered click")
            .rejection
    }
}
