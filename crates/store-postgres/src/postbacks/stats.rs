//! Postback statistics.

use crate::Failure;
use crate::params::{Param, column};
use crate::rows::uuid;
use crate::tx::Tx;
use tokio_postgres::Row;
use tributary_domain::app::App;
use tributary_domain::skan::postback::Protocol;
use tributary_store::records::{PostbackStatsRow, StatsSql};
use tributary_store::{PostbackReportQuery, PostbackStats};

fn stats_row(row: &Row) -> Result<PostbackStatsRow, tokio_postgres::Error> {
    Ok(PostbackStatsRow {
        period: row.try_get(0)?,
        protocol: row.try_get(1)?,
        ad_network_id: row.try_get(2)?,
        source_identifier: row.try_get(3)?,
        campaign_id: row.try_get(4)?,
        sequence_index: row.try_get(5)?,
        fine_value: row.try_get(6)?,
        coarse_value: row.try_get(7)?,
        figures: [
            row.try_get(8)?,
            row.try_get(9)?,
            row.try_get(10)?,
            row.try_get(11)?,
            row.try_get(12)?,
        ],
        withheld: row.try_get(13)?,
    })
}

pub(super) async fn find(
    tx: &Tx,
    app: &App,
    question: &PostbackReportQuery,
) -> Result<Vec<PostbackStats>, Failure> {
    let StatsSql { select, group_by } = StatsSql::of(&question.group_by);
    let counting = StatsSql::counting(app.skan_test_signals).to_vec();
    let numbers: Vec<i64> = (0_i64..).take(question.periods.len()).collect();
    let begins = column(&question.periods, |(from, _)| from.as_millis());
    let ends = column(&question.periods, |(_, until)| until.as_millis());
    let (app_id, rows_max) = (uuid(app.id.as_bytes()), i64::from(question.rows_max));
    let protocol = question.protocol.map(Protocol::as_str);
    let mut params: Vec<&dyn Param> = vec![&numbers, &begins, &ends, &app_id, &counting, &rows_max];
    let mut further = String::new();
    if let Some(network) = &question.ad_network_id {
        params.push(network);
        further = format!("{further} and ad_network_id = ${}", params.len());
    }
    if let Some(protocol) = &protocol {
        params.push(protocol);
        further = format!("{further} and protocol = ${}", params.len());
    }
    let sql = format!(
        "select {select} from unnest($1, $2, $3) as periods (n, begins, ends)
         join postback_counts on bucket >= periods.begins and bucket < periods.ends
         where app_id = $4 and counting = any($5){further}
         group by {group_by} order by {group_by} limit $6"
    );
    let rows = tx.query(&sql, &params).await?;
    rows.iter()
        .map(|row| Ok(stats_row(row)?.read(app.id)?))
        .collect()
}
