//! SKAdNetwork and AdAttributionKit postbacks.

mod accept;
mod facts;
mod find;
mod stats;
mod sweep;
mod write;

pub(crate) use accept::batch_writer;
pub(crate) use sweep::claim;

use crate::PostgresStore;
use crate::rows::{AppLockMode, find_app};
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
impl Postbacks for PostgresStore {
    async fn accept_postback(&self, postback: ReceivedPostback) -> StoreResult<PostbackOutcome> {
        self.write_batched(&self.postbacks, postback).await
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
        self.read_for(caller, "postbacks", async move |tx| {
            let app = find_app(tx, organization, app, AppLockMode::Reading).await?;
            find::find_page(tx, &app, &filter, page, is_live).await
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
        self.read_for(caller, "postback_stats", async move |tx| {
            let app = find_app(tx, organization, app, AppLockMode::Reading).await?;
            if !is_live {
                return Ok(Vec::new());
            }
            stats::find(tx, &app, &question).await
        })
        .await
    }

    async fn claim_postbacks(&self, limit: u32) -> StoreResult<u64> {
        self.write("claim_postbacks", async move |tx| {
            sweep::claim_all(tx, limit).await
        })
        .await
    }

    async fn remove_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_postbacks", async move |tx| {
            sweep::remove(tx, before, limit).await
        })
        .await
    }

    async fn remove_unclaimed_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_unclaimed_postbacks", async move |tx| {
            sweep::remove_unclaimed(tx, before, limit).await
        })
        .await
    }
}
