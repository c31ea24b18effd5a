//! Decides a batch of web events in order of arrival.
//!
//! Each event sees the effects of the earlier ones: a refund finds a purchase earlier in its batch,
//! refunds of one payment add up, and an id is used once. A batch may consist of a single event.

#[cfg(test)]
mod tests;

use super::{ExistingEvent, WebAcceptance, WebClick, WebEvent, WebEventFacts, WebRecord, accept};
use crate::device::{DeviceKey, DeviceRef};
use crate::event::duplicate::{EventReplacement, is_web_payment};
use crate::event::{Event, EventKey};
use crate::exchange::{ImportedRates, exchange};
use crate::forwarding::plan::PlannedDelivery;
use crate::integration::Integration;
use crate::ledger::{ParentEvent, Receipt};
use crate::refusal::Refusal;
use crate::report::Increments;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, ClickId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// App and the website's event id.
pub type ExternalKey<'a> = (AppId, &'a str);

/// Stored data about the web events in a batch.
#[derive(Debug, Clone, Default)]
pub struct WebFacts<'a> {
    /// Accepted events whose ids the batch uses or refers to.
    pub events: BTreeMap<ExternalKey<'a>, ExistingEvent>,
    /// Refund totals of the payments in `events`. Payments without refunds are absent.
    pub refunds: BTreeMap<ExternalKey<'a>, RefundTotals>,
    /// Ids in the batch that another source reserved.
    pub reservations: BTreeMap<ExternalKey<'a>, Reservation>,
    /// The devices' first payments. Devices without a payment are absent.
    pub first_payments: BTreeMap<DeviceRef<'a>, EventId>,
    /// Clicks that the events name.
    pub clicks: BTreeMap<(AppId, ClickId), StoredWebClick>,
    /// Exchange rates for the events' currencies and days.
    pub rates: ImportedRates,
    /// Configured integrations of each app.
    pub integrations: BTreeMap<AppId, Arc<[Integration]>>,
}

/// Refund total and count of one payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RefundTotals {
    /// Sum of the refunds, not negative.
    pub total: Amount,
    /// Refund count.
    pub version: i64,
}

/// An id that another source reserved for its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The event that the id is reserved for.
    pub event_id: EventId,
    /// That event, if it is a stored SDK event.
    pub sdk_event: Option<Box<Event>>,
    /// A billing event that reported the payment with this id, if Stripe took it.
    pub billing_event: Option<Box<Event>>,
}

/// A stored click with its link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWebClick {
    /// The click. Shared because several events may name it.
    pub click: Arc<WebClick>,
    /// Whether a stored event refers to the click.
    pub is_referenced: bool,
}

/// An accepted web event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedWebEvent {
    /// Whether the same event was accepted before.
    pub is_duplicate: bool,
    /// Time of the event's first arrival.
    pub received_at: Timestamp,
}

/// Responses to the web events in a batch, and the changes to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebDecisions<'a> {
    /// One response per event, in order.
    pub answers: Vec<Result<AcceptedWebEvent, Refusal>>,
    /// Changes to write.
    pub changes: WebChanges<'a>,
}

/// Changes made by a batch of web events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebChanges<'a> {
    /// Events to store, in order of arrival.
    pub recorded: Vec<RecordedWebEvent>,
    /// Payments that this batch refunds.
    pub refunded: BTreeMap<ExternalKey<'a>, RefundedPayment>,
    /// Devices with a payment in this batch.
    pub payers: BTreeMap<DeviceRef<'a>, PayingDevice>,
    /// SDK events to replace, each with the arrival time of the web event that demotes it.
    pub demotions: Vec<(EventReplacement, Timestamp)>,
    /// Devices whose first payment must be determined again after all other writes.
    pub unsettled: BTreeSet<(AppId, DeviceKey)>,
    /// Clicks that an event refers to for the first time.
    pub clicks: BTreeSet<(AppId, ClickId)>,
}

/// An event to store, and the id to claim for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedWebEvent {
    /// The event.
    pub event: Event,
    /// Fingerprint of its payload.
    pub fingerprint: Digest,
    /// The event that must still hold the id's reservation. `None` means that the id must be free.
    pub reserved_by: Option<EventId>,
    /// Deliveries to plan.
    pub planned: Vec<PlannedDelivery>,
}

impl RecordedWebEvent {
    /// Returns the id of the payment that the event reports or refunds, if a billing provider may
    /// report it too. Billing events reserve their ids.
    pub fn billed_payment(&self) -> Option<&str> {
        if is_web_payment(&self.event) {
            let reserved = self.reserved_by.is_some();
            return reserved.then_some(self.event.external_id.as_str());
        }
        let website = self.event.website.as_deref()?;
        website.parent.as_deref()
    }

    /// Returns the id to claim.
    pub fn key(&self) -> EventKey<'_> {
        EventKey::of(&self.event, Some(&self.fingerprint))
    }
}

/// Refunds that the batch adds to one payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefundedPayment {
    /// Sum of all refunds of the payment, old and new.
    pub total: Amount,
    /// Refund count when read. The write fails if the count changed.
    pub version: i64,
    /// Number of new refunds.
    pub refunds: i64,
}

/// A device with a payment in this batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayingDevice {
    /// Arrival time of the device's first payment in this batch.
    pub at: Timestamp,
    /// The device's first payment when read. The write fails if the first payment changed.
    pub stored_first_payment: Option<EventId>,
    /// The payment that becomes the device's first. The write fails if the device has a first
    /// payment by then.
    pub new_first_payment: Option<EventId>,
}

impl WebChanges<'_> {
    /// Adds recorded and demoted events to the increments.
    pub fn count(&self, increments: &mut Increments) {
        for (demotion, _) in &self.demotions {
            increments.replace_event(&demotion.before, &demotion.after);
        }
        for recorded in &self.recorded {
            increments.add_event(&recorded.event);
        }
    }
}

/// Decides web events in order.
pub fn decide<'a>(web_events: &'a [WebEvent], facts: &WebFacts<'a>) -> WebDecisions<'a> {
    let mut batch = WebBatchState::new(facts);
    let answers = web_events
        .iter()
        .map(|web_event| batch.decide(web_event))
        .collect();
    let changes = batch.changes;
    WebDecisions { answers, changes }
}

/// The decision about an event that is only validated.
pub(super) struct UnrecordedDecision {
    /// The answer that the event would get.
    pub(super) accepted: AcceptedWebEvent,
    /// The event to record; `None` if it is a duplicate.
    pub(super) recorded: Option<RecordedWebEvent>,
    /// Stored SDK events that would become duplicates of the event.
    pub(super) demoted: Vec<Event>,
}

/// Decides an event that is only validated, so that its click may be on a test link.
pub(super) fn decide_unrecorded<'a>(
    web_event: &'a WebEvent,
    facts: &WebFacts<'a>,
) -> Result<UnrecordedDecision, Refusal> {
    let mut batch = WebBatchState {
        accepts_test_clicks: true,
        ..WebBatchState::new(facts)
    };
    let accepted = batch.decide(web_event)?;
    let WebChanges {
        mut recorded,
        demotions,
        ..
    } = batch.changes;
    let demoted = demotions.into_iter().map(|(demotion, _)| demotion.before);
    Ok(UnrecordedDecision {
        accepted,
        recorded: recorded.pop(),
        demoted: demoted.collect(),
    })
}

/// Facts plus the effects of the decisions made so far.
struct WebBatchState<'f, 'a> {
    facts: &'f WebFacts<'a>,
    /// Index of this batch's events in the list of recorded events.
    recorded_index: BTreeMap<ExternalKey<'a>, usize>,
    changes: WebChanges<'a>,
    /// Whether events may name clicks on test links, because they are only validated.
    accepts_test_clicks: bool,
}

impl<'f, 'a> WebBatchState<'f, 'a> {
    fn new(facts: &'f WebFacts<'a>) -> Self {
        Self {
            facts,
            recorded_index: BTreeMap::new(),
            changes: WebChanges::default(),
            accepts_test_clicks: false,
        }
    }

    fn decide(&mut self, web_event: &'a WebEvent) -> Result<AcceptedWebEvent, Refusal> {
        let facts = self.facts_of(web_event);
        let before = facts
            .existing
            .as_ref()
            .and_then(|before| before.event.as_ref());
        let first = before.map_or(web_event.received_at, |event| event.received_at);
        Ok(match accept(web_event, facts)? {
            WebAcceptance::Duplicate => AcceptedWebEvent {
                is_duplicate: true,
                received_at: first,
            },
            WebAcceptance::Recorded(record) => {
                self.note(web_event, *record);
                AcceptedWebEvent {
                    is_duplicate: false,
                    received_at: web_event.received_at,
                }
            }
        })
    }

    fn facts_of(&self, web_event: &WebEvent) -> WebEventFacts {
        if let Some(before) = self.existing(web_event.key()) {
            // The id is already used, so the event is only compared with the accepted payload.
            return WebEventFacts {
                existing: Some(before),
                ..WebEventFacts::default()
            };
        }
        let click = web_event.click.map(|click| (web_event.app, click));
        let click = click.and_then(|click| self.facts.clicks.get(&click));
        let reservation = self.facts.reservations.get(&web_event.key());
        let integrations = self.facts.integrations.get(&web_event.app);
        WebEventFacts {
            existing: None,
            click: click.map(|click| click.click.clone()),
            parent: web_event
                .parent_key()
                .and_then(|parent| self.parent(parent)),
            sdk_event: reservation.and_then(|reservation| reservation.sdk_event.clone()),
            billing_event: reservation.and_then(|reservation| reservation.billing_event.clone()),
            exchanged: web_event
                .exchange_day()
                .and_then(|(amount, currency, day)| {
                    exchange(amount, currency, day, &self.facts.rates)
                }),
            has_paid: self.first_payment(web_event.device_ref()).is_some(),
            integrations: integrations.cloned().unwrap_or_default(),
            accepts_test_click: self.accepts_test_clicks,
        }
    }

    /// Returns the event with this id, stored or from this batch.
    fn existing(&self, key: ExternalKey<'_>) -> Option<ExistingEvent> {
        if let Some(before) = self.facts.events.get(&key) {
            return Some(before.clone());
        }
        let recorded = self.changes.recorded.get(*self.recorded_index.get(&key)?)?;
        Some(ExistingEvent {
            fingerprint: recorded.fingerprint,
            event: Some(Box::new(recorded.event.clone())),
        })
    }

    /// Returns the event with this id as the parent of another event.
    fn parent(&self, key: ExternalKey<'_>) -> Option<ParentEvent> {
        let event = self.existing(key)?.event;
        let before = self.facts.refunds.get(&key).map(|refunds| refunds.total);
        let now = self.changes.refunded.get(&key).map(|payment| payment.total);
        let refunded = now.or(before).unwrap_or(Amount::ZERO);
        let receipt = event.and_then(|event| Receipt::of(*event, refunded));
        Some(receipt.map_or(ParentEvent::NotAPayment, |receipt| {
            ParentEvent::Payment(Box::new(receipt))
        }))
    }

    /// Returns a device's first payment so far.
    fn first_payment(&self, device: DeviceRef<'_>) -> Option<EventId> {
        let payer = self.changes.payers.get(&device);
        let claimed = payer.and_then(|payer| payer.new_first_payment);
        claimed.or_else(|| self.stored_first_payment(device))
    }

    /// Returns a device's stored first payment, unless this batch demotes it.
    fn stored_first_payment(&self, device: DeviceRef<'_>) -> Option<EventId> {
        let stored = *self.facts.first_payments.get(&device)?;
        let is_vacated =
            self.changes.demotions.iter().any(|(demotion, _)| {
                demotion.before.id == stored && demotion.vacates_first_payment()
            });
        (!is_vacated).then_some(stored)
    }

    fn note(&mut self, web_event: &'a WebEvent, record: WebRecord) {
        if let Some(demotion) = record.demotion {
            self.note_demotion(*demotion, web_event.received_at);
        }
        if let (Some(key), Some(after)) = (web_event.parent_key(), record.refunded) {
            let version = self.facts.refunds.get(&key).map(|refunds| refunds.version);
            let payment = self.changes.refunded.entry(key).or_insert(RefundedPayment {
                total: after.refunded,
                version: version.unwrap_or(0),
                refunds: 0,
            });
            payment.total = after.refunded;
            payment.refunds += 1;
        }
        if let Some(click) = web_event.click.map(|click| (web_event.app, click))
            && self
                .facts
                .clicks
                .get(&click)
                .is_some_and(|it| !it.is_referenced)
        {
            self.changes.clicks.insert(click);
        }
        self.note_payment(web_event, &record.event);
        let reservation = self.facts.reservations.get(&web_event.key());
        self.recorded_index
            .insert(web_event.key(), self.changes.recorded.len());
        self.changes.recorded.push(RecordedWebEvent {
            event: record.event,
            fingerprint: record.fingerprint,
            reserved_by: reservation.map(|reservation| reservation.event_id),
            planned: record.planned,
        });
    }

    /// Records that an SDK event no longer counts. The SDK event may have been its device's first
    /// payment.
    fn note_demotion(&mut self, demotion: EventReplacement, at: Timestamp) {
        let before = &demotion.before;
        let device = before.device.clone();
        let unsettled = device.map(|device| (before.app, device));
        self.changes.unsettled.extend(unsettled);
        if demotion.vacates_first_payment() {
            for payer in self.changes.payers.values_mut() {
                payer
                    .stored_first_payment
                    .take_if(|first| *first == before.id);
            }
        }
        self.changes.demotions.push((demotion, at));
    }

    /// Records a device's payment. If the payment is earlier than the device's first payment so
    /// far, it gets the first-payment flag when the device is settled.
    fn note_payment(&mut self, web_event: &'a WebEvent, event: &Event) {
        if event.payer().is_none() {
            return;
        }
        let device = web_event.device_ref();
        if event.displaces_first_payment(self.first_payment(device)) {
            let unsettled = (web_event.app, web_event.device.clone());
            self.changes.unsettled.insert(unsettled);
        }
        let before = self.stored_first_payment(device);
        let payer = self.changes.payers.entry(device).or_insert(PayingDevice {
            at: web_event.received_at,
            stored_first_payment: before,
            new_first_payment: None,
        });
        if event.first_payment {
            payer.new_first_payment = Some(event.id);
        }
    }
}
