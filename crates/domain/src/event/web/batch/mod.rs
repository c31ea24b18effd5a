//! A batch of posts, decided in the order of their arrival.
//!
//! Each decision is a fact for the next one: a refund finds the purchase before it in its batch, two refunds of one
//! payment add up, and an id is given once. A batch of one is a batch.

#[cfg(test)]
mod tests;

use super::{ExistingEvent, WebAcceptance, WebClick, WebEvent, WebEventFacts, WebRecord, accept};
use crate::device::{DeviceKey, DeviceRef};
use crate::event::duplicate::EventReplacement;
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

/// An app, and an id that its website gave.
pub type ExternalKey<'a> = (AppId, &'a str);

/// What the store knows about the posts of a batch.
#[derive(Debug, Clone, Default)]
pub struct WebFacts<'a> {
    /// Accepted events that have ids of posts or of their parents.
    pub events: BTreeMap<ExternalKey<'a>, ExistingEvent>,
    /// Refunds of payments among these events. Absent where there are none.
    pub refunds: BTreeMap<ExternalKey<'a>, RefundTotals>,
    /// Ids of posts that another source reserved.
    pub reservations: BTreeMap<ExternalKey<'a>, Reservation>,
    /// First payments of the posts' devices. Absent where a device has not paid.
    pub first_payments: BTreeMap<DeviceRef<'a>, EventId>,
    /// Clicks that the posts name.
    pub clicks: BTreeMap<(AppId, ClickId), StoredWebClick>,
    /// Exchange rates for the posts' currencies and days.
    pub rates: ImportedRates,
    /// Integrations of each app that were ever touched.
    pub integrations: BTreeMap<AppId, Arc<[Integration]>>,
}

/// Refunds of one payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RefundTotals {
    /// Sum of the refunds, not negative.
    pub total: Amount,
    /// Refund count.
    pub version: i64,
}

/// An id that another source reserved for its own event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The event that the id is reserved for.
    pub event_id: EventId,
    /// That event, if it is a stored event of the SDK.
    pub sdk_event: Option<Box<Event>>,
}

/// A stored click with its link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWebClick {
    /// The click. Several posts may name it.
    pub click: Arc<WebClick>,
    /// Whether an event refers to it already.
    pub is_referenced: bool,
}

/// An accepted post. One that was accepted before is a duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedWebEvent {
    /// Whether it was accepted before.
    pub is_duplicate: bool,
    /// When it arrived first.
    pub received_at: Timestamp,
}

/// Answers to the posts of a batch, and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebDecisions<'a> {
    /// One answer per post, in their order.
    pub answers: Vec<Result<AcceptedWebEvent, Refusal>>,
    /// What to write.
    pub changes: WebChanges<'a>,
}

/// What a batch of posts changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebChanges<'a> {
    /// Events to store, in the order of their arrival.
    pub recorded: Vec<RecordedWebEvent>,
    /// Payments that refunds of this batch belong to.
    pub refunded: BTreeMap<ExternalKey<'a>, RefundedPayment>,
    /// Devices that pay.
    pub payers: BTreeMap<DeviceRef<'a>, Payer>,
    /// SDK events to replace, each with the moment of the post that demotes it.
    pub demotions: Vec<(EventReplacement, Timestamp)>,
    /// Devices whose first payment must be settled after everything else is written.
    pub unsettled: BTreeSet<(AppId, DeviceKey)>,
    /// Clicks that an event refers to for the first time.
    pub clicks: BTreeSet<(AppId, ClickId)>,
}

/// An event to store under an id to claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedWebEvent {
    /// The event.
    pub event: Event,
    /// Fingerprint of its payload.
    pub fingerprint: Digest,
    /// The event that its id must still be reserved for. If absent, the id must be free.
    pub reserved_by: Option<EventId>,
    /// Deliveries to plan.
    pub planned: Vec<PlannedDelivery>,
}

impl RecordedWebEvent {
    /// Returns the id to claim.
    pub fn key(&self) -> EventKey<'_> {
        EventKey::of(&self.event, Some(&self.fingerprint))
    }
}

/// New refunds of one payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefundedPayment {
    /// Sum of all its refunds, old and new.
    pub total: Amount,
    /// Refund count when read, which it must still have.
    pub version: i64,
    /// How many refunds are new.
    pub refunds: i64,
}

/// A device that pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payer {
    /// When its first payment of this batch arrived.
    pub at: Timestamp,
    /// Its first payment when read, which it must still have.
    pub stored_first_payment: Option<EventId>,
    /// The payment that becomes its first one. The device must still have none.
    pub new_first_payment: Option<EventId>,
}

impl WebChanges<'_> {
    /// Counts the recorded and the demoted events.
    pub fn count(&self, increments: &mut Increments) {
        for (demotion, _) in &self.demotions {
            increments.replace_event(&demotion.before, &demotion.after);
        }
        for recorded in &self.recorded {
            increments.add_event(&recorded.event);
        }
    }
}

/// Decides posts one after the other.
pub fn decide<'a>(posts: &'a [WebEvent], facts: &WebFacts<'a>) -> WebDecisions<'a> {
    let mut fold = WebBatchState {
        facts,
        recorded_index: BTreeMap::new(),
        changes: WebChanges::default(),
    };
    let answers = posts.iter().map(|posted| fold.decide(posted)).collect();
    let changes = fold.changes;
    WebDecisions { answers, changes }
}

/// The facts, and what the decisions so far add to them.
struct WebBatchState<'f, 'a> {
    facts: &'f WebFacts<'a>,
    /// Places of this batch's events among those to store.
    recorded_index: BTreeMap<ExternalKey<'a>, usize>,
    changes: WebChanges<'a>,
}

impl<'a> WebBatchState<'_, 'a> {
    fn decide(&mut self, posted: &'a WebEvent) -> Result<AcceptedWebEvent, Refusal> {
        let facts = self.facts_of(posted);
        let before = facts
            .existing
            .as_ref()
            .and_then(|before| before.event.as_ref());
        let first = before.map_or(posted.received_at, |event| event.received_at);
        Ok(match accept(posted, facts)? {
            WebAcceptance::Duplicate => AcceptedWebEvent {
                is_duplicate: true,
                received_at: first,
            },
            WebAcceptance::Recorded(record) => {
                self.note(posted, *record);
                AcceptedWebEvent {
                    is_duplicate: false,
                    received_at: posted.received_at,
                }
            }
        })
    }

    fn facts_of(&self, posted: &WebEvent) -> WebEventFacts {
        if let Some(before) = self.existing(posted.key()) {
            // An id that was given before is compared with nothing else.
            return WebEventFacts {
                existing: Some(before),
                ..WebEventFacts::default()
            };
        }
        let click = posted.click.map(|click| (posted.app, click));
        let click = click.and_then(|click| self.facts.clicks.get(&click));
        let reservation = self.facts.reservations.get(&posted.key());
        let integrations = self.facts.integrations.get(&posted.app);
        WebEventFacts {
            existing: None,
            click: click.map(|click| click.click.clone()),
            parent: posted.parent_key().and_then(|parent| self.parent(parent)),
            sdk_event: reservation.and_then(|reservation| reservation.sdk_event.clone()),
            exchanged: posted.exchange_day().and_then(|(amount, currency, day)| {
                exchange(amount, currency, day, &self.facts.rates)
            }),
            has_paid: self.first_payment(posted.device_ref()).is_some(),
            integrations: integrations.cloned().unwrap_or_default(),
        }
    }

    /// The event that has an id, stored or of this batch.
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

    /// The event that has an id, as the parent of another.
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

    /// The first payment of a device so far.
    fn first_payment(&self, device: DeviceRef<'_>) -> Option<EventId> {
        let payer = self.changes.payers.get(&device);
        let claimed = payer.and_then(|payer| payer.new_first_payment);
        claimed.or_else(|| self.stored_first_payment(device))
    }

    /// The stored first payment of a device, unless this batch demotes it.
    fn stored_first_payment(&self, device: DeviceRef<'_>) -> Option<EventId> {
        let stored = *self.facts.first_payments.get(&device)?;
        let is_vacated =
            self.changes.demotions.iter().any(|(demotion, _)| {
                demotion.before.id == stored && demotion.vacates_first_payment()
            });
        (!is_vacated).then_some(stored)
    }

    fn note(&mut self, posted: &'a WebEvent, record: WebRecord) {
        if let Some(demotion) = record.demotion {
            self.note_demotion(*demotion, posted.received_at);
        }
        if let (Some(key), Some(after)) = (posted.parent_key(), record.refunded) {
            let version = self.facts.refunds.get(&key).map(|refunds| refunds.version);
            let payment = self.changes.refunded.entry(key).or_insert(RefundedPayment {
                total: after.refunded,
                version: version.unwrap_or(0),
                refunds: 0,
            });
            payment.total = after.refunded;
            payment.refunds += 1;
        }
        if let Some(click) = posted.click.map(|click| (posted.app, click))
            && self
                .facts
                .clicks
                .get(&click)
                .is_some_and(|it| !it.is_referenced)
        {
            self.changes.clicks.insert(click);
        }
        self.note_payment(posted, &record.event);
        let reservation = self.facts.reservations.get(&posted.key());
        self.recorded_index
            .insert(posted.key(), self.changes.recorded.len());
        self.changes.recorded.push(RecordedWebEvent {
            event: record.event,
            fingerprint: record.fingerprint,
            reserved_by: reservation.map(|reservation| reservation.event_id),
            planned: record.planned,
        });
    }

    /// Notes that an SDK event counts no longer. It may have been the first payment of its device.
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

    /// Notes that a device pays. A payment earlier than the first one so far takes the flag when the device is settled.
    fn note_payment(&mut self, posted: &'a WebEvent, event: &Event) {
        if event.payer().is_none() {
            return;
        }
        let device = posted.device_ref();
        if event.displaces_first_payment(self.first_payment(device)) {
            let unsettled = (posted.app, posted.device.clone());
            self.changes.unsettled.insert(unsettled);
        }
        let before = self.stored_first_payment(device);
        let payer = self.changes.payers.entry(device).or_insert(Payer {
            at: posted.received_at,
            stored_first_payment: before,
            new_first_payment: None,
        });
        if event.first_payment {
            payer.new_first_payment = Some(event.id);
        }
    }
}
