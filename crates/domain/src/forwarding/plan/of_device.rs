//! Planning what a device of an app did.

use super::{Plan, PlanFacts, plan};
use crate::click::Click;
use crate::device::Consent;
use crate::event::Event;
use crate::install::Known;
use crate::integration::Integration;
use crate::ledger::MoneyPolicy;
use crate::vocabulary::time::Timestamp;

/// What a device's events are planned with.
#[derive(Debug, Clone, Copy)]
pub struct DeviceFacts<'a> {
    /// What is known of the device.
    pub known: &'a Known,
    /// The click that its install is credited to.
    pub click: Option<&'a Click>,
    /// Whether the app holds back what suspicious installs do.
    pub holds_suspicious: bool,
    /// What the app says about its SDK's money.
    pub policy: MoneyPolicy,
    /// When they are planned.
    pub now: Timestamp,
}

impl DeviceFacts<'_> {
    /// Plans one of its events, and notes on it which networks do not hear of it.
    pub fn plan(&self, event: &mut Event, integrations: &[Integration]) -> Plan {
        let decision = self.known.attribution.as_ref().map(|one| &one.decision);
        let device = self.known.device.as_ref();
        let is_suspicious = decision.is_some_and(|decision| !decision.flags.is_empty());
        let facts = PlanFacts {
            event,
            click: self.click,
            network_click_id: decision.and_then(|decision| decision.network_click_id.as_ref()),
            consent: device.map_or_else(Consent::default, |device| device.consent),
            matching: &self.known.identity.matching,
            is_described: device.is_some_and(|device| device.traits.os_version.is_some()),
            held: self.holds_suspicious && is_suspicious,
            policy: self.policy,
            now: self.now,
        };
        let plan = plan(&facts, integrations);
        event.skipped.clone_from(&plan.skipped);
        plan
    }
}
