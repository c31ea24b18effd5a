//! Conversion-value configurations.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::app::App;
use tributary_domain::audit::AuditContext;
use tributary_domain::device::DeviceKey;
use tributary_domain::skan::decode::DocumentVersion;
use tributary_domain::skan::device::DeviceDocument;
use tributary_domain::skan::{Configuration, Document};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;

/// Conversion-value configurations. `acceptTestSignals` in a configuration and `skanTestSignals` in
/// its app are the same setting. It is stored with the app, and both endpoints show and change it.
#[async_trait]
pub trait SkanConfigurations: Send + Sync {
    /// Returns the current configuration of an app.
    async fn skan(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Configuration>;

    /// Returns the document for a device: the current configuration and the exchange rates. If a
    /// device is given, the document also includes sums of the device's events that only the server
    /// knows. The configuration is not secret: the SDK key that gives access to it is built into
    /// the app.
    async fn skan_for_device(
        &self,
        app: App,
        environment: Environment,
        device: Option<DeviceKey>,
        at: Timestamp,
    ) -> StoreResult<DeviceDocument>;

    /// Replaces the document. Old versions are kept, because postbacks based on them may still
    /// arrive.
    async fn put_skan(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        document: Document,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Configuration>;

    /// Changes the two switches, `enabled` and `acceptTestSignals`.
    async fn patch_skan(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        enabled: Change<bool>,
        accept_test_signals: Change<bool>,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Configuration>;

    /// Returns all versions with their documents, for interpreting postback figures. The current
    /// version has the latest names, because renaming a value creates no new version.
    async fn skan_meanings(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Vec<DocumentVersion>>;

    /// Lists the versions of an app's configuration, oldest first, each with the time from which it
    /// applied.
    async fn skan_versions(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<(i64, Timestamp)>>;
}
