//! Tracking links.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::link::{Link, LinkChange};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;

/// Tracking links. A link of another app or organization is as good as none, and so is an archived one.
#[async_trait]
pub trait Links: Send + Sync {
    /// Stores a new link of an app.
    async fn create_link(
        &self,
        caller: &Authorized<AppsWrite>,
        link: Link,
        origin: AuditContext,
    ) -> StoreResult<Link>;

    /// One link.
    async fn link(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        link: LinkId,
    ) -> StoreResult<Link>;

    /// An app's links, newest first.
    async fn links(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        page: PageRequest,
    ) -> StoreResult<Page<Link>>;

    /// Changes a link. A slug it had before goes on leading to it.
    async fn update_link(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        link: LinkId,
        change: LinkChange,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Link>;

    /// Archives a link: from now on it is not found, its history and its slug stay.
    async fn delete_link(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        link: LinkId,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<()>;
}
