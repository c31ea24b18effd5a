//! Clicks, and the links as the doors see them: by what stands in a URL, without a caller.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::app::App;
use tributary_domain::click::{Click, PageHints};
use tributary_domain::link::{Link, Slug};
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HostName;

/// How a URL names a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkRef {
    /// By its id.
    Id(LinkId),
    /// By its slug, also one that it had before.
    Slug(Slug),
}

/// A link with the app that it leads to.
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
    /// The link that a URL names. Nothing when there is none, or it was archived; whether it is active is
    /// the caller's to judge.
    async fn tracking_link(&self, link: LinkRef) -> StoreResult<Option<TrackedLink>>;

    /// The apps whose association files a host serves: the one whose own host it is, or, for the host of
    /// the service (nothing), every app without a host of its own, oldest first.
    async fn apps_for_host(&self, host: Option<HostName>) -> StoreResult<Vec<App>>;

    /// Records a click, and counts it unless it was no person's. The same click again changes nothing.
    async fn record_click(&self, click: Click) -> StoreResult<()>;

    /// Adds what our own page learned about the device, to a click not older than `not_before`. Only what is
    /// not known yet is added. True when there was such a click.
    async fn add_page_hints(
        &self,
        app: AppId,
        click: ClickId,
        hints: PageHints,
        not_before: Timestamp,
    ) -> StoreResult<bool>;

    /// Forgets the addresses and user agents of clicks before a moment, at most `limit` of them, and what is
    /// kept of the addresses of as many devices first seen before it; gives how many of both.
    async fn forget_addresses(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Removes clicks before a moment that no install refers to, at most `limit` of them; gives how many.
    async fn remove_clicks(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
