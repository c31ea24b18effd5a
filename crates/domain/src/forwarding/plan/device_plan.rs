//! Plans the deliveries of a device's events.

use super::{Plan, PlanFacts, PlannedDelivery, SkipReason, plan};
use crate::click::Click;
use crate::device::Consent;
use crate::event::{Credit, Event, EventSource};
use crate::install::{Attribution, DeviceState};
use crate::integration::{Integration, Network};
use crate::ledger::MoneyPolicy;
use crate::vocabulary::id::ClickId;
use crate::vocabulary::time::Timestamp;

/// Returns the click that planning must load: the credited click, if any integration is active.
pub fn credited_planning_click(
    integrations: &[Integration],
    credit: Option<&Credit>,
) -> Option<ClickId> {
    let click = credit.and_then(|credit| credit.click);
    click.filter(|_| integrations.iter().any(Integration::is_active))
}

/// Changes to the deliveries of an event that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replan {
    /// Deliveries to plan, unless they are already finished.
    pub planned: Vec<PlannedDelivery>,
    /// Networks whose pending deliveries are cancelled.
    pub cancelled: Vec<Network>,
    /// Whether the event's skips changed.
    pub skips_changed: bool,
}

/// Facts needed to plan the deliveries of a device's events.
#[derive(Debug, Clone, Copy)]
pub struct DeviceFacts<'a> {
    /// The stored state of the device.
    pub state: &'a DeviceState,
    /// The click credited with the device's install.
    pub click: Option<&'a Click>,
    /// Whether revenue from the app's SDK counts.
    pub policy: MoneyPolicy,
    /// Time of planning.
    pub now: Timestamp,
    /// Whether the app forwards events only for devices with a verified attestation.
    pub requires_attestation: bool,
}

impl DeviceFacts<'_> {
    /// Plans the deliveries of one of the device's events and stores the skips on the event.
    pub fn plan(&self, event: &mut Event, integrations: &[Integration]) -> Plan {
        let decision = self.state.attribution.as_ref().map(|one| &one.decision);
        let device = self.state.device.as_ref();
        let facts = PlanFacts {
            event,
            click: self.click,
            network_click_id: decision.and_then(|decision| decision.network_click_id.as_ref()),
            consent: event
                .effective_consent(device.map_or_else(Consent::default, |device| device.consent)),
            matching: &self.state.identity.contact_hashes,
            has_os_version: device.is_some_and(|device| device.traits.os_version.is_some()),
            policy: self.policy,
            now: self.now,
            lacks_attestation: self.lacks_attestation(event),
        };
        let plan = plan(&facts, integrations);
        event.skipped.clone_from(&plan.skipped);
        plan
    }

    /// Returns whether the event must not be forwarded, because its device has not proved that it
    /// runs the genuine app. A website authenticates its events with a secret key. A payment that a
    /// provider reports without a device is not credited to one.
    fn lacks_attestation(&self, event: &Event) -> bool {
        let concerns_device = event.source != EventSource::Web && event.device.is_some();
        let attribution = self.state.attribution.as_ref();
        let is_attested = attribution.is_some_and(Attribution::is_attested);
        self.requires_attestation && concerns_device && !is_attested
    }

    /// Plans the deliveries of one of the device's events again and stores the skips on the event.
    /// A delivery that was planned before the mapping changed stays planned.
    pub fn replan(&self, event: &mut Event, integrations: &[Integration]) -> Replan {
        let before = event.skipped.clone();
        let plan = self.plan(event, integrations);
        let is_planned = |network| plan.planned.iter().any(|one| one.network == network);
        let stays = |network| plan.skipped.contains(&(network, SkipReason::EnabledLater));
        let cancelled = Network::ALL.into_iter();
        let cancelled = cancelled.filter(|network| !is_planned(*network) && !stays(*network));
        Replan {
            cancelled: cancelled.collect(),
            skips_changed: event.skipped != before,
            planned: plan.planned,
        }
    }
}
