//! SKAdNetwork and AdAttributionKit postbacks. There is only one writer, so facts that were read
//! stay valid until the commit.

mod accept;
mod find;
mod stats;
mod sweep;

pub(crate) use sweep::claim;

use crate::SqliteStore;
use crate::rows::find_app;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, Authorized, Environment};
use tributary_domain::report::postback::ReceivedPostback;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::PageRequest;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{
    PostbackFilter, PostbackOutcome, PostbackPage, PostbackReportQuery, PostbackStats, Postbacks,
    StoreResult,
};

#[async_trait]
impl Postbacks for SqliteStore {
    async fn accept_postback(&self, postback: ReceivedPostback) -> StoreResult<PostbackOutcome> {
        self.write_keeping_cache("accept_postback", move |connection| {
            accept::accept(connection, &postback)
        })
        .await
    }

    async fn postbacks(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: PostbackFilter,
        page: PageRequest,
    ) -> StoreResult<PostbackPage> {
        let organization = caller.organization_of(app)?;
        let is_live = caller.environment() == Environment::Live;
        self.read("postbacks", move |connection| {
            let app = find_app(connection, organization, app)?;
            find::find_page(connection, &app, &filter, page, is_live)
        })
        .await
    }

    async fn postback_stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: PostbackReportQuery,
    ) -> StoreResult<Vec<PostbackStats>> {
        let organization = caller.organization_of(app)?;
        let is_live = caller.environment() == Environment::Live;
        self.read("postback_stats", move |connection| {
            let app = find_app(connection, organization, app)?;
            if !is_live {
                return Ok(Vec::new());
            }
            stats::find(connection, &app, &question)
        })
        .await
    }

    async fn claim_postbacks(&self, limit: u32) -> StoreResult<u64> {
        self.write("claim_postbacks", move |connection| {
            sweep::claim_all(connection, limit)
        })
        .await
    }

    async fn remove_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_postbacks", move |connection| {
            sweep::remove(connection, before, limit)
        })
        .await
    }

    async fn remove_unclaimed_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_unclaimed_postbacks", move |connection| {
            sweep::remove_unclaimed(connection, before, limit)
        })
        .await
    }
}
