//! A batch of SDK requests, decided in the order of their arrival.
//!
//! Each decision is a fact for the next one: an id is given once, and a device pays for the first time once. A batch of
//! one request is a batch.

#[cfg(test)]
mod tests;

use super::{Acceptance, DeviceContext, SdkEvent, SdkRequestContext, record};
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

/// Events of one device that arrived together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkRequest {
    /// Where and when they arrived.
    pub context: SdkRequestContext,
    /// The events.
    pub events: Vec<SdkEvent>,
}

impl SdkRequest {
    /// Returns the device that sent it.
    pub const fn sender(&self) -> DeviceRef<'_> {
        DeviceRef {
            app: self.context.app,
            environment: self.context.environment,
            key: &self.context.device,
        }
    }

    /// Returns the id of one of its events.
    fn id<'a>(&self, event: &'a SdkEvent) -> SharedId<'a> {
        (
            self.context.app,
            self.context.environment,
            &event.external_id,
        )
    }

    /// Returns the ids to claim.
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

    /// Returns the ids to reserve: those of events that a verified source may report too.
    pub fn verifiable(&self) -> impl Iterator<Item = (SharedId<'_>, EventId)> {
        let events = self.events.iter();
        let verifiable = events.filter(|event| is_verifiable(&canonical(&event.name).0));
        verifiable.map(|event| (self.id(event), event.id))
    }

    /// Returns the currencies and days to know rates for, of the events that have these ids.
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

/// What the store knows about the requests of a batch.
#[derive(Debug, Clone, Default)]
pub struct SdkFacts<'a> {
    /// The devices. Absent where nothing is known.
    pub devices: BTreeMap<DeviceRef<'a>, DeviceState>,
    /// Ids that no event had before this batch.
    pub new_ids: BTreeSet<SharedId<'a>>,
    /// Verified events that have ids of this batch, in the order of their own ids.
    pub verified: BTreeMap<SharedId<'a>, Vec<Event>>,
    /// Exchange rates for the events' currencies and days.
    pub rates: ImportedRates,
    /// Integrations of each app that were ever touched.
    pub integrations: BTreeMap<AppId, Arc<[Integration]>>,
    /// Clicks that planning needs ([`wanted_click`]).
    pub clicks: BTreeMap<(AppId, ClickId), Click>,
}

/// Returns the click that a device's events are planned with, if any ([`planned_with`]).
pub fn planning_click(known: &DeviceState, integrations: &[Integration]) -> Option<ClickId> {
    let credit = known.attribution.as_ref().map(Attribution::credit);
    credited_planning_click(integrations, credit.as_ref())
}

fn credited_click(known: &DeviceState) -> Option<ClickId> {
    known.attribution.as_ref()?.decision.click
}

/// Answers to the requests of a batch, and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkDecisions<'a> {
    /// One answer per event, request by request in their order.
    pub answers: Vec<Vec<Acceptance>>,
    /// What to write.
    pub changes: SdkChanges<'a>,
}

/// What a batch of requests changes. The ids of its events are claimed and reserved before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SdkChanges<'a> {
    /// Events to store, in the order of their arrival.
    pub recorded: Vec<RecordedSdkEvent>,
    /// Devices whose first payment must be settled after everything else is written.
    pub unsettled: BTreeSet<DeviceRef<'a>>,
    /// Devices whose last call must be noted.
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
    /// Returns the events that become the first payments of their devices.
    pub fn first_payments(&self) -> impl Iterator<Item = &Event> {
        let events = self.recorded.iter().map(|recorded| &recorded.event);
        events.filter(|event| event.first_payment)
    }

    /// Counts the recorded events.
    pub fn count(&self, increments: &mut Increments) {
        for recorded in &self.recorded {
            increments.add_event(&recorded.event);
        }
    }
}

/// Decides requests one after the other.
pub fn decide<'a>(requests: &'a [SdkRequest], facts: &SdkFacts<'a>) -> SdkDecisions<'a> {
    let mut fold = SdkBatchState {
        facts,
        used: BTreeSet::new(),
        owners: BTreeMap::new(),
        changes: SdkChanges::default(),
    };
    let answers = requests.iter().map(|request| fold.decide(request));
    let answers = answers.collect();
    let changes = fold.changes;
    SdkDecisions { answers, changes }
}

/// The facts, and what the decisions so far add to them.
struct SdkBatchState<'f, 'a> {
    facts: &'f SdkFacts<'a>,
    /// New ids that an event of this batch has by now.
    used: BTreeSet<SharedId<'a>>,
    /// The devices as they are by now.
    owners: BTreeMap<DeviceRef<'a>, DeviceContext>,
    changes: SdkChanges<'a>,
}

impl<'a> SdkBatchState<'_, 'a> {
    fn decide(&mut self, request: &'a SdkRequest) -> Vec<Acceptance> {
        let (arrival, sender) = (&request.context, request.sender());
        let unknown = DeviceState::default();
        let known = self.facts.devices.get(&sender).unwrap_or(&unknown);
        let owner = self.owners.remove(&sender);
        let mut owner = owner.unwrap_or_else(|| DeviceContext::of(known));
        let click = credited_click(known).map(|click| (arrival.app, click));
        let planning = DeviceFacts {
            state: known,
            click: click.and_then(|click| self.facts.clicks.get(&click)),
            holds_suspicious: arrival.holds_suspicious,
            policy: arrival.policy,
            now: arrival.received_at,
        };
        let mut answers = Vec::with_capacity(request.events.len());
        for sent in &request.events {
            let id = request.id(sent);
            if !self.facts.new_ids.contains(&id) || !self.used.insert(id) {
                answers.push(Acceptance::Duplicate);
                continue;
            }
            let recorded = self.recorded(sent, id, &planning, arrival, &owner);
            let event = &recorded.event;
            if event.first_payment {
                owner.first_payment = Some(event.id);
            } else if event.displaces_first_payment(owner.first_payment) {
                owner.first_payment = Some(event.id);
                self.changes.unsettled.insert(sender);
            }
            self.changes.recorded.push(recorded);
            answers.push(Acceptance::Accepted);
        }
        self.owners.insert(sender, owner);
        self.note_seen(sender, known, arrival.received_at);
        answers
    }

    fn recorded(
        &self,
        sent: &SdkEvent,
        id: SharedId<'_>,
        planning: &DeviceFacts<'_>,
        arrival: &SdkRequestContext,
        owner: &DeviceContext,
    ) -> RecordedSdkEvent {
        let exchanged = sent
            .exchange_day()
            .and_then(|(amount, currency, day)| exchange(amount, currency, day, &self.facts.rates));
        let mut event = record(sent, arrival, owner, exchanged);
        if let Some(verified) = self.facts.verified.get(&id) {
            mark_duplicate(&mut event, verified);
        }
        let integrations = self.facts.integrations.get(&arrival.app);
        let plan = planning.plan(&mut event, integrations.map_or(&[], |all| all));
        let planned = plan.planned;
        RecordedSdkEvent { event, planned }
    }

    /// Notes that a configured device called, unless it did so a moment ago.
    fn note_seen(&mut self, sender: DeviceRef<'a>, known: &DeviceState, at: Timestamp) {
        let Some(device) = &known.device else {
            return;
        };
        let last = self.changes.seen.get(&sender);
        let last = last.copied().unwrap_or(device.last_seen_at);
        if at.since(last) >= LAST_SEEN_STEP {
            self.changes.seen.insert(sender, at);
        }
    }
}
