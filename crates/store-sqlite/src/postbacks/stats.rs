//! Postback statistics.

use crate::Failure;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use tributary_domain::app::App;
use tributary_store::records::{PostbackStatsRow, StatsSql};
use tributary_store::{PostbackReportQuery, PostbackStats};

fn stats_row(row: &Row<'_>) -> rusqlite::Result<PostbackStatsRow> {
    Ok(PostbackStatsRow {
        period: row.get(0)?,
        protocol: row.get(1)?,
        ad_network_id: row.get(2)?,
        source_identifier: row.get(3)?,
        campaign_id: row.get(4)?,
        sequence_index: row.get(5)?,
        fine_value: row.get(6)?,
        coarse_value: row.get(7)?,
        figures: [
            row.get(8)?,
            row.get(9)?,
            row.get(10)?,
            row.get(11)?,
            row.get(12)?,
        ],
        withheld: row.get(13)?,
    })
}

pub(super) fn find(
    connection: &Connection,
    app: &App,
    question: &PostbackReportQuery,
) -> Result<Vec<PostbackStats>, Failure> {
    let StatsSql { select, group_by } = StatsSql::of(&question.group_by);
    let [always, now] = StatsSql::counting(app.skan_test_signals);
    let periods: Vec<String> = question
        .periods
        .iter()
        .map(|(from, until)| format!("[{},{}]", from.as_millis(), until.as_millis()))
        .collect();
    let mut values = vec![
        Value::Text(format!("[{}]", periods.join(","))),
        Value::Blob(app.id.as_bytes().to_vec()),
    ];
    let mut further = String::new();
    if let Some(network) = &question.ad_network_id {
        further.push_str(" and ad_network_id = ?");
        values.push(Value::Text(network.clone()));
    }
    if let Some(protocol) = question.protocol {
        further.push_str(" and protocol = ?");
        values.push(Value::Text(protocol.as_str().to_owned()));
    }
    values.push(Value::Integer(i64::from(question.rows_max)));
    let sql = format!(
        "with periods (n, begins, ends) as (
             select key, json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each(?))
         select {select} from periods cross join postback_counts
         where app_id = ? and bucket >= periods.begins and bucket < periods.ends
           and counting in ('{always}', '{now}'){further}
         group by {group_by} order by {group_by} limit ?"
    );
    let rows: Vec<PostbackStatsRow> = connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), stats_row)?
        .collect::<Result<_, _>>()?;
    Ok(rows
        .into_iter()
        .map(|row| row.read(app.id))
        .collect::<Result<_, _>>()?)
}
