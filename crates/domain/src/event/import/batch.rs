//! Decides a batch of imported events.

use super::{CreditLoss, ImportFacts, ImportOutcome, ImportedEvent};
use crate::access::Environment;
use crate::billing::{Chain, transaction_key};
use crate::device::{Device, DeviceKey, DeviceRef};
use crate::event::duplicate::{EventReplacement, demote, mark_duplicate};
use crate::event::web::{PayingDevice, WebEventKind};
use crate::event::{Event, EventKey, EventSource, SELF_CREDITED_SOURCE, SharedId};
use crate::install::{Attribution, imported_device};
use crate::report::Increments;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{ClickId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Outcomes and changes of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportDecisions<'a> {
    /// One outcome per event, in order.
    pub outcomes: Vec<ImportOutcome>,
    /// Changes to write.
    pub changes: ImportChanges<'a>,
}

/// Changes made by a batch of imported events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportChanges<'a> {
    /// Events to store, in order.
    pub recorded: Vec<ImportedRecord>,
    /// Devices to store, with their attributions.
    pub devices: Vec<(DeviceRef<'a>, Device, Attribution)>,
    /// Stored devices whose install is in this batch.
    pub installed: BTreeSet<DeviceRef<'a>>,
    /// Devices with a payment in this batch.
    pub payers: BTreeMap<DeviceRef<'a>, PayingDevice>,
    /// SDK events that become duplicates, each with the time of the change.
    pub demotions: Vec<(EventReplacement, Timestamp)>,
    /// Devices whose first payment must be determined again after all other writes.
    pub unsettled: BTreeSet<(Environment, DeviceKey)>,
    /// Refunds to add to website payments, by the sender's id of the payment.
    pub refunded: BTreeMap<&'a str, ImportedRefunds>,
    /// Names under which billing events are found, with the lookup keys of their transactions.
    pub transactions: Vec<(Chain, String)>,
    /// Clicks that events refer to, with the device whose install claims the click.
    pub clicks: BTreeMap<ClickId, Option<&'a DeviceKey>>,
}

/// An event to store, and the id to claim for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRecord {
    /// The event.
    pub event: Event,
    /// Fingerprint of a web event's payload.
    pub fingerprint: Option<Digest>,
    /// The event that must still hold the id's reservation. `None` means that the id must be free.
    pub reserved_by: Option<EventId>,
    /// Whether the install of the event's device is stored, or is in this batch. Otherwise the
    /// event counts in no cohort until the install is stored.
    pub is_in_cohort: bool,
}

impl ImportedRecord {
    /// Returns the id to claim.
    pub fn key(&self) -> EventKey<'_> {
        EventKey::of(&self.event, self.fingerprint.as_ref())
    }
}

/// Refunds of one payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImportedRefunds {
    /// Sum of the refunds, not negative.
    pub total: Amount,
    /// Number of refunds.
    pub count: i64,
}

impl ImportChanges<'_> {
    /// Returns the devices whose install is in this batch.
    pub fn installs(&self) -> impl Iterator<Item = (Environment, &DeviceKey)> {
        let events = self.recorded.iter().map(|record| &record.event);
        let installs = events.filter(|event| event.is_install());
        installs.filter_map(|event| Some((event.environment, event.device.as_ref()?)))
    }

    /// Adds recorded and demoted events to the increments.
    pub fn count(&self, increments: &mut Increments) {
        for (demotion, _) in &self.demotions {
            increments.replace_event(&demotion.before, &demotion.after);
        }
        for record in &self.recorded {
            if record.is_in_cohort {
                increments.add_event(&record.event);
            } else {
                increments.add_event_outside_cohorts(&record.event);
            }
        }
    }
}

/// Decides the new events of a batch. `outcomes` come from [`select`](super::select).
pub fn decide<'a>(
    batch: &'a [ImportedEvent],
    mut outcomes: Vec<ImportOutcome>,
    facts: &ImportFacts<'a>,
    now: Timestamp,
) -> ImportDecisions<'a> {
    let mut state = ImportBatch::new(facts, now);
    let is_new = |outcome: &ImportOutcome| matches!(outcome, ImportOutcome::New(_));
    for (imported, outcome) in batch.iter().zip(&outcomes) {
        if is_new(outcome) {
            state.expect(imported);
        }
    }
    for (imported, outcome) in batch.iter().zip(&mut outcomes) {
        if is_new(outcome) {
            *outcome = ImportOutcome::New(state.record(imported));
        }
    }
    state.decide_first_payments();
    state.register_devices();
    let changes = state.changes;
    ImportDecisions { outcomes, changes }
}

/// Facts plus the effects of the decisions made so far.
struct ImportBatch<'f, 'a> {
    facts: &'f ImportFacts<'a>,
    now: Timestamp,
    /// New verified events by the id that an SDK event may share.
    verified: BTreeMap<SharedId<'a>, Vec<&'a Event>>,
    /// Devices whose install is in this batch.
    installed: BTreeSet<DeviceRef<'a>>,
    /// Position of each device's earliest payment in the list of recorded events.
    payments: BTreeMap<DeviceRef<'a>, usize>,
    /// Position of the event that registers each new device.
    registrations: BTreeMap<DeviceRef<'a>, usize>,
    /// SDK events that this batch demotes.
    demoted: BTreeSet<EventId>,
    changes: ImportChanges<'a>,
}

impl<'f, 'a> ImportBatch<'f, 'a> {
    fn new(facts: &'f ImportFacts<'a>, now: Timestamp) -> Self {
        Self {
            facts,
            now,
            verified: BTreeMap::new(),
            installed: BTreeSet::new(),
            payments: BTreeMap::new(),
            registrations: BTreeMap::new(),
            demoted: BTreeSet::new(),
            changes: ImportChanges::default(),
        }
    }

    /// Notes a new event that decisions about other events of the batch depend on.
    fn expect(&mut self, imported: &'a ImportedEvent) {
        if imported.event.is_install() {
            self.installed.extend(imported.device_ref());
        }
        if imported.event.source != EventSource::Sdk
            && let Some(id) = imported.shared_id()
        {
            self.verified.entry(id).or_default().push(&imported.event);
        }
    }

    fn record(&mut self, imported: &'a ImportedEvent) -> CreditLoss {
        let mut event = imported.event.clone();
        event.first_payment = false;
        let loss = self.check_credit(imported, &mut event);
        self.match_sources(imported, &mut event);
        let device = imported.device_ref();
        if let Some(device) = device.filter(|device| !device.key.is_placeholder()) {
            self.note_device(device, &event);
        }
        self.note_refund(imported);
        self.note_transaction(imported);
        if let Some(device) = device.filter(|_| event.payer().is_some()) {
            self.note_payment(device, event.id);
        }
        let is_in_cohort = device.is_none_or(|device| {
            self.facts.device(Some(device)).is_installed || self.installed.contains(&device)
        });
        let holder = self.facts.keys.get(&imported.key());
        self.changes.recorded.push(ImportedRecord {
            event,
            fingerprint: imported.fingerprint,
            reserved_by: holder.map(|holder| holder.event),
            is_in_cohort,
        });
        loss
    }

    /// Removes the link and the click from an event's credit if they do not exist here. Network and
    /// campaign stay.
    fn check_credit(&mut self, imported: &'a ImportedEvent, event: &mut Event) -> CreditLoss {
        let facts = self.facts;
        let takes_click = event.is_install() && event.environment == Environment::Live;
        let mut loss = CreditLoss::default();
        let Some(credit) = &mut event.credit else {
            return loss;
        };
        let unknown_link = credit.link.take_if(|link| !facts.links.contains(link));
        loss.link = unknown_link.is_some();
        let Some(click) = credit.click else {
            return loss;
        };
        let device = imported.event.device.as_ref().filter(|_| takes_click);
        match facts.clicks.get(&click) {
            Some(stored) if device.is_none() => {
                if !stored.is_kept {
                    self.changes.clicks.entry(click).or_insert(None);
                }
            }
            Some(stored) if stored.taken_by.is_none() && self.take_click(click, device) => {}
            Some(_) | None => {
                credit.click = None;
                loss.click = true;
            }
        }
        loss
    }

    /// Claims a click for an install. Returns false if another install of the batch claimed it.
    fn take_click(&mut self, click: ClickId, device: Option<&'a DeviceKey>) -> bool {
        let claim = self.changes.clicks.entry(click).or_insert(None);
        let is_free = claim.is_none();
        if is_free {
            *claim = device;
        }
        is_free
    }

    /// Matches an SDK event with verified events that have the same id.
    fn match_sources(&mut self, imported: &'a ImportedEvent, event: &mut Event) {
        let facts = self.facts;
        let Some(id) = imported.shared_id() else {
            return;
        };
        if event.source == EventSource::Sdk {
            if event.duplicate_of.is_none() {
                let stored = facts.verified.get(&id);
                let stored = stored.into_iter().flatten();
                let new = self.verified.get(&id).into_iter().flatten().copied();
                let verified: Vec<Event> = stored.chain(new).cloned().collect();
                mark_duplicate(event, &verified);
            }
            return;
        }
        let Some(reported) = facts.sdk_events.get(&id) else {
            return;
        };
        // The two were matched before the export, or by another event of this batch.
        if reported.duplicate_of == Some(event.id) || self.demoted.contains(&reported.id) {
            return;
        }
        let demotion = demote(event, reported.clone(), &facts.integrations);
        if let Some(demotion) = demotion {
            self.demoted.insert(demotion.before.id);
            let before = &demotion.before;
            let device = before.device.clone();
            let unsettled = device.map(|device| (before.environment, device));
            self.changes.unsettled.extend(unsettled);
            self.changes.demotions.push((demotion, self.now));
        }
    }

    /// Notes the device of a credited event that is about to be recorded. The device has called the
    /// exporting database, so its next call is not its first one, even if its install is not
    /// imported.
    fn note_device(&mut self, device: DeviceRef<'a>, event: &Event) {
        if event.source == SELF_CREDITED_SOURCE || event.credit.is_none() {
            return;
        }
        if self.facts.device(Some(device)).is_registered {
            if event.is_install() {
                self.changes.installed.insert(device);
            }
            return;
        }
        let position = self.changes.recorded.len();
        let registration = self.registrations.entry(device).or_insert(position);
        let before = self.changes.recorded.get(*registration);
        // The install comes first; otherwise, the earliest event.
        let rank = |event: &Event| (!event.is_install(), event.id);
        if before.is_some_and(|before| rank(event) < rank(&before.event)) {
            *registration = position;
        }
    }

    /// Adds the new devices.
    fn register_devices(&mut self) {
        for (device, position) in std::mem::take(&mut self.registrations) {
            let record = self.changes.recorded.get(position);
            let found =
                record.and_then(|record| imported_device(&record.event, self.facts.settings));
            if let Some((stored, attribution)) = found {
                self.changes.devices.push((device, stored, attribution));
            }
        }
    }

    fn note_refund(&mut self, imported: &'a ImportedEvent) {
        let event = &imported.event;
        let is_refund = event.name == WebEventKind::Refund.as_str();
        let website = event.website.as_deref().filter(|_| is_refund);
        let parent = website.and_then(|website| website.parent.as_deref());
        if let (Some(parent), Some(revenue)) = (parent, &event.revenue) {
            let refunds = self.changes.refunded.entry(parent).or_default();
            let total = refunds.total.micros();
            let total = total.saturating_sub(revenue.amount.micros());
            refunds.total = Amount::from_micros(total);
            refunds.count += 1;
        }
    }

    /// Makes a billing event known by its transaction, so that a later SDK event finds it.
    fn note_transaction(&mut self, imported: &ImportedEvent) {
        if imported.event.source == EventSource::Billing
            && let Some((.., transaction)) = imported.shared_id()
            && let Some(provider) = imported.provider
        {
            let chain = Chain::of_imported(&imported.event, provider);
            let key = transaction_key(transaction);
            self.changes.transactions.push((chain, key));
        }
    }

    /// Notes a payment that is about to be recorded.
    fn note_payment(&mut self, device: DeviceRef<'a>, payment: EventId) {
        let position = self.changes.recorded.len();
        let earliest = self.payments.entry(device).or_insert(position);
        let before = self.changes.recorded.get(*earliest);
        if before.is_some_and(|before| payment < before.event.id) {
            *earliest = position;
        }
    }

    /// Decides which payments are the first of their devices.
    fn decide_first_payments(&mut self) {
        for (device, position) in std::mem::take(&mut self.payments) {
            let Some(record) = self.changes.recorded.get_mut(position) else {
                continue;
            };
            let stored = self.facts.device(Some(device)).first_payment;
            let is_vacated = stored.is_some_and(|first| self.demoted.contains(&first));
            let stored = stored.filter(|_| !is_vacated);
            let mut payer = PayingDevice {
                at: record.event.received_at,
                stored_first_payment: stored,
                new_first_payment: None,
            };
            if record.event.displaces_first_payment(stored) {
                let unsettled = (device.environment, device.key.clone());
                self.changes.unsettled.insert(unsettled);
            } else if stored.is_none() && !is_vacated {
                record.event.first_payment = true;
                payer.new_first_payment = Some(record.event.id);
            }
            self.changes.payers.insert(device, payer);
        }
    }
}
