//! The storage port: the operations that the service needs from a database.
//!
//! Every method is exactly one transaction. Methods that make changes read the facts, call a
//! function in `domain` to decide, and write the decision together with its audit log entry.
//! Adapters differ in SQL syntax only; the suite in `contract` checks this.
//!
//! # Adding a method
//!
//! 1. Add the method to the trait for its resource here. If it accesses a tenant's data, give it an
//!    [`Authorized`] parameter.
//! 2. Add its tests to `contract/<resource>.rs`, with two tenants.
//! 3. Implement it in the file with the same name in both adapters. If it has several steps, write
//!    them as a function in `recording` that uses the table traits, and let the adapters call it.
//! 4. For a new column, add one line to its row in [`records`], and one value to each adapter's
//!    insert.
//!
//! [`Authorized`]: tributary_domain::access::Authorized
#![deny(missing_docs)]

pub mod connection_share;
#[cfg(feature = "contract")]
pub mod contract;
pub mod error;
pub mod metrics;
pub mod migration;
pub mod personal_data;
pub mod records;
pub mod report_slots;
pub mod transfer;
pub mod waiting_line;

mod accounts;
mod alerts;
mod apps;
mod audit_log;
mod audit_streams;
mod billing;
mod clicks;
mod cost_sources;
mod deliveries;
mod devices;
mod due_kinds;
mod events;
mod factors;
mod holds;
mod imports;
mod instance;
mod integrations;
mod keys;
mod links;
mod members;
mod notices;
mod outbox;
mod pivots;
mod postbacks;
mod rates;
mod reports;
mod secret_keys;
mod sessions;
mod sign_ins;
mod single_sign_on;
mod skan;
mod tenants;
mod traffic;
mod views;
mod web_events;
mod what_if;
mod wipe;

pub use accounts::{AccountSummary, Accounts, LastOwner, NewPasswordReset};
pub use alerts::{Alerts, DueAlert};
pub use apps::{APP_NAMES_MAX, AppName, Apps};
pub use audit_log::{
    ActionNote, AuditLog, AuditedChangesQuery, ChainLines, ChainPage, ChainPart, ChainReport,
    ChainedEntry, verify_audit_chain,
};
pub use audit_streams::AuditStreams;
pub use billing::{Billing, BillingApp, BillingFigures, BillingSecret, NotificationOutcome};
pub use clicks::{Clicks, LinkRef, TrackedLink};
pub use cost_sources::{CostSources, LeasedCostSource};
pub use deliveries::{Deliveries, DeliveryWithEvent, IntegrationHealth, RETRIES_MAX};
pub use devices::{
    ADDRESS_CLICKS_SCANNED_MAX, AttributionSweep, ConfigureOutcome, DEVICE_EVENTS_MAX,
    DeviceDetails, Devices, EraseRequest, INSTALL_BURST_WINDOW, LeasedToken, SdkApp, TokenOutcome,
};
pub use due_kinds::DueKinds;
pub use error::{DatabaseDamaged, KeyReplaced, ReportTimeout, StoreError};
pub use events::{EventPage, Events};
pub use factors::Factors;
pub use holds::{HOLD_REVIEWS_MAX, HeldInstall, HoldReviewCount, Holds};
pub use imports::{IMPORT_BATCH_EVENTS_MAX, ImportMode, Imports};
pub use instance::{
    ChangeNote, Instance, InstanceReport, LargeTable, PartitionReport, StandbyReport,
};
pub use integrations::Integrations;
pub use keys::{ApiKeys, KeyFilter};
pub use links::Links;
pub use members::{Invitation, Members, TakeOver};
pub use notices::{
    CheckedNotice, DueMessage, DueNotice, FINISHED_MESSAGES_KEPT, LeasedRows, Notices, SentMessage,
};
pub use outbox::{GatheredDelivery, LeaseId, LeaseRequest, LeasedQueue, Outbox, QueueRef};
pub use personal_data::PersonalData;
pub use pivots::Pivots;
pub use postbacks::{
    CLAIMED_AT_ONCE_MAX, PostbackDimensions, PostbackFilter, PostbackOutcome, PostbackPage,
    PostbackReportQuery, PostbackStats, Postbacks, StoredPostback,
};
pub use rates::Rates;
pub use reports::{LogPart, RebuildReport, Reports, RollupDay};
pub use secret_keys::{
    KEY_HOLDER_KEPT, REENCRYPTED_AT_ONCE, ReencryptRequest, ReencryptedRows, RotationEnd,
    SecretKeys,
};
pub use sessions::{NewSession, Sessions, UserSession};
pub use sign_ins::SignIns;
pub use single_sign_on::{SignOn, SingleSignOns};
pub use skan::SkanConfigurations;
pub use tenants::{
    ACCOUNTS_PER_EMAIL_MAX, NewKey, NewSetupLink, Organization, Redemption, Tenants,
};
pub use traffic::{ANOMALIES_SHOWN_MAX, CheckedHour, Traffic, TrafficHistory};
pub use tributary_domain::forwarding::delivery::PendingDelivery;
pub use tributary_domain::forwarding::lifecycle::SettledDelivery;
pub use tributary_domain::forwarding::settlement::{DeliverySettlement, SettledQueue};
pub use tributary_domain::forwarding::status_check::{CheckOutcome, StatusCheck};
pub use views::{NewShareLink, Views};
pub use web_events::WebEvents;
pub use what_if::{ReplayPart, ReplaySpan, Replays, WhatIfRequest, run_what_if};
pub use wipe::{
    AppTableWipe, TestData, WIPE_CLICKS_SCANNED_MAX, WIPE_TABLES, WIPED_AT_ONCE_MAX, WipeBatch,
    WipeScope, run_wipe, wipe_transaction,
};

/// All operations on a database.
pub trait Store:
    Instance
    + SecretKeys
    + Tenants
    + ApiKeys
    + Accounts
    + Sessions
    + Factors
    + SignIns
    + SingleSignOns
    + Members
    + Apps
    + Links
    + Clicks
    + Devices
    + Holds
    + Events
    + WebEvents
    + Imports
    + Billing
    + Rates
    + Integrations
    + CostSources
    + Outbox
    + DueKinds
    + Deliveries
    + Alerts
    + Notices
    + Traffic
    + PersonalData
    + TestData
    + SkanConfigurations
    + Postbacks
    + Reports
    + Replays
    + Pivots
    + AuditLog
    + AuditStreams
    + Views
{
}

impl<T> Store for T where
    T: Instance
        + SecretKeys
        + Tenants
        + ApiKeys
        + Accounts
        + Sessions
        + Factors
        + SignIns
        + SingleSignOns
        + Members
        + Apps
        + Links
        + Clicks
        + Devices
        + Holds
        + Events
        + WebEvents
        + Imports
        + Billing
        + Rates
        + Integrations
        + CostSources
        + Outbox
        + DueKinds
        + Deliveries
        + Alerts
        + Notices
        + Traffic
        + PersonalData
        + TestData
        + SkanConfigurations
        + Postbacks
        + Reports
        + Replays
        + Pivots
        + AuditLog
        + AuditStreams
        + Views
{
}

/// Result of a store method.
pub type StoreResult<T> = Result<T, StoreError>;
