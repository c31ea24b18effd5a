//! Clicks, and links as the public endpoints look them up: by URL, without a caller.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::app::App;
use tributary_domain::click::{Click, PageHints};
use tributary_domain::link::{Link, Slug};
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HostName;

/// Reference to a link in a URL.
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
    /// Its app.
    pub app: App,
}

/// Clicks.
#[async_trait]
pub trait Clicks: Send + Sync {
    /// Finds a link by its reference. Returns `None` when it does not exist or is archived. The
    /// caller checks whether it is active.
    async fn tracking_link(&self, link: LinkRef) -> StoreResult<Option<TrackedLink>>;

    /// Lists the apps whose association files a host serves. For a custom host this is its app; for
    /// the service's host (`None`) all apps without a custom host, oldest first.
    async fn apps_for_host(&self, host: Option<HostName>) -> StoreResult<Vec<App>>;

    /// Records a click, and counts it unless it came from a bot. Idempotent.
    async fn record_click(&self, click: Click) -> StoreResult<()>;

    /// Adds device hints from the landing page to a click not older than `not_before`. Fills only
    /// missing fields. Returns whether the click was found.
    async fn add_page_hints(
        &self,
        app: AppId,
        click: ClickId,
        hints: PageHints,
        not_before: Timestamp,
    ) -> StoreResult<bool>;

    /// Deletes the addresses and user agents of at most `limit` clicks older than `before`, and the
    /// address hashes of at most as many devices first seen before it. Returns the number of both.
    async fn forget_addresses(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Removes at most `limit` clicks older than `before` that no install refers to. Returns their
    /// number.
    async fn remove_clicks(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
