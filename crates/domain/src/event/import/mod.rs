//! Stores events that another database exported.
//!
//! An imported event stays as it was recorded: its ids, times, amounts and credit are those of the
//! export. Only the rules that depend on other stored events apply again: an id is used once, a
//! device has one install and one first payment, and an SDK event that a verified source reports
//! does not count. The result does not depend on the order of the events. No deliveries are planned.

mod batch;
mod check;
#[cfg(test)]
mod tests;

pub use batch::{ImportChanges, ImportDecisions, ImportedRecord, ImportedRefunds, decide};
pub use check::check;

use super::duplicate::is_verifiable;
use super::{Event, EventSource, SharedId};
use crate::access::Environment;
use crate::app::{App, BillingProvider};
use crate::attribution::SettingsSummary;
use crate::device::{DeviceKey, DeviceRef};
use crate::integration::Integration;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{ClickId, EventId, LinkId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An event from an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedEvent {
    /// The event, as it was recorded.
    pub event: Event,
    /// Fingerprint of a web event's payload, as far as the export contains the payload.
    pub fingerprint: Option<Digest>,
    /// Store transaction of a billing event.
    pub transaction: Option<String>,
    /// Provider of a billing event.
    pub provider: Option<BillingProvider>,
}

/// The id of an event within its app: environment, source and the sender's id.
pub type ImportKey<'a> = (Environment, EventSource, &'a str);

impl ImportedEvent {
    /// Returns the id that must be free.
    pub fn key(&self) -> ImportKey<'_> {
        let event = &self.event;
        (event.environment, event.source, &event.external_id)
    }

    /// Returns the device that sent the event, if any.
    pub fn device_ref(&self) -> Option<DeviceRef<'_>> {
        Some(DeviceRef {
            app: self.event.app,
            environment: self.event.environment,
            key: self.event.device.as_ref()?,
        })
    }

    /// Returns the id under which another source may report the event, too.
    pub fn shared_id(&self) -> Option<SharedId<'_>> {
        let event = &self.event;
        let id = match event.source {
            EventSource::Sdk | EventSource::Web => Some(event.external_id.as_str()),
            EventSource::Billing => self.transaction.as_deref(),
        };
        let id = id.filter(|_| is_verifiable(&event.name));
        Some((event.app, event.environment, id?))
    }
}

/// What became of an imported event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The event is new.
    New(CreditLoss),
    /// An event with this id is stored already; nothing changes.
    AlreadyStored,
    /// The event contradicts what is stored.
    Rejected(ImportRejection),
}

/// The parts of its credit that a new event loses, because they do not exist in this database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CreditLoss {
    /// The link is not stored.
    pub link: bool,
    /// The click is not stored, or another install has claimed it.
    pub click: bool,
}

/// Why an event cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportRejection {
    /// Another event has the internal id.
    IdTaken,
    /// The device has an install already.
    DeviceInstalled,
}

/// Holder of an event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportKeyHolder {
    /// The event, or the event that reserved the id.
    pub event: EventId,
    /// Whether the id is only reserved by another source.
    pub is_reservation: bool,
}

/// A stored click, as far as it matters for an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClickUse {
    /// Whether an event or a decision refers to the click.
    pub is_kept: bool,
    /// The device whose install claimed the click.
    pub taken_by: Option<DeviceKey>,
}

/// A stored device, as far as it matters for an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImportDeviceFacts {
    /// Whether the device is stored.
    pub is_registered: bool,
    /// Whether the device's install is stored.
    pub is_installed: bool,
    /// The device's first payment.
    pub first_payment: Option<EventId>,
}

/// Stored data about a batch of imported events.
#[derive(Debug, Clone)]
pub struct ImportFacts<'a> {
    /// Holders of the events' ids. Free ids are absent.
    pub keys: BTreeMap<ImportKey<'a>, ImportKeyHolder>,
    /// Internal ids of the batch that stored events have.
    pub stored_ids: BTreeSet<(Environment, EventId)>,
    /// Links of the batch that are stored.
    pub links: BTreeSet<LinkId>,
    /// Clicks of the batch that are stored.
    pub clicks: BTreeMap<ClickId, ClickUse>,
    /// Devices of the batch that are stored.
    pub devices: BTreeMap<DeviceRef<'a>, ImportDeviceFacts>,
    /// Stored verified events that share an id with an SDK event of the batch.
    pub verified: BTreeMap<SharedId<'a>, Vec<Event>>,
    /// Stored SDK events that share an id with a verified event of the batch.
    pub sdk_events: BTreeMap<SharedId<'a>, Event>,
    /// The app's configured integrations.
    pub integrations: Arc<[Integration]>,
    /// The app's attribution settings.
    pub settings: SettingsSummary,
}

impl<'a> ImportFacts<'a> {
    /// Creates facts about an app, without any stored data.
    pub fn new(app: &App, integrations: Arc<[Integration]>) -> Self {
        let rules = &app.attribution;
        Self {
            keys: BTreeMap::new(),
            stored_ids: BTreeSet::new(),
            links: BTreeSet::new(),
            clicks: BTreeMap::new(),
            devices: BTreeMap::new(),
            verified: BTreeMap::new(),
            sdk_events: BTreeMap::new(),
            integrations,
            settings: SettingsSummary {
                click_window_hours: rules.click_window_hours,
                probabilistic: false,
                window_hours: rules.probabilistic_window_hours,
            },
        }
    }

    fn device(&self, device: Option<DeviceRef<'a>>) -> ImportDeviceFacts {
        let stored = device.and_then(|device| self.devices.get(&device));
        stored.copied().unwrap_or_default()
    }
}

/// Finds the new events of a batch, by ids and installs. The credit of new events is not compared
/// yet.
pub fn select<'a>(batch: &'a [ImportedEvent], facts: &ImportFacts<'a>) -> Vec<ImportOutcome> {
    let mut keys = BTreeSet::new();
    let mut ids = BTreeSet::new();
    let mut installed = BTreeSet::new();
    let outcome = |imported: &'a ImportedEvent| {
        let (event, key) = (&imported.event, imported.key());
        let holder = facts.keys.get(&key);
        let is_stored = holder.is_some_and(|holder| !holder.is_reservation);
        if is_stored || keys.contains(&key) {
            return ImportOutcome::AlreadyStored;
        }
        let id = (event.environment, event.id);
        if facts.stored_ids.contains(&id) || ids.contains(&id) {
            return ImportOutcome::Rejected(ImportRejection::IdTaken);
        }
        let device = imported.device_ref();
        if event.is_install() && (facts.device(device).is_installed || !installed.insert(device)) {
            return ImportOutcome::Rejected(ImportRejection::DeviceInstalled);
        }
        keys.insert(key);
        ids.insert(id);
        ImportOutcome::New(CreditLoss::default())
    };
    batch.iter().map(outcome).collect()
}
