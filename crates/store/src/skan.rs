//! Conversion-value configurations.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::app::App;
use tributary_domain::audit::Origin;
use tributary_domain::skan::{Configuration, Document};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Precondition;

/// Conversion-value configurations. `acceptTestSignals` is the app's `skanTestSignals` under another name:
/// it is kept on the app, and whichever door changes it, both show it.
#[async_trait]
pub trait SkanConfigurations: Send + Sync {
    /// The present configuration of an app.
    async fn skan(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Configuration>;

    /// The present configuration, for the devices of an app that their SDK key named. It is no secret: whoever
    /// has the app has the key, and evaluates the document on the device.
    async fn skan_for_devices(&self, app: App) -> StoreResult<Configuration>;

    /// Replaces the document. Old versions are kept: postbacks that are still under way were made by them.
    async fn put_skan(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        document: Document,
        precondition: Precondition,
        origin: Origin,
    ) -> StoreResult<Configuration>;

    /// Changes the two switches.
    async fn patch_skan(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        enabled: Change<bool>,
        accept_test_signals: Change<bool>,
        precondition: Precondition,
        origin: Origin,
    ) -> StoreResult<Configuration>;

    /// The numbers of all versions of an app, oldest first, with the time from which each applied.
    async fn skan_versions(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<(i64, tributary_domain::vocabulary::time::Timestamp)>>;
}
