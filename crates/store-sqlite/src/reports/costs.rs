//! Ad costs.

use crate::Failure;
use crate::rows::{page_start, read_row};
use crate::tables::SqliteTables;
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use tributary_domain::report::CostSum;
use tributary_domain::report::cost::{CostFilter, CostKey, StoredCost};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::CostTable;
use tributary_store::records::{Columns, CostRow};

const COST_COLUMNS: &str = CostRow::COLUMNS;

impl CostTable for SqliteTables<'_> {
    async fn remove_costs(&self, app: AppId, costs: &[CostKey]) -> Result<(), Failure> {
        let mut remove = self
            .0
            .prepare_cached("delete from costs where app_id = ?1 and cost_id = ?2")?;
        for cost in costs {
            remove.execute((app.as_bytes(), cost.as_bytes()))?;
        }
        Ok(())
    }

    async fn write_costs(
        &self,
        app: AppId,
        costs: &[StoredCost],
        at: Timestamp,
    ) -> Result<(), Failure> {
        let sql = format!(
            "insert into costs (app_id, {COST_COLUMNS}, updated_at)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             on conflict (app_id, cost_id) do update
             set amount_micros = excluded.amount_micros, currency = excluded.currency,
                 usd_micros = excluded.usd_micros, rate_day = excluded.rate_day,
                 updated_at = excluded.updated_at"
        );
        let mut write = self.0.prepare_cached(&sql)?;
        for cost in costs {
            let row = CostRow::write(cost);
            write.execute(params![
                app.as_bytes(),
                row.cost_id,
                row.day,
                row.network,
                row.campaign_id,
                row.amount_micros,
                row.currency,
                row.usd_micros,
                row.rate_day,
                row.source,
                at.as_millis()
            ])?;
        }
        Ok(())
    }
}

pub(super) fn find_costs(
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
        .query_map(params_from_iter(values), read_row::<CostRow>)?
        .collect::<Result<_, _>>()?;
    let imported = imported_days(connection, app, &rows)?;
    let costs = CostRow::read_page(rows, &imported)?;
    Ok(Page::from_rows(costs, page.limit))
}

/// Finds the days and networks with imported costs among the days of these rows.
fn imported_days(
    connection: &Connection,
    app: AppId,
    rows: &[CostRow],
) -> Result<Vec<(i32, String)>, Failure> {
    let days = rows.iter().map(|row| row.day);
    let Some((first, last)) = days.clone().min().zip(days.max()) else {
        return Ok(Vec::new());
    };
    let first = CostKey::first_of(Day::from_days(first));
    let last = CostKey::first_of(Day::from_days(last).following());
    let found = connection
        .prepare_cached(
            "select distinct day, network from costs
             where app_id = ?1 and cost_id >= ?2 and cost_id < ?3 and source = 'imported'",
        )?
        .query_map(
            params![app.as_bytes(), first.as_bytes(), last.as_bytes()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect::<Result<_, _>>()?;
    Ok(found)
}

pub(super) fn find_cost_sums(
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
            read_row::<CostRow>,
        )?
        .collect::<Result<_, _>>()?;
    Ok(CostRow::counted(rows)?)
}
