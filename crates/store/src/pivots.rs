//! Pivots: figures by network and campaign together with country and platform. They were introduced
//! after the other roll-ups; a worker fills them with earlier clicks and events. The payers of
//! cohorts were introduced later, too, and the same worker counts those of earlier installs.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::ReportQuery;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// History of the pivots.
#[async_trait]
pub trait Pivots: Send + Sync {
    /// Returns the time from which an app's pivots contain every event; `None` if they contain all
    /// of them. Read it before the figures, because it only moves back.
    async fn pivots_complete_from(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Option<Timestamp>>;

    /// Returns the time from which the figures for a query are complete; `None` if they lack nothing.
    async fn complete_from(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        query: &ReportQuery,
    ) -> StoreResult<Option<Timestamp>> {
        if !query.reads_pivots() {
            return Ok(None);
        }
        let pivots_from = self.pivots_complete_from(caller, app).await?;
        Ok(query.complete_from(pivots_from))
    }

    /// Returns some apps whose pivots lack earlier events and are to be filled now.
    async fn apps_to_fill(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<AppId>>;

    /// Counts the latest of an app's clicks and events that its pivots lack, in a limited step:
    /// reads them in one snapshot, and stores the difference in another transaction. Returns whether
    /// more may be left.
    async fn fill_pivots(&self, app: AppId) -> StoreResult<bool>;

    /// Returns the time from which on the payers of an app's cohorts are counted; `None` if all are.
    /// Read it before the cohorts, because it only moves back.
    async fn payers_complete_from(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Option<Timestamp>>;

    /// Returns some apps whose cohorts lack payers of earlier installs, to be filled now.
    async fn apps_without_payers(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<AppId>>;

    /// Counts the payers of an hour of installs. Returns whether more may be left.
    async fn fill_payers(&self, app: AppId) -> StoreResult<bool>;
}
