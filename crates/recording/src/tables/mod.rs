//! Traits for reading and writing tables. They contain no business logic.
#![expect(
    async_fn_in_trait,
    reason = "callers know the engine, so the futures' types are concrete"
)]

mod accounts;
mod admin;
mod audit;
mod billing;
mod configure_batch;
mod devices;
mod events;
mod factors;
mod guesses;
mod import;
mod keys;
mod notices;
mod person;
mod pivots;
mod queue_leases;
mod replay;
mod rollup_values;
mod rollups;
mod secret_keys;
mod sessions;
mod single_sign_on;
mod store_ids;
mod wipe;

pub use accounts::AccountTable;
pub use admin::{
    CostSourceTable, CostTable, IntegrationTable, ManagedAppTable, MemberTable, SkanTable,
    TenantTable, TrackingLinkTable, ViewTable,
};
pub use audit::AuditTable;
pub use billing::{BillingDayTable, BillingKeyTable, NotificationTable, TrialTable, UserLinkTable};
pub use configure_batch::{
    ClaimQuery, ConfigureBatchTable, ConfigureFacts, ConfigureQuery, ConfigureWrites, RelatedQuery,
};
pub use devices::{ClickTable, DeviceTable, EraseTokenTable, HoldTable, TokenTable};
pub use events::{EventTable, FirstPaymentTable, OutboxTable, StatusCheckTable};
pub use factors::FactorTable;
pub use guesses::GuessTable;
pub use import::ImportTable;
pub use keys::KeyTable;
pub use notices::NoticeTable;
pub use person::PersonTable;
pub use pivots::PivotTable;
pub use queue_leases::QueueLeaseTable;
pub use replay::{AdvertisingSearch, ReplayTable};
pub use rollup_values::{RollupValueTable, ValueCounts};
pub use rollups::{RollupPart, RollupTable};
pub use secret_keys::{CheckLock, KeyRecord, SecretKeyTable};
pub use sessions::SessionTable;
pub use single_sign_on::SingleSignOnTable;
pub use store_ids::StoreIdTable;
pub use tributary_domain::event::SharedId;
pub use wipe::{WipeTable, WipedEvent};

use std::sync::Arc;
use tributary_domain::app::{App, AppSecret};
use tributary_domain::exchange::ImportedRates;
use tributary_domain::integration::Integration;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::StoreError;

/// Another transaction changed data that this one had read. This transaction is retried with the
/// current data.
#[derive(Debug, Clone, Copy)]
pub struct Conflict;

/// An open transaction in a database engine.
pub trait EngineTransaction {
    /// Error that aborts the transaction.
    type Failure: From<Refusal> + From<StoreError> + From<Conflict>;

    /// Whether no other transaction writes while this one is open. Facts that were read then stay
    /// valid, and are not read again after locking.
    const IS_SOLE_WRITER: bool = false;
}

/// All tables.
pub trait Tables:
    AccountTable
    + AppTable
    + AuditTable
    + BillingDayTable
    + ClickTable
    + CostSourceTable
    + CostTable
    + DeviceTable
    + EraseTokenTable
    + EventTable
    + FactorTable
    + FirstPaymentTable
    + GuessTable
    + HoldTable
    + IntegrationTable
    + BillingKeyTable
    + KeyTable
    + UserLinkTable
    + ManagedAppTable
    + MemberTable
    + NoticeTable
    + NotificationTable
    + OutboxTable
    + PivotTable
    + QueueLeaseTable
    + RollupTable
    + RollupValueTable
    + SecretKeyTable
    + SessionTable
    + SingleSignOnTable
    + SkanTable
    + StatusCheckTable
    + StoreIdTable
    + TenantTable
    + ViewTable
    + TokenTable
    + TrackingLinkTable
    + TrialTable
{
}

/// Apps, their integrations, and exchange rates.
pub trait AppTable: EngineTransaction {
    /// Returns an app.
    async fn app(&self, app: AppId) -> Result<Option<App>, Self::Failure>;

    /// Returns the ids of all apps.
    async fn app_ids(&self) -> Result<Vec<AppId>, Self::Failure>;

    /// Locks an app exclusively, so that no other transaction settles its subscriptions or links
    /// its devices.
    async fn lock_app(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Locks an app in shared mode, so that no other transaction settles its subscriptions.
    async fn lock_app_shared(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Stores when a provider was first connected. Returns false if it is stored already.
    async fn mark_provider_connected(
        &self,
        app: AppId,
        secret: AppSecret,
        at: Timestamp,
    ) -> Result<bool, Self::Failure>;

    /// Returns an app's stored integrations.
    async fn integrations(&self, app: AppId) -> Result<Arc<[Integration]>, Self::Failure>;

    /// Returns the imported rates for currencies and days.
    async fn rates(&self, wanted: &[(Currency, Day)]) -> Result<ImportedRates, Self::Failure>;
}
