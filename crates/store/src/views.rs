//! Saved views of reports, and links that share one.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::report::view::{SavedView, ShareLink};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ShareId, UserId, ViewId};

/// A new link.
#[derive(Debug, Clone)]
pub struct NewShareLink {
    /// The link.
    pub share: ShareLink,
    /// Digest of the token in the link's URL.
    pub digest: Digest,
}

/// Saved views and links that share one. Removing a user removes both.
#[async_trait]
pub trait Views: Send + Sync {
    /// Saves a view. Replaces the user's view with the same name.
    async fn save_view(
        &self,
        caller: &Authorized<AnalyticsRead>,
        view: SavedView,
    ) -> StoreResult<()>;

    /// Returns a user's views of an app, by name.
    async fn views(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        user: UserId,
    ) -> StoreResult<Vec<SavedView>>;

    /// Deletes a user's view. Idempotent.
    async fn delete_view(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        user: UserId,
        view: ViewId,
    ) -> StoreResult<()>;

    /// Creates a link.
    async fn create_share(
        &self,
        caller: &Authorized<AppsWrite>,
        share: NewShareLink,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Returns an app's links that are not revoked, latest first, even if they have expired.
    async fn shares(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<ShareLink>>;

    /// Revokes a link. Idempotent.
    async fn revoke_share(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        share: ShareId,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Returns the link with this digest, even if it has expired or is revoked.
    async fn share(&self, digest: Digest) -> StoreResult<Option<ShareLink>>;
}
