//! Ad costs.

use crate::Failure;
use crate::params::column;
use crate::rows::{Conditions, read_row, uuid};
use crate::tx::Tx;
use tokio_postgres::Row;
use tributary_domain::report::cost::{CostFilter, CostKey, StoredCost};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::CostTable;
use tributary_store::records::{Columns, CostRow};
use uuid::Uuid;

pub(super) const COST_COLUMNS: &str = CostRow::COLUMNS;

impl CostTable for Tx {
    async fn remove_costs(&self, app: AppId, costs: &[CostKey]) -> Result<(), Failure> {
        let ids = column(costs, |cost| uuid(cost.as_bytes()));
        self.execute(
            "delete from costs where app_id = $1 and cost_id = any($2)",
            &[&uuid(app.as_bytes()), &ids],
        )
        .await?;
        Ok(())
    }

    async fn write_costs(
        &self,
        app: AppId,
        costs: &[StoredCost],
        at: Timestamp,
    ) -> Result<(), Failure> {
        let rows = column(costs, CostRow::write);
        let sql = format!(
            "insert into costs (app_id, {COST_COLUMNS}, updated_at)
             select $1, {COST_COLUMNS}, $2
             from unnest($3, $4, $5, $6, $7, $8, $9, $10, $11) as new ({COST_COLUMNS})
             on conflict (app_id, cost_id) do update
             set amount_micros = excluded.amount_micros, currency = excluded.currency,
                 usd_micros = excluded.usd_micros, rate_day = excluded.rate_day,
                 updated_at = excluded.updated_at"
        );
        self.execute(
            &sql,
            &[
                &uuid(app.as_bytes()),
                &at.as_millis(),
                &column(&rows, |row| uuid(&row.cost_id)),
                &column(&rows, |row| row.day),
                &column(&rows, |row| row.network.as_str()),
                &column(&rows, |row| row.campaign_id.as_str()),
                &column(&rows, |row| row.amount_micros),
                &column(&rows, |row| row.currency.as_str()),
                &column(&rows, |row| row.usd_micros),
                &column(&rows, |row| row.rate_day),
                &column(&rows, |row| row.source.as_str()),
            ],
        )
        .await?;
        Ok(())
    }
}

pub(super) async fn find_costs(
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
    let rows: Vec<CostRow> = found
        .iter()
        .map(read_row::<CostRow>)
        .collect::<Result<_, _>>()?;
    let imported = imported_days(tx, &app, &rows).await?;
    let costs = CostRow::read_page(rows, &imported)?;
    Ok(Page::from_rows(costs, page.limit))
}

/// Finds the days and networks with imported costs among the days of these rows.
async fn imported_days(
    tx: &Tx,
    app: &Uuid,
    rows: &[CostRow],
) -> Result<Vec<(i32, String)>, Failure> {
    let days = rows.iter().map(|row| row.day);
    let Some((first, last)) = days.clone().min().zip(days.max()) else {
        return Ok(Vec::new());
    };
    let first = uuid(CostKey::first_of(Day::from_days(first)).as_bytes());
    let last = uuid(CostKey::first_of(Day::from_days(last).following()).as_bytes());
    let sql = "select distinct day, network from costs
               where app_id = $1 and cost_id >= $2 and cost_id < $3 and source = 'imported'";
    let found = tx.query(sql, &[app, &first, &last]).await?;
    let pair = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
    found.iter().map(pair).collect()
}
