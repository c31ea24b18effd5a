//! Reports: statistics, cohorts, costs and log exports.

mod campaign_names;
mod click_breakdown;
mod cohorts;
mod costs;
mod stats;

use crate::clicks::CLICK_COLUMNS;
use crate::event_rows::{EVENT_COLUMNS, read_events};
use crate::rows::{read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use campaign_names::find_campaign_names;
use click_breakdown::find_click_breakdown;
use cohorts::find_cohorts;
use costs::{find_cost_sums, find_costs};
use rusqlite::{Connection, OptionalExtension, ToSql, params, params_from_iter};
pub(crate) use stats::find_stats;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::audit::AuditContext;
use tributary_domain::click::Click;
use tributary_domain::event::{Event, name};
use tributary_domain::integration::Network;
use tributary_domain::report::CostSum;
use tributary_domain::report::cohort::{CohortReportQuery, CohortRow};
use tributary_domain::report::cost::{Cost, CostFilter, StoredCost};
use tributary_domain::report::{
    CampaignNames, ClickBreakdown, Figures, Period, ReportQuery, StatsRow,
};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId, OrganizationId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::admin::{integration_health, put_costs};
use tributary_recording::{rebuild_rollups, rollup_days};
use tributary_store::records::ClickRow;
use tributary_store::{IntegrationHealth, LogPart, RebuildReport, Reports, RollupDay, StoreResult};

fn find_totals(
    connection: &Connection,
    organization: OrganizationId,
    environment: Environment,
    apps: &[(AppId, Vec<Period>)],
) -> Result<Vec<(AppId, usize, Figures)>, Failure> {
    let mut found = Vec::new();
    for (app, periods) in apps {
        require_app(connection, organization, *app)?;
        let question = ReportQuery {
            periods: periods.clone(),
            group_by: Vec::new(),
            filters: Vec::new(),
            rows_max: u32::MAX,
        };
        let rows = find_stats(connection, *app, environment, &question)?;
        found.extend(rows.into_iter().map(|row| (*app, row.period, row.figures)));
    }
    Ok(found)
}

#[async_trait]
impl Reports for SqliteStore {
    async fn stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: ReportQuery,
    ) -> StoreResult<Vec<StatsRow>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("stats", move |connection| {
            require_app(connection, organization, app)?;
            find_stats(connection, app, environment, &question)
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
        self.read("totals", move |connection| {
            find_totals(connection, organization, environment, &apps)
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
        self.read("cohorts", move |connection| {
            require_app(connection, organization, app)?;
            find_cohorts(connection, app, environment, &question)
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
        self.write("put_costs", move |connection| {
            let (tables, of) = (SqliteTables(connection), (organization, app));
            run(put_costs(&tables, of, &costs, &origin))
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
        self.read("costs", move |connection| {
            require_app(connection, organization, app)?;
            if environment == Environment::Test {
                return Ok(Page::from_rows(Vec::new(), page.limit));
            }
            find_costs(connection, app, &filter, page)
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
        self.read("cost_sums", move |connection| {
            let mut found = Vec::new();
            for app in apps {
                require_app(connection, organization, app)?;
                let sums = find_cost_sums(connection, app, from, to)?;
                found.extend(sums.into_iter().map(|sum| (app, sum)));
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
        self.read("delivery_health", move |connection| {
            require_app(connection, organization, app)?;
            if environment == Environment::Test {
                return Ok(Vec::new());
            }
            run(integration_health(&SqliteTables(connection), app, now))
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
        self.read("click_breakdown", move |connection| {
            require_app(connection, organization, app)?;
            find_click_breakdown(connection, app, environment, link, period)
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
        self.read("link_names", move |connection| {
            require_app(connection, organization, app)?;
            let mut found = Vec::new();
            for link in links {
                let name: Option<String> = connection
                    .prepare_cached("select name from links where app_id = ?1 and link_id = ?2")?
                    .query_row((app.as_bytes(), link.as_bytes()), |row| row.get(0))
                    .optional()?;
                found.extend(name.map(|name| (link, name)));
            }
            Ok(found)
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
        self.read("campaign_names", move |connection| {
            require_app(connection, organization, app)?;
            find_campaign_names(connection, app, environment, period)
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
        self.read("log_events", move |connection| {
            require_app(connection, organization, app)?;
            let environment = environment.as_str();
            let until = EventId::first_at(part.until);
            let (comparison, from) = part
                .after
                .map_or_else(|| (">=", EventId::first_at(part.from)), |after| (">", after));
            let of_installs = if installs { "and name = ?5 and own = 1" } else { "" };
            let sql = format!(
                "select {EVENT_COLUMNS} from events
                 where app_id = ?1 and environment = ?2 and event_id {comparison} ?3 and event_id < ?4
                 {of_installs} order by event_id limit {}",
                part.limit
            );
            let mut values: Vec<&dyn ToSql> =
                vec![app.as_bytes(), &environment, from.as_bytes(), until.as_bytes()];
            if installs {
                values.push(&name::INSTALL);
            }
            let mut statement = connection.prepare_cached(&sql)?;
            read_events(&mut statement, params_from_iter(values))
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
        self.read("log_clicks", move |connection| {
            require_app(connection, organization, app)?;
            let until = ClickId::first_at(part.until);
            let (comparison, from) = part.after.map_or_else(
                || (">=", ClickId::first_at(part.from)),
                |after| (">", after),
            );
            let sql = format!(
                "select {CLICK_COLUMNS} from clicks
                 where app_id = ?1 and click_id {comparison} ?2 and click_id < ?3
                   and coalesce(environment, 'live') = ?4
                 order by click_id limit {}",
                part.limit
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let key = params![
                app.as_bytes(),
                from.as_bytes(),
                until.as_bytes(),
                environment.as_str()
            ];
            let rows = statement.query_map(key, read_row::<ClickRow>)?;
            rows.map(|row| Ok(ClickRow::read(row?)?)).collect()
        })
        .await
    }

    async fn rollup_days(&self) -> StoreResult<Vec<RollupDay>> {
        self.read("rollup_days", |connection| {
            run(rollup_days(&SqliteTables(connection)))
        })
        .await
    }

    async fn rebuild_rollups(&self, day: RollupDay) -> StoreResult<RebuildReport> {
        let begun = std::time::Instant::now();
        let name = "rebuild_rollups";
        let outcome = self
            .writer
            .run_after_increments(name, move |connection| {
                run(rebuild_rollups(&SqliteTables(connection), day))
            })
            .await;
        tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
        outcome
    }
}
