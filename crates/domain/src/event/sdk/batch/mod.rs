//! Decides a batch of SDK requests in order of arrival.
//!
//! Each request sees the effects of the earlier ones: an id is used once, and a device has one
//! first payment. A batch may consist of a single request.

#[cfg(test)]
mod tests;

use super::{DeviceContext, SdkEvent, SdkEventOutcome, SdkRequestContext, record};
use crate::click::Click;
use crate::device::{DeviceRef, LAST_SEEN_STEP};
use crate::event::duplicate::{is_verifiable, mark_duplicate};
use crate::event::name::canonical;
use crate::event::{Event, EventKey, EventSource, SharedId};
use crate::exchange::{ImportedRates, exchange};
use crate::forwarding::plan::{DeviceFacts, PlannedDelivery, credited_planning_click};
use crate::install::{Attribution, DeviceState};
use crate::integration::Integration;
use crate::report::Increments;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::id::{AppId, ClickId, EventId};
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Events that one device sent in one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkRequest {
    /// Context that the events are recorded with.
    pub context: SdkRequestContext,
    /// The events.
    pub events: Vec<SdkEvent>,
}

impl SdkRequest {
    /// Returns the device that sent the request.
    pub const fn sender(&self) -> DeviceRef<'_> {
        DeviceRef {
            app: self.context.app,
            environment: self.context.environment,
            key: &self.context.device,
        }
    }

    /// Returns the id of one of the request's events.
    fn id<'a>(&self, event: &'a SdkEvent) -> SharedId<'a> {
        (
            self.context.app,
            self.context.environment,
            &event.external_id,
        )
    }

    /// Returns the event ids to claim.
    pub fn keys(&self) -> impl Iterator<Item = EventKey<'_>> {
        self.events.iter().map(|event| EventKey {
            app: self.context.app,
            environment: self.context.environment,
            source: EventSource::Sdk,
            external_id: &event.external_id,
            event: event.id,
            fingerprint: None,
        })
    }

    /// Returns the ids to reserve: those of events that a verified source may report, too.
    pub fn verifiable(&self) -> impl Iterator<Item = (SharedId<'_>, EventId)> {
        let events = self.events.iter();
        let verifiable = events.filter(|event| is_verifiable(&canonical(&event.name).0));
        verifiable.map(|event| (self.id(event), event.id))
    }

    /// Returns the currencies and days of the rates needed for the events with these ids.
    pub fn exchange_days(
        &self,
        new_ids: &BTreeSet<SharedId<'_>>,
    ) -> impl Iterator<Item = (Currency, Day)> {
        let events = self.events.iter();
        let new = events.filter(|event| new_ids.contains(&self.id(event)));
        new.filter_map(SdkEvent::exchange_day)
            .map(|(_, currency, day)| (currency, day))
    }
}

/// Stored data about the requests in a batch.
#[derive(Debug, Clone, Default)]
pub struct SdkFacts<'a> {
    /// The devices. Unknown devices are absent.
    pub devices: BTreeMap<DeviceRef<'a>, DeviceState>,
    /// Ids not used before this batch.
    pub new_ids: BTreeSet<SharedId<'a>>,
    /// Verified events that share an id with this batch, in order of their internal ids.
    pub verified: BTreeMap<SharedId<'a>, Vec<Event>>,
    /// Exchange rates for the events' currencies and days.
    pub rates: ImportedRates,
    /// Configured integrations of each app.
    pub integrations: BTreeMap<AppId, Arc<[Integration]>>,
    /// Clicks needed for planning ([`planning_click`]).
    pub clicks: BTreeMap<(AppId, ClickId), Click>,
}

/// Returns the click needed to plan a device's events, if any ([`credited_planning_click`]).
pub fn planning_click(state: &DeviceState, integrations: &[Integration]) -> Option<ClickId> {
    let credit = state.attribution.as_ref().map(Attribution::credit);
    credited_planning_click(integrations, credit.as_ref())
}

fn credited_click(state: &DeviceState) -> Option<ClickId> {
    state.attribution.as_ref()?.decision.click
}

/// Responses to the requests in a batch, and the changes to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkDecisions<'a> {
    /// One outcome per event, grouped by request.
    pub answers: Vec<Vec<SdkEventOutcome>>,
    /// Changes to write.
    pub changes: SdkChanges<'a>,
}

/// Changes made by a batch of requests. The batch's event ids were claimed and reserved before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SdkChanges<'a> {
    /// Events to store, in order of arrival.
    pub recorded: Vec<RecordedSdkEvent>,
    /// Devices whose first payment must be determined again after all other writes.
    pub unsettled: BTreeSet<DeviceRef<'a>>,
    /// Devices whose `last_seen_at` must be updated.
    pub seen: BTreeMap<DeviceRef<'a>, Timestamp>,
}

/// An event to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedSdkEvent {
    /// The event.
    pub event: Event,
    /// Deliveries to plan.
    pub planned: Vec<PlannedDelivery>,
}

impl SdkChanges<'_> {
    /// Returns events that become their device's first payment.
    pub fn first_payments(&self) -> impl Iterator<Item = &Event> {
        let events = self.recorded.iter().map(|recorded| &recorded.event);
        events.filter(|event| event.first_payment)
    }

    /// Adds the recorded events to the increments.
    pub fn count(&self, increments: &mut Increments) {
        for recorded in &self.recorded {
            increments.add_event(&recorded.event);
        }
    }
}

/// Decides requests in order.
pub fn decide<'a>(requests: &'a [SdkRequest], facts: &SdkFacts<'a>) -> SdkDecisions<'a> {
    let mut batch = SdkBatchState {
        facts,
        used: BTreeSet::new(),
        device_contexts: BTreeMap::new(),
        changes: SdkChanges::default(),
    };
    let answers = requests.iter().map(|request| batch.decide(request));
    let answers = answers.collect();
    let changes = batch.changes;
    SdkDecisions { answers, changes }
}

/// Facts plus the effects of the decisions made so far.
struct SdkBatchState<'f, 'a> {
    facts: &'f SdkFacts<'a>,
    /// New ids already used in this batch.
    used: BTreeSet<SharedId<'a>>,
    /// Current context of each device.
    device_contexts: BTreeMap<DeviceRef<'a>, DeviceContext>,
    changes: SdkChanges<'a>,
}

impl<'a> SdkBatchState<'_, 'a> {
    fn decide(&mut self, request: &'a SdkRequest) -> Vec<SdkEventOutcome> {
        let (context, sender) = (&request.context, request.sender());
        let unknown = DeviceState::default();
        let state = self.facts.devices.get(&sender).unwrap_or(&unknown);
        let device_context = self.device_contexts.remove(&sender);
        let mut device_context = device_context.unwrap_or_else(|| DeviceContext::of(state));
        let click = credited_click(state).map(|click| (context.app, click));
        let planning = DeviceFacts {
            state,
            click: click.and_then(|click| self.facts.clicks.get(&click)),
            policy: context.policy,
            now: context.received_at,
            requires_attestation: context.requires_attestation,
        };
        let mut answers = Vec::with_capacity(request.events.len());
        for sent in &request.events {
            let id = request.id(sent);
            if !self.facts.new_ids.contains(&id) || !self.used.insert(id) {
                answers.push(SdkEventOutcome::Duplicate);
                continue;
            }
            let recorded = self.recorded(sent, id, &planning, context, &device_context);
            let event = &recorded.event;
            if event.first_payment {
                device_context.first_payment = Some(event.id);
            } else if event.displaces_first_payment(device_context.first_payment) {
                device_context.first_payment = Some(event.id);
                self.changes.unsettled.insert(sender);
            }
            self.changes.recorded.push(recorded);
            answers.push(SdkEventOutcome::Accepted);
        }
        self.device_contexts.insert(sender, device_context);
        self.note_seen(sender, state, context.received_at);
        answers
    }

    fn recorded(
        &self,
        sent: &SdkEvent,
        id: SharedId<'_>,
        planning: &DeviceFacts<'_>,
        context: &SdkRequestContext,
        device_context: &DeviceContext,
    ) -> RecordedSdkEvent {
        let exchanged = sent
            .exchange_day()
            .and_then(|(amount, currency, day)| exchange(amount, currency, day, &self.facts.rates));
        let mut event = record(sent, context, device_context, exchanged);
        if let Some(verified) = self.facts.verified.get(&id) {
            mark_duplicate(&mut event, verified);
        }
        let integrations = self.facts.integrations.get(&context.app);
        let plan = planning.plan(&mut event, integrations.map_or(&[], |all| all));
        let planned = plan.planned;
        RecordedSdkEvent { event, planned }
    }

    /// Updates when a configured device was last seen, at most once per [`LAST_SEEN_STEP`].
    fn note_seen(&mut self, sender: DeviceRef<'a>, state: &DeviceState, at: Timestamp) {
        let Some(device) = &state.device else {
            return;
        };
        let last = self.changes.seen.get(&sender);
        let last = last.copied().unwrap_or(device.last_seen_at);
        if at.since(last) >= LAST_SEEN_STEP {
            self.changes.seen.insert(sender, at);
        }
    }
}
