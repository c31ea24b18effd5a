//! The posts of a batch, decided one after the other.
//!
//! What a decision comes to is a fact for the next one: a refund finds the purchase that stands before it in
//! its batch, two refunds of one payment add up, and an id is given once.

use super::facts::{Facts, KeyedEvent, LoggedEvent, device, given, parent};
use super::{Answer, GivenKey};
use crate::Failure;
use crate::devices::AsColumns;
use crate::devices::locked::{DeviceColumns, Payer};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::device::DeviceKey;
use tributary_domain::event::Event;
use tributary_domain::event::duplicate::Replacement;
use tributary_domain::event::web::{Before, Posted, WebAcceptance, WebFacts, WebRecord, accept};
use tributary_domain::exchange::exchange;
use tributary_domain::ledger::{Parent, Receipt};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::WebAccepted;
use tributary_store::records::PlannedRow;

/// A payment, and what becomes of it.
pub(super) struct Payment {
    pub(super) receipt: Receipt,
    pub(super) row: Row,
    /// Refunds that were accepted here.
    pub(super) refunds: i64,
}

/// Where a payment is.
#[derive(Clone, Copy)]
pub(super) enum Row {
    /// In the database.
    Stored {
        /// How often something was given back of it, as it was read.
        version: i64,
        /// Whether it stays so until this transaction ends.
        locked: bool,
    },
    /// To be stored.
    New,
}

impl Payment {
    pub(super) const fn new(receipt: Receipt, row: Row) -> Self {
        Self {
            receipt,
            row,
            refunds: 0,
        }
    }

    /// Gives money of it back. One that was stored after the locks were taken is not locked, and to wait for it
    /// now could be a circle: the batch is decided again, and then it is.
    fn refund(&mut self, after: Receipt) -> Result<(), Failure> {
        if let Row::Stored { locked: false, .. } = self.row {
            return Err(Failure::Overtaken);
        }
        self.receipt = after;
        self.refunds += 1;
        Ok(())
    }
}

/// What was decided, and on what.
pub(super) struct Decisions<'a> {
    pub(super) facts: Facts<'a>,
    /// Accepted posts in the order of their arrival, each with what tells its payload from another.
    pub(super) posts: Vec<(&'a Posted, Digest)>,
    /// Their events, in the same order.
    pub(super) events: Vec<Event>,
    /// Who is to hear of them.
    pub(super) planned: Vec<PlannedRow>,
    /// The devices that pay, and what becomes of their first payments.
    pub(super) paying: BTreeMap<DeviceColumns<'a>, Payer>,
    /// Devices whose first payment is to be settled when all is written.
    pub(super) unsettled: BTreeSet<(AppId, DeviceKey)>,
    /// What they change about SDK events of the same ids, each with its moment.
    pub(super) demotions: Vec<(Replacement, Timestamp)>,
    /// Clicks that they are the first to refer to.
    pub(super) clicks: BTreeSet<(AppId, ClickId)>,
    pub(super) increments: Increments,
}

impl<'a> Decisions<'a> {
    pub(super) fn on(facts: Facts<'a>) -> Self {
        Self {
            facts,
            posts: Vec::new(),
            events: Vec::new(),
            planned: Vec::new(),
            paying: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            demotions: Vec::new(),
            clicks: BTreeSet::new(),
            increments: Increments::default(),
        }
    }

    /// Decides about a post, and notes what follows from it.
    pub(super) fn decide(&mut self, posted: &'a Posted) -> Result<Answer, Failure> {
        Ok(match accept(posted, self.facts_of(posted)) {
            Err(refusal) => Err(refusal),
            Ok(WebAcceptance::Duplicate) => {
                let keyed = self.facts.events.get(&given(posted));
                let event = keyed.and_then(|keyed| self.logged(keyed));
                let first = event.map(|event| event.received_at);
                Ok(WebAccepted {
                    duplicate: true,
                    received_at: first.unwrap_or(posted.received_at),
                })
            }
            Ok(WebAcceptance::Recorded(record)) => {
                self.note(posted, *record)?;
                Ok(WebAccepted {
                    duplicate: false,
                    received_at: posted.received_at,
                })
            }
        })
    }

    fn facts_of(&self, posted: &Posted) -> WebFacts {
        if let Some(keyed) = self.facts.events.get(&given(posted)) {
            // Nothing else is asked about what was here before.
            let before = Before {
                fingerprint: keyed.fingerprint,
                event: self.logged(keyed).cloned().map(Box::new),
            };
            return WebFacts {
                before: Some(before),
                ..WebFacts::default()
            };
        }
        let click = posted
            .click
            .and_then(|click| self.facts.clicks.get(&(posted.app, click)));
        let integrations = self.facts.integrations.get(&posted.app);
        WebFacts {
            before: None,
            click: click.map(|click| click.found.clone()),
            parent: parent(posted).and_then(|parent| self.find_parent(parent)),
            reported: self.reported(posted).cloned().map(Box::new),
            exchanged: posted.exchange_day().and_then(|(amount, currency, day)| {
                exchange(amount, currency, day, &self.facts.rates)
            }),
            has_paid: self.first_payment(posted).is_some(),
            integrations: integrations.cloned().unwrap_or_default(),
        }
    }

    /// The SDK event that reserved the id of a post.
    fn reported(&self, posted: &Posted) -> Option<&Event> {
        let event = self.facts.reserved.get(&given(posted))?;
        self.facts.reported.get(event)
    }

    /// The first payment of a post's device, as far as it is known here.
    fn first_payment(&self, posted: &Posted) -> Option<EventId> {
        let device = device(posted).columns();
        let claimed = self.paying.get(&device).and_then(|payer| payer.claims);
        claimed.or_else(|| self.facts.paid.get(&device).copied())
    }

    /// Notes what a post changes about the SDK event of its id. What follows for the device is settled in the end.
    fn note_demotion(&mut self, demotion: Replacement, at: Timestamp) {
        let before = &demotion.before;
        let device = before.device.clone();
        self.unsettled
            .extend(device.map(|device| (before.app, device)));
        if demotion.vacates_first_payment() {
            let vacated = before.id;
            self.facts.paid.retain(|_, first| *first != vacated);
            for payer in self.paying.values_mut() {
                payer.before.take_if(|first| *first == vacated);
            }
        }
        self.increments
            .replace_event(&demotion.before, &demotion.after);
        self.demotions.push((demotion, at));
    }

    /// Notes that a post's device pays. An earlier payment than its first one so far takes the flag in the end.
    fn note_payment(&mut self, posted: &'a Posted, event: &Event) {
        let Some(key) = event.payer() else {
            return;
        };
        if event.displaces(self.first_payment(posted)) {
            self.unsettled.insert((event.app, key.clone()));
        }
        let device = device(posted).columns();
        let payer = self.paying.entry(device).or_insert(Payer {
            at: posted.received_at,
            before: self.facts.paid.get(&device).copied(),
            claims: None,
        });
        if event.first_payment {
            payer.claims = Some(event.id);
        }
    }

    fn logged<'e>(&'e self, keyed: &'e KeyedEvent) -> Option<&'e Event> {
        match &keyed.event {
            LoggedEvent::Stored(event) => Some(event),
            LoggedEvent::InBatch(place) => self.events.get(*place),
            LoggedEvent::Removed => None,
        }
    }

    fn find_parent(&self, key: GivenKey<'_>) -> Option<Parent> {
        match self.facts.payments.get(&key) {
            Some(payment) => Some(Parent::Payment(Box::new(payment.receipt.clone()))),
            None => self.facts.events.get(&key).map(|_| Parent::NoPayment),
        }
    }

    fn note(&mut self, posted: &'a Posted, record: WebRecord) -> Result<(), Failure> {
        let WebRecord {
            event,
            fingerprint,
            refunded,
            demotion,
            planned,
        } = record;
        if let Some(demotion) = demotion {
            self.note_demotion(*demotion, posted.received_at);
        }
        let keyed = KeyedEvent {
            fingerprint,
            event: LoggedEvent::InBatch(self.events.len()),
        };
        self.facts.events.insert(given(posted), keyed);
        if let Some(receipt) = Receipt::of(event.clone(), Amount::ZERO) {
            let payment = Payment::new(receipt, Row::New);
            self.facts.payments.insert(given(posted), payment);
        }
        if let Some(after) = refunded {
            let payment = parent(posted).and_then(|parent| self.facts.payments.get_mut(&parent));
            payment.ok_or(Failure::Overtaken)?.refund(after)?;
        }
        if let Some(click) = posted.click.map(|click| (posted.app, click))
            && self.facts.clicks.get(&click).is_some_and(|it| !it.kept)
        {
            self.clicks.insert(click);
        }
        self.note_payment(posted, &event);
        let at = posted.received_at;
        let planned = planned.iter().map(|one| PlannedRow::write(&event, one, at));
        self.planned.extend(planned);
        self.increments.add_event(&event);
        self.posts.push((posted, fingerprint));
        self.events.push(event);
        Ok(())
    }
}
