//! Postbacks, as the API and the dashboard list them.

use crate::Failure;
use crate::rows::{page_start, read_row};
use crate::skan;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::fmt::Write as _;
use tributary_domain::app::App;
use tributary_domain::vocabulary::id::PostbackId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, PostbackReadRow, StatsSql};
use tributary_store::{PostbackFilter, PostbackPage};

/// Finds a page of an app's postbacks. Callers with a test key get an empty page, because postbacks
/// are live data.
pub(super) fn find_page(
    connection: &Connection,
    app: &App,
    filter: &PostbackFilter,
    page: PageRequest,
    is_live: bool,
) -> Result<PostbackPage, Failure> {
    let mut rows = Vec::new();
    if is_live {
        let (conditions, mut values) = conditions(app, filter, page_start(page.before));
        values.push(Value::Integer(page.limit.rows()));
        let sql = format!(
            "select {} from postbacks where {conditions} order by postback_id desc limit ?",
            PostbackReadRow::COLUMNS
        );
        rows = connection
            .prepare_cached(&sql)?
            .query_map(params_from_iter(values), read_row::<PostbackReadRow>)?
            .map(|row| Ok(row?.read()?))
            .collect::<Result<_, Failure>>()?;
    }
    Ok(PostbackPage {
        page: Page::from_rows(rows, page.limit),
        versions: skan::find_versions(connection, app)?,
        accept_test_signals: app.skan_test_signals,
    })
}

fn conditions(app: &App, filter: &PostbackFilter, before: Vec<u8>) -> (String, Vec<Value>) {
    let mut sql = "app_id = ? and postback_id < ?".to_owned();
    let mut values = vec![Value::Blob(app.id.as_bytes().to_vec()), Value::Blob(before)];
    let mut and = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            sql.push_str(" and ");
            sql.push_str(condition);
            values.push(value);
        }
    };
    let text = |text: &str| Value::Text(text.to_owned());
    let first_at = |at: Timestamp| Value::Blob(PostbackId::first_at(at).as_bytes().to_vec());
    and("postback_id >= ?", filter.from.map(first_at));
    and("postback_id < ?", filter.until.map(first_at));
    and(
        "ad_network_id = ?",
        filter.ad_network_id.as_deref().map(text),
    );
    and(
        "protocol = ?",
        filter.protocol.map(|one| text(one.as_str())),
    );
    and(
        "signature = ?",
        filter.signature.map(|one| text(one.as_str())),
    );
    and(
        "source_identifier like '%' || ?",
        filter.source_identifier.as_deref().map(text),
    );
    and(
        "sequence_index = ?",
        filter
            .sequence_index
            .map(|index| Value::Integer(index.into())),
    );
    and(
        "did_win = ?",
        filter.did_win.map(|won| Value::Integer(won.into())),
    );
    and(
        "conversion_type = ?",
        filter.conversion_type.map(|one| text(one.as_str())),
    );
    if let Some(counted) = filter.counted {
        let [always, now] = StatsSql::counting(app.skan_test_signals);
        let not = if counted { "" } else { " not" };
        // Writing to a String cannot fail.
        let _infallible = write!(sql, " and counting{not} in ('{always}', '{now}')");
    }
    (sql, values)
}
