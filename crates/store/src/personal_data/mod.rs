//! Everything that is stored about one person, to be handed out at their request.
//!
//! The rules are in [`tributary_domain::personal_data`]; an erasure uses the same ones. The data is
//! read in parts, because a device may have any number of events and notifications:
//! [`PersonExport`] reads one part after the other, and [`PersonDocument`] writes them as JSON.

mod document;
mod export;
mod tables;

pub use document::{DocumentSection, PersonDocument, SECTIONS};
pub use export::{PersonExport, PersonPart};
pub use tables::{ErasedRows, ExportedRows, PERSONAL_TABLES, PersonalTable, is_personal_column};

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{Authorized, PeopleExport};
use tributary_domain::audit::AuditContext;
use tributary_domain::billing::hold::Trial;
use tributary_domain::billing::{Chain, Notification};
use tributary_domain::click::StoredClick;
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::event::Event;
use tributary_domain::install::DeviceState;
use tributary_domain::personal_data::{DataSubject, LeftOutDevice, PersonIds, UserLink};
use tributary_domain::report::cohort::CohortDevice;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum number of a device's clicks, users and payments that are collected from its events. They
/// are held in memory while the document is written. A real person has a few dozen.
pub const PERSON_REFERENCES_MAX: usize = 20_000;
/// Number of events per part. Such a part is about half a megabyte long.
pub const PERSON_PART_EVENTS: usize = 500;

/// Everything about a person except their subscriptions and events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonRecords {
    /// Ids that belong to the person.
    pub ids: PersonIds,
    /// The person's devices.
    pub devices: Vec<PersonDevice>,
    /// Links between the devices and user ids.
    pub links: Vec<UserLink>,
    /// Clicks that led to the installs and events.
    pub clicks: Vec<StoredClick>,
    /// Ids of the notifications whose payments are among the person's events. They lead to
    /// subscriptions without an id of the person.
    pub payments: std::collections::BTreeSet<String>,
    /// Devices that claimed the user, but are not proven to be the user's.
    pub left_out: Vec<LeftOutDevice>,
    /// Whether [`PERSON_REFERENCES_MAX`] was reached, so that clicks or subscriptions may be missing.
    pub is_cut: bool,
}

/// A person's device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonDevice {
    /// Device id.
    pub key: DeviceKey,
    /// Device, identity and attribution.
    pub state: DeviceState,
    /// What other tables store about the device.
    pub details: PersonDeviceDetails,
}

/// What is stored about a device beside its state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonDeviceDetails {
    /// Keyed hash of the IP address of the first call, while it is kept.
    pub address_hash: Option<Digest>,
    /// Last known activity of a device that still has attribution data.
    pub active_at: Option<Timestamp>,
    /// Whether the device has a token to erase itself. The token is not stored.
    pub has_erase_token: bool,
    /// When the device sent an AdServices token that is not redeemed yet, and the attempts so far.
    pub ad_services_token: Option<(Timestamp, u32)>,
    /// The device in the cohort reports.
    pub cohort: Option<CohortDevice>,
}

/// One of a person's subscriptions or single payments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonSubscription {
    /// The subscription.
    pub chain: Chain,
    /// The trial, if it is or was on hold.
    pub trial: Option<Trial>,
    /// The notifications that are about the person, oldest first.
    pub notifications: Vec<PersonNotification>,
}

/// A notification about a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonNotification {
    /// The notification, without the ids of other people.
    pub notification: Notification,
    /// Received body, while it is kept and unless it names other people.
    pub body: Option<String>,
    /// Number of other users that the notification names.
    pub other_users: usize,
}

/// Whose events a part contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventOwner {
    /// Events of a device.
    Device(DeviceKey),
    /// Events of a user that have no device, or that of an erased device.
    User(UserKey),
}

/// A part of a person's events to read, oldest first.
#[derive(Debug, Clone)]
pub struct PersonEventsQuery {
    /// Whose data is requested.
    pub subject: DataSubject,
    /// Ids of the person.
    pub ids: PersonIds,
    /// Whose events to read.
    pub owner: EventOwner,
    /// Last event of the previous part.
    pub after: Option<EventId>,
    /// Maximum number of events to read.
    pub limit: usize,
}

/// A part of a person's events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonEvents {
    /// Events, oldest first.
    pub events: Vec<Event>,
    /// Last event that was read; `None` after the last part.
    pub next: Option<EventId>,
}

/// Everything that is stored about a person.
#[async_trait]
pub trait PersonalData: Send + Sync {
    /// Returns everything about a person in the caller's environment except subscriptions and
    /// events. Refused if nothing is stored about the device or user, or if the device is erased.
    async fn person_records(
        &self,
        caller: &Authorized<PeopleExport>,
        app: AppId,
        subject: DataSubject,
    ) -> StoreResult<PersonRecords>;

    /// Records that a person's data is exported, in the audit log.
    async fn note_person_export(
        &self,
        caller: &Authorized<PeopleExport>,
        app: AppId,
        subject: DataSubject,
        records: PersonRecords,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Finds the subscriptions that may contain notifications about a person.
    async fn person_chains(
        &self,
        caller: &Authorized<PeopleExport>,
        app: AppId,
        records: PersonRecords,
    ) -> StoreResult<Vec<Chain>>;

    /// Returns the notifications of a subscription that are about a person, or `None` if there are
    /// none.
    async fn person_subscription(
        &self,
        caller: &Authorized<PeopleExport>,
        subject: DataSubject,
        ids: PersonIds,
        chain: Chain,
    ) -> StoreResult<Option<PersonSubscription>>;

    /// Returns a part of a person's events.
    async fn person_events(
        &self,
        caller: &Authorized<PeopleExport>,
        app: AppId,
        query: PersonEventsQuery,
    ) -> StoreResult<PersonEvents>;
}
