//! What an engine reads and writes. Nothing here decides.
#![expect(
    async_fn_in_trait,
    reason = "the engines are known where the functions are called, so the compiler sees what their futures are"
)]

mod admin;
mod billing;
mod devices;
mod events;
mod rollups;

pub use admin::{
    AuditTable, CostTable, IntegrationTable, ManagedAppTable, MemberTable, SkanTable, TenantTable,
    TrackingLinkTable, UniqueName,
};
pub use billing::{BillingDayTable, BillingKeyTable, NotificationTable, TrialTable, UserLinkTable};
pub use devices::{ClickTable, DeviceTable, TokenTable};
pub use events::{EventTable, FirstPaymentTable, OutboxTable, StatusCheckTable};
pub use rollups::RollupTable;
pub use tributary_domain::event::SharedId;

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

/// Another transaction changed what was read. The transaction runs again, on what is stored now.
#[derive(Debug, Clone, Copy)]
pub struct Conflict;

/// An open transaction of an engine.
pub trait EngineTransaction {
    /// Why it cannot go on.
    type Failure: From<Refusal> + From<StoreError> + From<Conflict>;
}

/// All tables.
pub trait Tables:
    AppTable
    + AuditTable
    + BillingDayTable
    + ClickTable
    + CostTable
    + DeviceTable
    + EventTable
    + FirstPaymentTable
    + IntegrationTable
    + BillingKeyTable
    + UserLinkTable
    + ManagedAppTable
    + MemberTable
    + NotificationTable
    + OutboxTable
    + RollupTable
    + SkanTable
    + StatusCheckTable
    + TenantTable
    + TokenTable
    + TrackingLinkTable
    + TrialTable
{
}

/// Apps, their integrations, and exchange rates.
pub trait AppTable: EngineTransaction {
    /// An app.
    async fn app(&self, app: AppId) -> Result<Option<App>, Self::Failure>;

    /// All apps.
    async fn app_ids(&self) -> Result<Vec<AppId>, Self::Failure>;

    /// Lets no other transaction settle subscriptions of an app until this one ends.
    async fn lock_app(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Lets no other transaction settle subscriptions of an app until this one ends. Several may do so together.
    async fn lock_app_shared(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Notes that a provider is connected, unless that is known.
    async fn mark_provider_connected(
        &self,
        app: AppId,
        by: AppSecret,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// The integrations of an app that were ever touched.
    async fn integrations(&self, app: AppId) -> Result<Arc<[Integration]>, Self::Failure>;

    /// The imported rates that convert currencies on days.
    async fn rates(&self, wanted: &[(Currency, Day)]) -> Result<ImportedRates, Self::Failure>;
}
