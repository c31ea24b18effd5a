//! How far the pivots and the payers of apps go back.

use super::EngineTransaction;
use tributary_domain::access::Environment;
use tributary_domain::click::Click;
use tributary_domain::report::PivotHistory;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_domain::vocabulary::time::Timestamp;

/// Progress of filling the pivots, and what it reads.
pub trait PivotTable: EngineTransaction {
    /// Returns how far an app's pivots go back; `None` if they are complete.
    async fn pivot_history(&self, app: AppId) -> Result<Option<PivotHistory>, Self::Failure>;

    /// Stores from when on an app's pivots are complete; `None` means that they contain everything.
    /// Returns false, and changes nothing, if the stored version is another one.
    async fn write_pivot_history(
        &self,
        app: AppId,
        version: i64,
        complete_from: Option<Timestamp>,
    ) -> Result<bool, Self::Failure>;

    /// Changes the version, so that a step that was prepared before has no effect.
    async fn touch_pivot_history(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Returns the start of the latest quarter hour with figures before a time.
    async fn latest_figures(
        &self,
        scope: (AppId, Environment),
        before: Timestamp,
    ) -> Result<Option<Timestamp>, Self::Failure>;

    /// Returns the time from which on the payers of an app's cohorts are counted; `None` if all are.
    async fn payers_from(&self, app: AppId) -> Result<Option<Timestamp>, Self::Failure>;

    /// Stores the time from which on payers are counted; `None` means that all are.
    async fn write_payers_from(
        &self,
        app: AppId,
        complete_from: Option<Timestamp>,
    ) -> Result<(), Self::Failure>;

    /// Returns the start of the latest hour with installs before a time.
    async fn latest_installs(
        &self,
        scope: (AppId, Environment),
        before: Timestamp,
    ) -> Result<Option<Timestamp>, Self::Failure>;

    /// Returns the clicks in a range of click ids, in id order.
    async fn clicks_between(
        &self,
        app: AppId,
        span: (ClickId, ClickId),
        limit: usize,
    ) -> Result<Vec<Click>, Self::Failure>;
}
