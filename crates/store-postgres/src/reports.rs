//! Reports: figures, cohorts, costs, and the log read from one end to the other.

use crate::clicks::{CLICK_COLUMNS, click_row};
use crate::params::{Param, column};
use crate::rates::imported_rates;
use crate::rollups::link_id;
use crate::rows::{Conditions, Purpose, insert_audit, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, deliveries, event_rows, rollups};
use async_trait::async_trait;
use tokio_postgres::Row;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::click::Click;
use tributary_domain::event::{Event, name};
use tributary_domain::exchange::{Day, exchange};
use tributary_domain::integration::Network;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::CostSum;
use tributary_domain::report::cohort::{CohortFigures, CohortQuestion, CohortRow};
use tributary_domain::report::cost::{Cost, CostFilter, CostKey, StoredCost, unexchangeable};
use tributary_domain::report::{
    Dimension, Figures, Period, Piece, Rollup, StatsQuestion, StatsRow, pieces,
};
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{
    ClickRow, CostRow, audit_row, cohort_column, dimension_column, rollup_table, sums,
};
use tributary_store::{Health, LogPart, Rebuilt, Reports, RollupDay, StoreResult};
use uuid::Uuid;

/// The parts of periods as a table that statements join with.
const PIECES: &str = "unnest($1, $2, $3, $4) as pieces (n, grain, begins, ends)";

/// Columns of the parts of periods.
struct Pieces {
    numbers: Vec<i64>,
    grains: Vec<i64>,
    begins: Vec<i64>,
    ends: Vec<i64>,
}

impl Pieces {
    fn of(periods: &[Period]) -> Self {
        let all: Vec<Piece> = pieces(periods);
        Self {
            numbers: column(&all, |piece| {
                i64::try_from(piece.period).unwrap_or(i64::MAX)
            }),
            grains: column(&all, |piece| piece.grain.minutes()),
            begins: column(&all, |piece| piece.from.as_millis()),
            ends: column(&all, |piece| piece.until.as_millis()),
        }
    }

    fn params(&self) -> Vec<&dyn Param> {
        vec![&self.numbers, &self.grains, &self.begins, &self.ends]
    }
}

/// A value that rows are filtered by.
fn filter_value(dimension: Dimension, text: &str) -> Box<dyn Param + Send> {
    if dimension != Dimension::Link {
        return Box::new(text.to_owned());
    }
    let link = LinkId::parse(text).map(|link| uuid(link.as_bytes()));
    Box::new(link.unwrap_or(Uuid::nil()))
}

fn dimension_value(row: &Row, dimension: Dimension, index: usize) -> Result<String, Failure> {
    if dimension != Dimension::Link {
        return Ok(row.try_get(index)?);
    }
    let link = link_id(row, index)?.map(LinkId::from_bytes);
    Ok(link.map(|link| link.to_string()).unwrap_or_default())
}

async fn find_stats(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    question: &StatsQuestion,
) -> Result<Vec<StatsRow>, Failure> {
    let table = Rollup::answering(&question.dimensions()).ok_or_else(Refusal::no_rollup)?;
    let parts = Pieces::of(&question.periods);
    let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
    let rows_max = i64::from(question.rows_max);
    let mut params = parts.params();
    params.extend([&app as &dyn Param, &environment, &rows_max]);
    let filters: Vec<(Dimension, Box<dyn Param + Send>)> = question
        .filters
        .iter()
        .map(|(dimension, wanted)| (*dimension, filter_value(*dimension, wanted)))
        .collect();
    let mut further = String::new();
    for (dimension, wanted) in &filters {
        params.push(&**wanted);
        let column = dimension_column(*dimension);
        further = format!("{further} and {column} = ${}", params.len());
    }
    let mut grouped = vec!["pieces.n"];
    grouped.extend(question.by.iter().map(|one| dimension_column(*one)));
    let grouped = grouped.join(", ");
    let sql = format!(
        "select {grouped}, {} from {PIECES}
         join {} as rollup on rollup.grain = pieces.grain
          and bucket >= pieces.begins and bucket < pieces.ends
         where app_id = $5 and environment = $6{further}
         group by {grouped} limit $7",
        sums(&Figures::COLUMNS),
        rollup_table(table)
    );
    let mut found = Vec::new();
    for row in &tx.query(&sql, &params).await? {
        let mut index = 1;
        let mut values = Vec::with_capacity(question.by.len());
        for dimension in &question.by {
            values.push(dimension_value(row, *dimension, index)?);
            index += 1;
        }
        let figures = figures(row, index)?;
        if !figures.is_zero() {
            found.push(StatsRow {
                period: period(row)?,
                values,
                figures,
            });
        }
    }
    Ok(found)
}

fn period(row: &Row) -> Result<usize, Failure> {
    let number: i64 = row.try_get(0)?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}

fn figures(row: &Row, first: usize) -> Result<Figures, Failure> {
    let mut values = [0; Figures::COUNT];
    for (place, value) in values.iter_mut().enumerate() {
        *value = row.try_get(first + place)?;
    }
    Ok(Figures::from_values(values))
}

async fn find_cohorts(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    question: &CohortQuestion,
) -> Result<Vec<CohortRow>, Failure> {
    let (table, column) = cohort_column(question.by);
    let value = column.unwrap_or("''");
    let parts = Pieces::of(&question.periods);
    let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
    let (age_max, rows_max) = (i64::from(question.age_max), i64::from(question.rows_max));
    let mut params = parts.params();
    params.extend([&app as &dyn Param, &environment, &age_max, &rows_max]);
    let sql = format!(
        "select pieces.n, {value}, age::bigint, {} from {PIECES}
         join {table} as rollup on rollup.grain = pieces.grain
          and bucket >= pieces.begins and bucket < pieces.ends
         where app_id = $5 and environment = $6 and age <= $7
         group by 1, 2, 3 limit $8",
        sums(&CohortFigures::COLUMNS)
    );
    let mut found = Vec::new();
    for row in &tx.query(&sql, &params).await? {
        let value = if column == Some("link_id") {
            dimension_value(row, Dimension::Link, 1)?
        } else {
            row.try_get(1)?
        };
        let age: i64 = row.try_get(2)?;
        found.push(CohortRow {
            period: period(row)?,
            value,
            age: u8::try_from(age).unwrap_or(u8::MAX),
            figures: CohortFigures::from_values([
                row.try_get(3)?,
                row.try_get(4)?,
                row.try_get(5)?,
            ]),
        });
    }
    Ok(found)
}

const COST_COLUMNS: &str =
    "cost_id, day, network, campaign_id, amount_micros, currency, usd_micros, rate_day";

fn cost_row(row: &Row) -> Result<CostRow, tokio_postgres::Error> {
    Ok(CostRow {
        cost_id: crate::rows::id(row, 0)?,
        day: row.try_get(1)?,
        network: row.try_get(2)?,
        campaign_id: row.try_get(3)?,
        amount_micros: row.try_get(4)?,
        currency: row.try_get(5)?,
        usd_micros: row.try_get(6)?,
        rate_day: row.try_get(7)?,
    })
}

async fn store_costs(
    tx: &Tx,
    app: AppId,
    costs: &[StoredCost],
    origin: &Origin,
) -> Result<(), Failure> {
    // Of several for one day, network and campaign the last one holds.
    let mut last = std::collections::BTreeMap::new();
    for cost in costs {
        last.insert(cost.cost.key(), cost);
    }
    let app = uuid(app.as_bytes());
    let (none, some): (Vec<&StoredCost>, Vec<&StoredCost>) = last
        .into_values()
        .partition(|cost| cost.cost.amount == Amount::ZERO);
    let none = column(&none, |cost| uuid(cost.cost.key().as_bytes()));
    tx.execute(
        "delete from costs where app_id = $1 and cost_id = any($2)",
        &[&app, &none],
    )
    .await?;
    let rows: Vec<CostRow> = some.into_iter().map(CostRow::write).collect();
    let rows = rows.as_slice();
    tx.execute(
        "insert into costs (app_id, cost_id, day, network, campaign_id, amount_micros, currency,
                            usd_micros, rate_day, updated_at)
         select $1, cost_id, day, network, campaign_id, amount_micros, currency, usd_micros, rate_day, $2
         from unnest($3, $4, $5, $6, $7, $8, $9, $10)
              as new (cost_id, day, network, campaign_id, amount_micros, currency, usd_micros, rate_day)
         on conflict (app_id, cost_id) do update
         set amount_micros = excluded.amount_micros, currency = excluded.currency,
             usd_micros = excluded.usd_micros, rate_day = excluded.rate_day,
             updated_at = excluded.updated_at",
        &[
            &app,
            &origin.at.as_millis(),
            &column(rows, |row| uuid(&row.cost_id)),
            &column(rows, |row| row.day),
            &column(rows, |row| row.network.as_str()),
            &column(rows, |row| row.campaign_id.as_str()),
            &column(rows, |row| row.amount_micros),
            &column(rows, |row| row.currency.as_str()),
            &column(rows, |row| row.usd_micros),
            &column(rows, |row| row.rate_day),
        ],
    )
    .await?;
    Ok(())
}

async fn find_costs(
    tx: &Tx,
    app: AppId,
    filter: &CostFilter,
    page: PageRequest,
) -> Result<Page<StoredCost>, Failure> {
    let app = uuid(app.as_bytes());
    let rows = page.limit.rows();
    let before = page.before.as_ref().map(uuid);
    let first = |day: Day| uuid(CostKey::first_of(day).as_bytes());
    let from = filter.from.map(first);
    let until = filter.to.map(|to| first(to.following()));
    let network = filter
        .network
        .map(tributary_domain::attribution::CreditedNetwork::as_str);
    let (conditions, params) = Conditions::new("app_id", &app)
        .and("cost_id <", before.as_ref())
        .and("cost_id >=", from.as_ref())
        .and("cost_id <", until.as_ref())
        .and("network =", network.as_ref())
        .and("campaign_id =", filter.campaign.as_ref())
        .newest("cost_id", &rows);
    let sql = format!("select {COST_COLUMNS} from costs where {conditions}");
    let found = tx.query(&sql, &params).await?;
    let costs: Vec<StoredCost> = found
        .iter()
        .map(|row| Ok(cost_row(row)?.read()?))
        .collect::<Result<_, Failure>>()?;
    Ok(Page::from_rows(costs, page.limit))
}

#[async_trait]
impl Reports for PostgresStore {
    async fn stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: StatsQuestion,
    ) -> StoreResult<Vec<StatsRow>> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read_counted("stats", vec![app], async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            find_stats(tx, app, environment, &question).await
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
        self.read_counted("totals", named, async move |tx| {
            let mut found = Vec::new();
            for (app, periods) in &apps {
                require_app(tx, organization, *app, Purpose::Reading).await?;
                let question = StatsQuestion {
                    periods: periods.clone(),
                    by: Vec::new(),
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
        question: CohortQuestion,
    ) -> StoreResult<Vec<CohortRow>> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read_counted("cohorts", vec![app], async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            find_cohorts(tx, app, environment, &question).await
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
        self.write("put_costs", async move |tx| {
            require_app(tx, organization, app, Purpose::Changing).await?;
            let mut wanted: Vec<_> = costs.iter().map(|cost| (cost.currency, cost.day)).collect();
            wanted.sort_unstable();
            wanted.dedup();
            let rates = imported_rates(tx, &wanted).await?;
            let mut stored = Vec::with_capacity(costs.len());
            for (place, cost) in costs.iter().enumerate() {
                let exchanged = exchange(cost.amount, cost.currency, cost.day, &rates);
                let exchanged = exchanged.ok_or_else(|| unexchangeable(place))?;
                stored.push(StoredCost::of(cost.clone(), &exchanged));
            }
            store_costs(tx, app, &stored, &origin).await?;
            let action = Action::CostsUpdated;
            let row = audit_row(organization, &origin, action, Some(app), app, &[]);
            insert_audit(tx, &row).await?;
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
        self.read("costs", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
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
        let (organization, environment) = (caller.organization(), caller.environment());
        if environment == Environment::Test {
            return Ok(Vec::new());
        }
        self.read("cost_sums", async move |tx| {
            let sql = format!(
                "select {COST_COLUMNS} from costs
                 where app_id = $1 and cost_id >= $2 and cost_id < $3"
            );
            let first = uuid(CostKey::first_of(from).as_bytes());
            let last = uuid(CostKey::first_of(to.following()).as_bytes());
            let mut found = Vec::new();
            for app in &apps {
                require_app(tx, organization, *app, Purpose::Reading).await?;
                let key: [&dyn Param; 3] = [&uuid(app.as_bytes()), &first, &last];
                for row in &tx.query(&sql, &key).await? {
                    found.push((*app, cost_row(row)?.sum()));
                }
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
        self.read("delivery_health", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            deliveries::healths(tx, app, now).await
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
        self.read("link_names", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
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

    async fn log_events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        part: LogPart<EventId>,
        installs: bool,
    ) -> StoreResult<Vec<Event>> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read("log_events", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
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
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read("log_clicks", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            if environment == Environment::Test {
                return Ok(Vec::new());
            }
            let (comparison, from) = part.after.map_or_else(
                || (">=", ClickId::first_at(part.from)),
                |after| (">", after),
            );
            let until = uuid(ClickId::first_at(part.until).as_bytes());
            let sql = format!(
                "select {CLICK_COLUMNS} from clicks
                 where app_id = $1 and click_id {comparison} $2 and click_id < $3
                 order by click_id limit $4"
            );
            let limit = i64::from(part.limit);
            let key: [&dyn Param; 4] = [
                &uuid(app.as_bytes()),
                &uuid(from.as_bytes()),
                &until,
                &limit,
            ];
            let rows = tx.query(&sql, &key).await?;
            rows.iter()
                .map(|row| Ok(ClickRow::read(click_row(row)?)?))
                .collect()
        })
        .await
    }

    async fn rollup_days(&self) -> StoreResult<Vec<RollupDay>> {
        if let Err(error) = rollups::add_all_kept(&self.pool, None).await {
            // To make figures anew is what helps then.
            tracing::warn!(%error, "what was counted is not in the roll-ups yet");
        }
        self.read("rollup_days", async move |tx| rollups::days(tx).await)
            .await
    }

    async fn rebuild_rollups(&self, day: RollupDay) -> StoreResult<Rebuilt> {
        self.write("rebuild_rollups", async move |tx| {
            rollups::rebuild(tx, day).await
        })
        .await
    }
}
