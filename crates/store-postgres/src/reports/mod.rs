//! Reports: statistics, cohorts, costs and log exports.

mod campaign_names;
mod click_breakdown;
mod cohorts;
mod costs;
mod stats;

use crate::clicks::CLICK_COLUMNS;
use crate::params::{Param, column};
use crate::rows::{AppLockMode, read_row, require_app, uuid};
use crate::{PostgresStore, event_rows};
use async_trait::async_trait;
use campaign_names::find_campaign_names;
use click_breakdown::find_click_breakdown;
use cohorts::find_cohorts;
use costs::{COST_COLUMNS, find_costs};
use stats::find_stats;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::audit::AuditContext;
use tributary_domain::click::Click;
use tributary_domain::event::{Event, name};
use tributary_domain::integration::Network;
use tributary_domain::report::CostSum;
use tributary_domain::report::cohort::{CohortReportQuery, CohortRow};
use tributary_domain::report::cost::{Cost, CostFilter, CostKey, StoredCost};
use tributary_domain::report::{
    CampaignNames, ClickBreakdown, Figures, Period, ReportQuery, StatsRow,
};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::admin::{integration_health, put_costs};
use tributary_recording::{rebuild_rollups, rollup_days};
use tributary_store::records::{ClickRow, CostRow};
use tributary_store::{IntegrationHealth, LogPart, RebuildReport, Reports, RollupDay, StoreResult};

#[async_trait]
impl Reports for PostgresStore {
    async fn stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: ReportQuery,
    ) -> StoreResult<Vec<StatsRow>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "stats", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            find_stats(tx, app, environment, &question).await
        })
        .await
    }

    async fn totals(
        &self,
        caller: &Authorized<AppsRead>,
        apps: Vec<(AppId, Vec<Period>)>,
    ) -> StoreResult<Vec<(AppId, usize, Figures)>> {
        let organization = caller.organization_of_all(apps.iter().map(|(app, _)| *app))?;
        let environment = caller.environment();
        self.read_for(caller, "totals", async move |tx| {
            let mut found = Vec::new();
            for (app, periods) in &apps {
                require_app(tx, organization, *app, AppLockMode::Reading).await?;
                let question = ReportQuery {
                    periods: periods.clone(),
                    group_by: Vec::new(),
                    filters: Vec::new(),
                    rows_max: u32::MAX,
                };
                let rows = find_stats(tx, *app, environment, &question).await?;
                found.extend(rows.into_iter().map(|row| (*app, row.period, row.figures)));
            }
            Ok(found)
        })
        .await
    }

    async fn cohorts(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: CohortReportQuery,
    ) -> StoreResult<Vec<CohortRow>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "cohorts", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            find_cohorts(tx, app, environment, &question).await
        })
        .await
    }

    async fn put_costs(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        costs: Vec<Cost>,
        origin: AuditContext,
    ) -> StoreResult<u64> {
        let organization = caller.organization_of(app)?;
        self.write("put_costs", async move |tx| {
            put_costs(tx, (organization, app), &costs, &origin).await
        })
        .await
    }

    async fn costs(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: CostFilter,
        page: PageRequest,
    ) -> StoreResult<Page<StoredCost>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "costs", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            if environment == Environment::Test {
                return Ok(Page::from_rows(Vec::new(), page.limit));
            }
            find_costs(tx, app, &filter, page).await
        })
        .await
    }

    async fn cost_sums(
        &self,
        caller: &Authorized<AnalyticsRead>,
        apps: Vec<AppId>,
        from: Day,
        to: Day,
    ) -> StoreResult<Vec<(AppId, CostSum)>> {
        let organization = caller.organization_of_all(apps.iter().copied())?;
        let environment = caller.environment();
        if environment == Environment::Test {
            return Ok(Vec::new());
        }
        self.read_for(caller, "cost_sums", async move |tx| {
            let sql = format!(
                "select {COST_COLUMNS} from costs
                 where app_id = $1 and cost_id >= $2 and cost_id < $3"
            );
            let first = uuid(CostKey::first_of(from).as_bytes());
            let last = uuid(CostKey::first_of(to.following()).as_bytes());
            let mut found = Vec::new();
            for app in &apps {
                require_app(tx, organization, *app, AppLockMode::Reading).await?;
                let key: [&dyn Param; 3] = [&uuid(app.as_bytes()), &first, &last];
                let rows = tx.query(&sql, &key).await?;
                let rows = rows.iter().map(read_row::<CostRow>);
                let sums = CostRow::counted(rows.collect::<Result<_, _>>()?)?;
                found.extend(sums.into_iter().map(|sum| (*app, sum)));
            }
            Ok(found)
        })
        .await
    }

    async fn delivery_health(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        now: Timestamp,
    ) -> StoreResult<Vec<(Network, IntegrationHealth)>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "delivery_health", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            if environment == Environment::Test {
                return Ok(Vec::new());
            }
            integration_health(tx, app, now).await
        })
        .await
    }

    async fn click_breakdown(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        link: LinkId,
        period: Period,
    ) -> StoreResult<ClickBreakdown> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "click_breakdown", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            find_click_breakdown(tx, app, environment, link, period).await
        })
        .await
    }

    async fn link_names(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        links: Vec<LinkId>,
    ) -> StoreResult<Vec<(LinkId, String)>> {
        let organization = caller.organization_of(app)?;
        self.read_for(caller, "link_names", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let ids = column(&links, |link| uuid(link.as_bytes()));
            let rows = tx
                .query(
                    "select link_id, name from links where app_id = $1 and link_id = any($2)",
                    &[&uuid(app.as_bytes()), &ids],
                )
                .await?;
            rows.iter()
                .map(|row| {
                    Ok((
                        LinkId::from_bytes(crate::rows::id(row, 0)?),
                        row.try_get(1)?,
                    ))
                })
                .collect()
        })
        .await
    }

    async fn campaign_names(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        period: Period,
    ) -> StoreResult<CampaignNames> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "campaign_names", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            find_campaign_names(tx, app, environment, period).await
        })
        .await
    }

    async fn log_events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        part: LogPart<EventId>,
        installs: bool,
    ) -> StoreResult<Vec<Event>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "log_events", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let (comparison, from) = part.after.map_or_else(
                || (">=", EventId::first_at(part.from)),
                |after| (">", after),
            );
            let until = uuid(EventId::first_at(part.until).as_bytes());
            let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
            let (from, limit) = (uuid(from.as_bytes()), i64::from(part.limit));
            let mut params: Vec<&dyn Param> = vec![&app, &environment, &from, &until, &limit];
            let mut of_installs = "";
            if installs {
                of_installs = "and name = $6 and own";
                params.push(&name::INSTALL);
            }
            let conditions = format!(
                "app_id = $1 and environment = $2 and event_id {comparison} $3 and event_id < $4
                 {of_installs} order by event_id limit $5"
            );
            event_rows::find(tx, &conditions, &params).await
        })
        .await
    }

    async fn log_clicks(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        part: LogPart<ClickId>,
    ) -> StoreResult<Vec<Click>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "log_clicks", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let (comparison, from) = part.after.map_or_else(
                || (">=", ClickId::first_at(part.from)),
                |after| (">", after),
            );
            let until = uuid(ClickId::first_at(part.until).as_bytes());
            let sql = format!(
                "select {CLICK_COLUMNS} from clicks
                 where app_id = $1 and click_id {comparison} $2 and click_id < $3
                   and coalesce(environment, 'live') = $5
                 order by click_id limit $4"
            );
            let limit = i64::from(part.limit);
            let environment = environment.as_str();
            let key: [&dyn Param; 5] = [
                &uuid(app.as_bytes()),
                &uuid(from.as_bytes()),
                &until,
                &limit,
                &environment,
            ];
            let rows = tx.query(&sql, &key).await?;
            rows.iter()
                .map(|row| Ok(ClickRow::read(read_row::<ClickRow>(row)?)?))
                .collect()
        })
        .await
    }

    async fn rollup_days(&self) -> StoreResult<Vec<RollupDay>> {
        self.read("rollup_days", async move |tx| rollup_days(tx).await)
            .await
    }

    async fn rebuild_rollups(&self, day: RollupDay) -> StoreResult<RebuildReport> {
        self.write("rebuild_rollups", async move |tx| {
            Box::pin(rebuild_rollups(tx, day)).await
        })
        .await
    }
}
