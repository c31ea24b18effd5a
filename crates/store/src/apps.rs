//! Apps.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized};
use tributary_domain::app::{App, AppChange, AppSecret};
use tributary_domain::audit::AuditContext;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::timezone::Timezone;

/// Apps that [`Apps::app_names`] tells of, the newest ones. More would fit no menu.
pub const APP_NAMES_MAX: u32 = 500;

/// As much of an app as whoever reads figures may know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppName {
    /// Its id.
    pub id: AppId,
    /// What people call it.
    pub name: Name,
    /// In which zone its days begin.
    pub timezone: Timezone,
    /// Put away.
    pub archived: bool,
}

/// Apps. An app of another organization is as good as none.
#[async_trait]
pub trait Apps: Send + Sync {
    /// Stores a new app with its SDK keys and secrets.
    async fn create_app(
        &self,
        caller: &Authorized<AppsWrite>,
        app: App,
        secrets: Vec<(AppSecret, SealedSecret)>,
        origin: AuditContext,
    ) -> StoreResult<App>;

    /// One app.
    async fn app(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<App>;

    /// The zone in which an app's days begin. Figures are read by the day, so who may read them may know it.
    async fn app_timezone(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Timezone>;

    /// The organization's apps by name, newest first, at most [`APP_NAMES_MAX`]. Who may read figures may know
    /// whose they are.
    async fn app_names(&self, caller: &Authorized<AnalyticsRead>) -> StoreResult<Vec<AppName>>;

    /// The organization's apps, newest first; archived ones only when they are asked for.
    async fn apps(
        &self,
        caller: &Authorized<AppsRead>,
        with_archived: bool,
        page: PageRequest,
    ) -> StoreResult<Page<App>>;

    /// Changes an app.
    async fn update_app(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        change: AppChange,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<App>;

    /// A secret of an app, sealed.
    async fn app_secret(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        secret: AppSecret,
    ) -> StoreResult<Option<SealedSecret>>;
}
