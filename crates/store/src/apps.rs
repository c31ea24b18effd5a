//! Apps.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized};
use tributary_domain::app::{App, AppChange, AppSecret, SdkKey, SdkKeyRotation};
use tributary_domain::audit::AuditContext;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::ownership::store_id::StoreIdProof;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_domain::vocabulary::web_url::HostName;

/// Maximum number of apps that [`Apps::app_names`] returns. The dashboard shows them in a menu,
/// where a longer list would be unusable.
pub const APP_NAMES_MAX: u32 = 500;

/// The part of an app that callers with analytics read access may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppName {
    /// App id.
    pub id: AppId,
    /// Display name.
    pub name: Name,
    /// Time zone that defines the app's days.
    pub timezone: Timezone,
    /// Whether the app is archived.
    pub archived: bool,
}

/// Apps. Apps of other organizations are not found.
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

    /// Returns an app.
    async fn app(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<App>;

    /// Returns the time zone that defines an app's days. Callers with analytics read access may see
    /// it, because figures are grouped by day.
    async fn app_timezone(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Timezone>;

    /// Lists the names of the organization's apps, newest first, at most [`APP_NAMES_MAX`].
    async fn app_names(&self, caller: &Authorized<AnalyticsRead>) -> StoreResult<Vec<AppName>>;

    /// Lists the organization's apps, newest first. Includes archived apps if `with_archived` is
    /// set.
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

    /// Marks an app's link domain as verified, or releases it to other claims. Refused with
    /// [`Refusal::DomainTaken`] if another app has verified it, and with [`Refusal::VersionConflict`] if the app's domain is not `host`.
    ///
    /// [`Refusal::DomainTaken`]: tributary_domain::refusal::Refusal::DomainTaken
    /// [`Refusal::VersionConflict`]: tributary_domain::refusal::Refusal::VersionConflict
    async fn set_link_domain_verified(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        host: HostName,
        is_verified: bool,
        origin: AuditContext,
    ) -> StoreResult<App>;

    /// Stores evidence that an app owns an App Store id. Returns whether the evidence decided
    /// anything: it does not if the app does not claim the id, or if equal evidence exists.
    async fn prove_store_id(
        &self,
        app: AppId,
        app_store_id: &str,
        proof: StoreIdProof,
        origin: AuditContext,
    ) -> StoreResult<bool>;

    /// Lists an app's SDK keys, by environment, the current one first, then by their end, latest
    /// first.
    async fn sdk_keys(&self, caller: &Authorized<AppsRead>, app: AppId)
    -> StoreResult<Vec<SdkKey>>;

    /// Replaces the current SDK key of an environment (`App::with_rotated_sdk_key`).
    async fn rotate_sdk_key(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        rotation: SdkKeyRotation,
        origin: AuditContext,
    ) -> StoreResult<App>;

    /// Ends a replaced SDK key (`domain::app::revoke_sdk_key`).
    async fn revoke_sdk_key(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        key: String,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Records the last use of an app's SDK key.
    async fn note_sdk_key_use(&self, app: AppId, key: &str, at: Timestamp) -> StoreResult<()>;

    /// Returns a sealed secret of an app.
    async fn app_secret(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        secret: AppSecret,
    ) -> StoreResult<Option<SealedSecret>>;
}
