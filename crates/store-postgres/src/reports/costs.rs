//! Ad costs.

use crate::Failure;
use crate::params::column;
use crate::rows::{Conditions, read_row, uuid};
use crate::tx::Tx;
use tributary_domain::report::cost::{CostFilter, CostKey, StoredCost};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::CostTable;
use tributary_store::records::{Columns, CostRow};

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
             from unnest($3, $4, $5, $6, $7, $8, $9, $10) as new ({COST_COLUMNS})
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
    let costs: Vec<StoredCost> = found
        .iter()
        .map(|row| Ok(read_row::<CostRow>(row)?.read()?))
        .collect::<Result<_, Failure>>()?;
    Ok(Page::from_rows(costs, page.limit))
}
