//! Conversion-value configurations.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::app::App;
use tributary_domain::audit::AuditContext;
use tributary_domain::device::DeviceKey;
use tributary_domain::skan::decode::Version;
use tributary_domain::skan::device::DeviceDocument;
use tributary_domain::skan::{Configuration, Document};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;

/// Conversion-value configurations. `acceptTestSignals` is the app's `skanTestSignals` under another name:
/// it is kept on the app, and whichever door changes it, both show it.
#[async_trait]
pub trait SkanConfigurations: Send + Sync {
    /// The present configuration of an app.
    async fn skan(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Configuration>;

    /// What a device of the app that its SDK key named decides by: the present configuration, which is no secret
    /// (whoever has the app has the key), the rates of the moment, and what only the server knows of the device, where
    /// it says which one it is.
    async fn skan_for_device(
        &self,
        app: App,
        environment: Environment,
        device: Option<DeviceKey>,
        at: Timestamp,
    ) -> StoreResult<DeviceDocument>;

    /// Replaces the document. Old versions are kept: postbacks that are still under way were made by them.
    async fn put_skan(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        document: Document,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Configuration>;

    /// Changes the two switches.
    async fn patch_skan(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        enabled: Change<bool>,
        accept_test_signals: Change<bool>,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Configuration>;

    /// Every version there has been, the present one under its present names: for whoever reads what postbacks count.
    async fn skan_meanings(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Vec<Version>>;

    /// The numbers of all versions of an app, oldest first, with the time from which each applied.
    async fn skan_versions(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<(i64, Timestamp)>>;
}
