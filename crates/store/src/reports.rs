//! Reports: figures, cohorts, costs and log exports. Reports never write, so that they work with a
//! read replica, a read-only file or a full disk.

use crate::{IntegrationHealth, StoreResult};
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::audit::AuditContext;
use tributary_domain::click::Click;
use tributary_domain::event::Event;
use tributary_domain::integration::Network;
use tributary_domain::report::cohort::{CohortReportQuery, CohortRow};
use tributary_domain::report::cost::{Cost, CostFilter, StoredCost};
use tributary_domain::report::{
    CampaignNames, ClickBreakdown, CostSum, Dimension, Figures, Period, ReportQuery, StatsRow,
};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;

/// A part of a log to read, oldest entry first. Exports read one part after another, so that no
/// database snapshot stays open during a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPart<I> {
    /// Last id of the previous part. `None` for the first part.
    pub after: Option<I>,
    /// Start of the period.
    pub from: Timestamp,
    /// End of the period, exclusive.
    pub until: Timestamp,
    /// Maximum number of entries.
    pub limit: u32,
}

/// A day whose figures are rebuilt, for one app and environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct RollupDay {
    pub app: AppId,
    pub environment: Environment,
    pub day: Day,
}

/// Result of rebuilding a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RebuildReport {
    /// Events read.
    pub events: u64,
    /// Rows that were correct.
    pub correct_rows: u64,
    /// Rows that were wrong, missing or should not have existed.
    pub corrected_rows: u64,
}

/// Reports.
#[async_trait]
pub trait Reports: Send + Sync {
    /// Returns an app's figures in the caller's environment, from the roll-up that covers the
    /// dimensions. Refused when no roll-up covers them; check with
    /// [`Rollup::for_dimensions`](tributary_domain::report::Rollup::for_dimensions). Rows of zeros
    /// are omitted.
    async fn stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        query: ReportQuery,
    ) -> StoreResult<Vec<StatsRow>>;

    /// Returns an app's figures in a period, by credited network. The start and the end are rounded
    /// down to quarters of an hour.
    async fn figures_by_network(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        period: Period,
    ) -> StoreResult<Vec<(String, Figures)>> {
        let query = ReportQuery {
            periods: vec![period],
            group_by: vec![Dimension::Network],
            filters: Vec::new(),
            rows_max: u32::MAX,
        };
        let rows = self.stats(caller, app, query).await?;
        let by_network = rows
            .into_iter()
            .map(|row| (row.values.concat(), row.figures));
        Ok(by_network.collect())
    }

    /// Returns the totals for several of the organization's apps, each for its own periods.
    async fn totals(
        &self,
        caller: &Authorized<AppsRead>,
        apps: Vec<(AppId, Vec<Period>)>,
    ) -> StoreResult<Vec<(AppId, usize, Figures)>>;

    /// Returns the activity of install cohorts on the days after the install.
    async fn cohorts(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        query: CohortReportQuery,
    ) -> StoreResult<Vec<CohortRow>>;

    /// Stores costs. Each cost replaces the stored one for the same day, network and campaign; an
    /// amount of zero removes the stored cost. Stores nothing if any of the costs cannot be
    /// converted to USD. Returns the number of given costs.
    async fn put_costs(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        costs: Vec<Cost>,
        origin: AuditContext,
    ) -> StoreResult<u64>;

    /// Lists the stored costs, newest day first.
    async fn costs(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: CostFilter,
        page: PageRequest,
    ) -> StoreResult<Page<StoredCost>>;

    /// Returns ad costs between two days, both inclusive. Costs are live data; a caller with a test
    /// key finds none.
    async fn cost_sums(
        &self,
        caller: &Authorized<AnalyticsRead>,
        apps: Vec<AppId>,
        from: Day,
        to: Day,
    ) -> StoreResult<Vec<(AppId, CostSum)>>;

    /// Returns the health of an app's integrations, in the order of the networks. A caller with a
    /// test key finds none, because test events are never sent.
    async fn delivery_health(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        now: Timestamp,
    ) -> StoreResult<Vec<(Network, IntegrationHealth)>>;

    /// Counts a link's stored clicks in a period by country and platform. Reads at most the newest
    /// [`CLICKS_SCANNED_MAX`](tributary_domain::report::CLICKS_SCANNED_MAX) clicks of the app in the
    /// period. Clicks from bots do not count.
    async fn click_breakdown(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        link: LinkId,
        period: Period,
    ) -> StoreResult<ClickBreakdown>;

    /// Returns the names of links, including archived ones.
    async fn link_names(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        links: Vec<LinkId>,
    ) -> StoreResult<Vec<(LinkId, String)>>;

    /// Returns the names of campaigns, ad sets and ads in the caller's environment: from the app's
    /// links, whose names its people chose, then from installs and clicks in the period, which anyone
    /// can send. Reads the newest
    /// [`NAME_SOURCES_MAX`](tributary_domain::report::NAME_SOURCES_MAX) of each; bots' clicks have no
    /// say.
    async fn campaign_names(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        period: Period,
    ) -> StoreResult<CampaignNames>;

    /// Returns a part of the event log, with all events or only installs.
    async fn log_events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        part: LogPart<EventId>,
        installs: bool,
    ) -> StoreResult<Vec<Event>>;

    /// Returns a part of the click log, in the caller's environment.
    async fn log_clicks(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        part: LogPart<ClickId>,
    ) -> StoreResult<Vec<Click>>;

    /// Returns the days that have events or figures, for [`Self::rebuild_rollups`].
    async fn rollup_days(&self) -> StoreResult<Vec<RollupDay>>;

    /// Rebuilds a day's figures from its events, and the cohorts of the devices that were installed
    /// on that day. Click counts are not rebuilt, because most clicks are deleted after a while.
    /// Events that are recorded during the rebuild are counted too.
    async fn rebuild_rollups(&self, day: RollupDay) -> StoreResult<RebuildReport>;
}
