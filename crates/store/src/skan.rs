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

/// Conversion-value configurations. `acceptTestSignals` is the app's `skanTestSignals`. It is
/// stored on the app, and both endpoints show and change the same value.
#[async_trait]
pub trait SkanConfigurations: Send + Sync {
    /// Returns the current configuration of an app.
    async fn skan(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Configuration>;

    /// Returns the document for a device: the current configuration, the exchange rates, and the
    /// device's events that only the server knows, if the device is given. The configuration is not
    /// secret, because the SDK key is part of the app.
    async fn skan_for_device(
        &self,
        app: App,
        environment: Environment,
        device: Option<DeviceKey>,
        at: Timestamp,
    ) -> StoreResult<DeviceDocument>;

    /// Replaces the document. Old versions are kept, because postbacks based on them are still to
    /// come.
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

    /// Returns all versions with their documents, for interpreting postback figures. The current
    /// one has its current names.
    async fn skan_meanings(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Vec<Version>>;

    /// Lists the version numbers of an app, oldest first, with the time from which each applied.
    async fn skan_versions(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<(i64, Timestamp)>>;
}
