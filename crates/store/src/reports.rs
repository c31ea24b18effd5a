//! Reports: figures, cohorts, costs, and the log read from one end to the other. A report never writes: a read replica,
//! a read-only file and a full disk answer it.

use crate::{IntegrationHealth, StoreResult};
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::audit::AuditContext;
use tributary_domain::click::Click;
use tributary_domain::event::Event;
use tributary_domain::integration::Network;
use tributary_domain::report::cohort::{CohortReportQuery, CohortRow};
use tributary_domain::report::cost::{Cost, CostFilter, StoredCost};
use tributary_domain::report::{CostSum, Dimension, Figures, Period, ReportQuery, StatsRow};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;

/// A part of the log, oldest first. A long reader asks for one part after the other, so that no snapshot is held
/// while somebody downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPart<I> {
    /// Behind this one; from the beginning when there is none.
    pub after: Option<I>,
    /// Not before.
    pub from: Timestamp,
    /// Before.
    pub until: Timestamp,
    /// So many, at most.
    pub limit: u32,
}

/// A day of an app whose figures are made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct RollupDay {
    pub app: AppId,
    pub environment: Environment,
    pub day: Day,
}

/// What came of making the figures of a day anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RebuildReport {
    /// Events that were read.
    pub events: u64,
    /// Rows that were right.
    pub correct_rows: u64,
    /// Rows that were wrong, or missing, or too many.
    pub corrected_rows: u64,
}

/// Reports.
#[async_trait]
pub trait Reports: Send + Sync {
    /// Figures of an app in the caller's environment, from the roll-up that answers the question. Refused where
    /// none does: [`Rollup::answering`](tributary_domain::report::Rollup::answering) says so beforehand. Rows
    /// without any figure are left out.
    async fn stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: ReportQuery,
    ) -> StoreResult<Vec<StatsRow>>;

    /// The figures of an app in a period, by credited network. Both ends of the period are taken at the quarter of
    /// an hour that they fall into.
    async fn figures_by_network(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        period: Period,
    ) -> StoreResult<Vec<(String, Figures)>> {
        let question = ReportQuery {
            periods: vec![period],
            group_by: vec![Dimension::Network],
            filters: Vec::new(),
            rows_max: u32::MAX,
        };
        let rows = self.stats(caller, app, question).await?;
        let by_network = rows
            .into_iter()
            .map(|row| (row.values.concat(), row.figures));
        Ok(by_network.collect())
    }

    /// The sums of several apps of the organization, for each its own periods.
    async fn totals(
        &self,
        caller: &Authorized<AppsRead>,
        apps: Vec<(AppId, Vec<Period>)>,
    ) -> StoreResult<Vec<(AppId, usize, Figures)>>;

    /// What devices that were installed together did in the days after.
    async fn cohorts(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: CohortReportQuery,
    ) -> StoreResult<Vec<CohortRow>>;

    /// Takes costs, each in the place of what was told for its day, network and campaign before; nothing is
    /// taken when one of them cannot be exchanged. A cost of zero removes. Gives how many there were.
    async fn put_costs(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        costs: Vec<Cost>,
        origin: AuditContext,
    ) -> StoreResult<u64>;

    /// The costs that were told, newest day first.
    async fn costs(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: CostFilter,
        page: PageRequest,
    ) -> StoreResult<Page<StoredCost>>;

    /// What ads cost from one day to another, both inclusive. A test key finds none: costs are live
    /// data.
    async fn cost_sums(
        &self,
        caller: &Authorized<AnalyticsRead>,
        apps: Vec<AppId>,
        from: Day,
        to: Day,
    ) -> StoreResult<Vec<(AppId, CostSum)>>;

    /// How the integrations of an app do, in the order of the networks. A test key finds none: test events are never
    /// sent.
    async fn delivery_health(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        now: Timestamp,
    ) -> StoreResult<Vec<(Network, IntegrationHealth)>>;

    /// What links are called, archived ones too.
    async fn link_names(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        links: Vec<LinkId>,
    ) -> StoreResult<Vec<(LinkId, String)>>;

    /// A part of the log of events; of installs alone where they are asked for.
    async fn log_events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        part: LogPart<EventId>,
        installs: bool,
    ) -> StoreResult<Vec<Event>>;

    /// A part of the clicks. They are live data: a test key finds none.
    async fn log_clicks(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        part: LogPart<ClickId>,
    ) -> StoreResult<Vec<Click>>;

    /// The days that have events or figures, for [`Self::rebuild_rollups`].
    async fn rollup_days(&self) -> StoreResult<Vec<RollupDay>>;

    /// Makes the figures of a day anew from its events, and the cohorts of the devices that were installed on
    /// it. Clicks stay as they were counted: most of them are forgotten after a while. What is recorded meanwhile
    /// is counted too.
    async fn rebuild_rollups(&self, day: RollupDay) -> StoreResult<RebuildReport>;
}
