//! Clicks, and link lookups for the public endpoints: by URL, without an authenticated caller.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::app::App;
use tributary_domain::click::{Click, PageHints};
use tributary_domain::link::{Link, Slug};
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HostName;

/// How a URL refers to a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkRef {
    /// Link id.
    Id(LinkId),
    /// Slug, current or former.
    Slug(Slug),
}

/// A link and its app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedLink {
    /// The link.
    pub link: Link,
    /// The app of the link.
    pub app: App,
}

/// Clicks.
#[async_trait]
pub trait Clicks: Send + Sync {
    /// Finds a link by its id or slug. Returns `None` when the link does not exist or is archived.
    /// The caller checks whether the link is active.
    async fn tracking_link(&self, link: LinkRef) -> StoreResult<Option<TrackedLink>>;

    /// Lists the apps whose association files a host serves. A custom host serves the files of its
    /// own app. The service's own host (`None`) serves the files of all apps without a custom host,
    /// oldest app first.
    async fn apps_for_host(&self, host: Option<HostName>) -> StoreResult<Vec<App>>;

    /// Records a click, and counts it unless it came from a bot. Idempotent.
    async fn record_click(&self, click: Click) -> StoreResult<()>;

    /// Adds device hints from the landing page to a click that is not older than `not_before`. Only
    /// fills in missing fields. Returns whether the click was found.
    async fn add_page_hints(
        &self,
        app: AppId,
        click: ClickId,
        hints: PageHints,
        not_before: Timestamp,
    ) -> StoreResult<bool>;

    /// Deletes the addresses and user agents of at most `limit` clicks older than `clicks_before`, and
    /// the address hashes of at most `limit` devices first seen, and claims of users first made,
    /// before `devices_before`. Returns the total number of changed rows.
    async fn forget_addresses(
        &self,
        clicks_before: Timestamp,
        devices_before: Timestamp,
        limit: u32,
    ) -> StoreResult<u64>;

    /// Removes at most `limit` clicks older than `before` that no install or event refers to.
    /// Returns the number of removed clicks.
    async fn remove_clicks(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
