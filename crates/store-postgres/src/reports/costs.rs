//! What ads cost.

use crate::Failure;
use crate::params::column;
use crate::rows::{Conditions, read_row, uuid};
use crate::tx::Tx;
use tributary_domain::audit::Origin;
use tributary_domain::report::cost::{CostFilter, CostKey, StoredCost};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_store::records::{Columns, CostRow};

pub(super) const COST_COLUMNS: &str = CostRow::COLUMNS;

pub(super) async fn store_costs(
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
