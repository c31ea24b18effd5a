//! Reports: figures, cohorts, costs, and the log read from one end to the other.

mod stats;

use crate::clicks::{CLICK_COLUMNS, click_row};
use crate::events::{EVENT_COLUMNS, event_row, exchanged};
use crate::rows::{insert_audit, page_start, require_app};
use crate::{Failure, SqliteStore, deliveries, rollups};
use async_trait::async_trait;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params, params_from_iter};
use stats::{PIECES, dimension_value, find_stats, period, pieces_json};
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::click::Click;
use tributary_domain::event::{Event, name};
use tributary_domain::exchange::Day;
use tributary_domain::integration::Network;
use tributary_domain::report::CostSum;
use tributary_domain::report::cohort::{CohortFigures, CohortQuestion, CohortRow};
use tributary_domain::report::cost::{Cost, CostFilter, CostKey, StoredCost, unexchangeable};
use tributary_domain::report::{Dimension, Figures, Period, StatsQuestion, StatsRow};
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId, OrganizationId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{ClickRow, CostRow, EventRow, audit_row, cohort_column, sums};
use tributary_store::{Health, LogPart, Rebuilt, Reports, RollupDay, StoreResult};

fn find_totals(
    connection: &Connection,
    organization: OrganizationId,
    environment: Environment,
    apps: &[(AppId, Vec<Period>)],
) -> Result<Vec<(AppId, usize, Figures)>, Failure> {
    let mut found = Vec::new();
    for (app, periods) in apps {
        require_app(connection, organization, *app)?;
        let question = StatsQuestion {
            periods: periods.clone(),
            by: Vec::new(),
            filters: Vec::new(),
            rows_max: u32::MAX,
        };
        let rows = find_stats(connection, *app, environment, &question)?;
        found.extend(rows.into_iter().map(|row| (*app, row.period, row.figures)));
    }
    Ok(found)
}

fn find_cohorts(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    question: &CohortQuestion,
) -> Result<Vec<CohortRow>, Failure> {
    let (table, column) = cohort_column(question.by);
    let value = column.unwrap_or("''");
    let sql = format!(
        "{PIECES} select pieces.n, {value}, age, {} from pieces cross join {table} as rollup
         where app_id = ? and environment = ? and rollup.grain = pieces.grain
           and bucket >= pieces.begins and bucket < pieces.ends and age <= ?
         group by 1, 2, 3 limit ?",
        sums(&CohortFigures::COLUMNS)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![
        pieces_json(&question.periods),
        app.as_bytes(),
        environment.as_str(),
        question.age_max,
        question.rows_max
    ])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let value = if column == Some("link_id") {
            dimension_value(row, Dimension::Link, 1)?
        } else {
            row.get(1)?
        };
        found.push(CohortRow {
            period: period(row)?,
            value,
            age: row.get(2)?,
            figures: CohortFigures::from_values([row.get(3)?, row.get(4)?, row.get(5)?]),
        });
    }
    Ok(found)
}

const COST_COLUMNS: &str =
    "cost_id, day, network, campaign_id, amount_micros, currency, usd_micros, rate_day";

fn cost_row(row: &Row<'_>) -> rusqlite::Result<CostRow> {
    Ok(CostRow {
        cost_id: row.get(0)?,
        day: row.get(1)?,
        network: row.get(2)?,
        campaign_id: row.get(3)?,
        amount_micros: row.get(4)?,
        currency: row.get(5)?,
        usd_micros: row.get(6)?,
        rate_day: row.get(7)?,
    })
}

fn put_cost(
    connection: &Connection,
    app: AppId,
    cost: &StoredCost,
    origin: &Origin,
) -> Result<(), Failure> {
    let row = CostRow::write(cost);
    if cost.cost.amount == Amount::ZERO {
        connection
            .prepare_cached("delete from costs where app_id = ?1 and cost_id = ?2")?
            .execute(params![app.as_bytes(), row.cost_id])?;
        return Ok(());
    }
    connection
        .prepare_cached(
            "insert into costs (app_id, cost_id, day, network, campaign_id, amount_micros, currency,
                                usd_micros, rate_day, updated_at)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             on conflict (app_id, cost_id) do update
             set amount_micros = excluded.amount_micros, currency = excluded.currency,
                 usd_micros = excluded.usd_micros, rate_day = excluded.rate_day,
                 updated_at = excluded.updated_at",
        )?
        .execute(params![
            app.as_bytes(),
            row.cost_id,
            row.day,
            row.network,
            row.campaign_id,
            row.amount_micros,
            row.currency,
            row.usd_micros,
            row.rate_day,
            origin.at.as_millis()
        ])?;
    Ok(())
}

fn find_costs(
    connection: &Connection,
    app: AppId,
    filter: &CostFilter,
    page: PageRequest,
) -> Result<Page<StoredCost>, Failure> {
    let before = page_start(page.before);
    let mut conditions = "app_id = ? and cost_id < ?".to_owned();
    let mut values = vec![Value::Blob(app.as_bytes().to_vec()), Value::Blob(before)];
    if let Some(from) = filter.from {
        conditions.push_str(" and cost_id >= ?");
        values.push(Value::Blob(CostKey::first_of(from).as_bytes().to_vec()));
    }
    if let Some(to) = filter.to {
        conditions.push_str(" and cost_id < ?");
        let next = CostKey::first_of(to.following());
        values.push(Value::Blob(next.as_bytes().to_vec()));
    }
    if let Some(network) = filter.network {
        conditions.push_str(" and network = ?");
        values.push(Value::Text(network.as_str().to_owned()));
    }
    if let Some(campaign) = &filter.campaign {
        conditions.push_str(" and campaign_id = ?");
        values.push(Value::Text(campaign.clone()));
    }
    values.push(Value::Integer(page.limit.rows()));
    let sql = format!(
        "select {COST_COLUMNS} from costs where {conditions} order by cost_id desc limit ?"
    );
    let rows: Vec<CostRow> = connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), cost_row)?
        .collect::<Result<_, _>>()?;
    let costs: Vec<StoredCost> = rows
        .into_iter()
        .map(CostRow::read)
        .collect::<Result<_, _>>()?;
    Ok(Page::from_rows(costs, page.limit))
}

fn find_cost_sums(
    connection: &Connection,
    app: AppId,
    from: Day,
    to: Day,
) -> Result<Vec<CostSum>, Failure> {
    let sql = format!(
        "select {COST_COLUMNS} from costs where app_id = ?1 and cost_id >= ?2 and cost_id < ?3"
    );
    let (first, last) = (CostKey::first_of(from), CostKey::first_of(to.following()));
    let rows: Vec<CostRow> = connection
        .prepare_cached(&sql)?
        .query_map(
            params![app.as_bytes(), first.as_bytes(), last.as_bytes()],
            cost_row,
        )?
        .collect::<Result<_, _>>()?;
    Ok(rows.into_iter().map(CostRow::sum).collect())
}

#[async_trait]
impl Reports for SqliteStore {
    async fn stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: StatsQuestion,
    ) -> StoreResult<Vec<StatsRow>> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read_counted("stats", vec![app], move |connection| {
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
        let (organization, environment) = (caller.organization(), caller.environment());
        let named = apps.iter().map(|(app, _)| *app).collect();
        self.read_counted("totals", named, move |connection| {
            find_totals(connection, organization, environment, &apps)
        })
        .await
    }

    async fn cohorts(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: CohortQuestion,
    ) -> StoreResult<Vec<CohortRow>> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read_counted("cohorts", vec![app], move |connection| {
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
        origin: Origin,
    ) -> StoreResult<u64> {
        let organization = caller.organization();
        self.write("put_costs", move |connection| {
            require_app(connection, organization, app)?;
            for (place, cost) in costs.iter().enumerate() {
                let asked = (cost.amount, cost.currency, cost.day);
                let exchanged = exchanged(connection, Some(asked))?;
                let exchanged = exchanged.ok_or_else(|| unexchangeable(place))?;
                let stored = StoredCost::of(cost.clone(), &exchanged);
                put_cost(connection, app, &stored, &origin)?;
            }
            let row = audit_row(
                organization,
                &origin,
                Action::CostsUpdated,
                Some(app),
                app,
                &[],
            );
            insert_audit(connection, &row)?;
            Ok(u64::try_from(costs.len()).unwrap_or(u64::MAX))
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
        let organization = caller.organization();
        self.read("costs", move |connection| {
            require_app(connection, organization, app)?;
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
        let (organization, environment) = (caller.organization(), caller.environment());
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
    ) -> StoreResult<Vec<(Network, Health)>> {
        let organization = caller.organization();
        self.read("delivery_health", move |connection| {
            require_app(connection, organization, app)?;
            deliveries::healths(connection, app, now)
        })
        .await
    }

    async fn link_names(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        links: Vec<LinkId>,
    ) -> StoreResult<Vec<(LinkId, String)>> {
        let organization = caller.organization();
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

    async fn log_events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        part: LogPart<EventId>,
        installs: bool,
    ) -> StoreResult<Vec<Event>> {
        let (organization, environment) = (caller.organization(), caller.environment());
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
            let rows = statement.query_map(params_from_iter(values), event_row)?;
            rows.map(|row| Ok(EventRow::read(row?)?)).collect()
        })
        .await
    }

    async fn log_clicks(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        part: LogPart<ClickId>,
    ) -> StoreResult<Vec<Click>> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read("log_clicks", move |connection| {
            require_app(connection, organization, app)?;
            if environment == Environment::Test {
                return Ok(Vec::new());
            }
            let until = ClickId::first_at(part.until);
            let (comparison, from) = part.after.map_or_else(
                || (">=", ClickId::first_at(part.from)),
                |after| (">", after),
            );
            let sql = format!(
                "select {CLICK_COLUMNS} from clicks
                 where app_id = ?1 and click_id {comparison} ?2 and click_id < ?3
                 order by click_id limit {}",
                part.limit
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let key = params![app.as_bytes(), from.as_bytes(), until.as_bytes()];
            let rows = statement.query_map(key, click_row)?;
            rows.map(|row| Ok(ClickRow::read(row?)?)).collect()
        })
        .await
    }

    async fn rollup_days(&self) -> StoreResult<Vec<RollupDay>> {
        self.read_counted("rollup_days", Vec::new(), rollups::days)
            .await
    }

    async fn rebuild_rollups(&self, day: RollupDay) -> StoreResult<Rebuilt> {
        let begun = std::time::Instant::now();
        let name = "rebuild_rollups";
        let outcome = self
            .writer
            .run_after_counts(name, move |connection| {
                rollups::add_kept(connection)?.discard(connection, day.app)?;
                rollups::rebuild(connection, day)
            })
            .await;
        tributary_store::metrics::transaction(name, &outcome, begun.elapsed());
        outcome
    }
}
