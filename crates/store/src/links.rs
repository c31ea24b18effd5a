//! Tracking links.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::link::{Link, LinkChange, LinkFilter, LinkLabels};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;

/// Tracking links. Archived links, and links that belong to other apps or organizations, are not
/// found.
#[async_trait]
pub trait Links: Send + Sync {
    /// Stores a new link for an app.
    async fn create_link(
        &self,
        caller: &Authorized<AppsWrite>,
        link: Link,
        origin: AuditContext,
    ) -> StoreResult<Link>;

    /// Stores new links for an app, each with its own audit entry: all of them or none.
    async fn create_links(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        links: Vec<(Link, AuditContext)>,
    ) -> StoreResult<Vec<Link>>;

    /// Returns a link.
    async fn link(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        link: LinkId,
    ) -> StoreResult<Link>;

    /// Lists an app's links that pass the filter, newest first. A filter compares links in
    /// memory until the page is full, so that both engines ignore case alike.
    async fn links(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: LinkFilter,
        page: PageRequest,
    ) -> StoreResult<Page<Link>>;

    /// Returns the tags and folders of an app's links.
    async fn link_labels(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<LinkLabels>;

    /// Changes a link. The link can still be found by its former slugs.
    async fn update_link(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        link: LinkId,
        change: LinkChange,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Link>;

    /// Archives a link. The link is no longer found. Its history is kept, and no other link can use
    /// its slugs.
    async fn delete_link(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        link: LinkId,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<()>;
}
