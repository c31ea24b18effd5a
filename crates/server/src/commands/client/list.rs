//! Lists: page after page, as a table or as one JSON object per line.

use super::connection::ApiConnection;
use super::progress::ClientProgress;
use super::table::{Table, TableColumn};
use super::{note, write_out};
use crate::cli::ListOptions;
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{self, IsTerminal as _};

/// Most rows of a page that the API returns.
const PAGE_ROWS_MAX: u64 = 500;

/// A list that is requested.
pub(super) struct ListRequest {
    pub(super) path: Vec<String>,
    pub(super) filters: Vec<(&'static str, String)>,
    pub(super) columns: Vec<TableColumn>,
}

/// A page. Rows keep the server's text, so that no digit of an amount changes.
#[derive(Deserialize)]
struct ListPage<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    meta: ListPageMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListPageMeta {
    #[serde(default)]
    cursor: Option<String>,
    has_more: bool,
}

/// Prints a list.
pub(super) async fn print(
    connection: &ApiConnection,
    request: ListRequest,
    options: ListOptions,
) -> anyhow::Result<()> {
    let ListRequest {
        path,
        filters,
        columns,
    } = request;
    let mut table = (!options.json).then(|| Table::new(columns));
    // Rows on a terminal are progress enough.
    let mut progress = ClientProgress::start(!io::stdout().is_terminal());
    let (mut printed, mut cursor) = (0_u64, None);
    loop {
        let left = if options.all {
            PAGE_ROWS_MAX
        } else {
            options.limit.saturating_sub(printed)
        };
        let body = read_page(connection, &path, &filters, left, cursor).await?;
        let page = parse_page(&body)?;
        let text = match &mut table {
            Some(table) => table.rows(&page.data)?,
            None => lines(&page.data),
        };
        progress.clear();
        if write_out(text.as_bytes())?.is_break() {
            return Ok(());
        }
        printed += page.data.len() as u64;
        let is_full = !options.all && printed >= options.limit;
        // A page may be empty although more follow, if the server searched enough rows for one page.
        cursor = page.meta.cursor.filter(|_| page.meta.has_more);
        if cursor.is_none() || is_full {
            break;
        }
        progress.show(&format!("{printed} rows"));
    }
    if printed == 0 {
        note("there are no rows");
    } else if cursor.is_some() {
        note(&format!(
            "{printed} rows; there are more: use --limit or --all"
        ));
    }
    Ok(())
}

/// Returns the ids of the first rows.
pub(super) async fn first_ids(
    connection: &ApiConnection,
    resource: &str,
    rows: u64,
) -> anyhow::Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Identified {
        id: String,
    }
    let body = read_page(connection, &[resource.to_owned()], &[], rows, None).await?;
    let rows = parse_page(&body)?.data.into_iter();
    let ids = rows.map(|row| serde_json::from_str::<Identified>(row.get()).map(|row| row.id));
    ids.collect::<Result<_, _>>()
        .context("the server returned a row without an id")
}

async fn read_page(
    connection: &ApiConnection,
    path: &[String],
    filters: &[(&'static str, String)],
    rows: u64,
    cursor: Option<String>,
) -> anyhow::Result<Vec<u8>> {
    let mut parameters = filters.to_vec();
    parameters.push(("limit", rows.min(PAGE_ROWS_MAX).to_string()));
    parameters.extend(cursor.map(|cursor| ("cursor", cursor)));
    Ok(connection.read(path, &parameters).await?)
}

fn parse_page(body: &[u8]) -> anyhow::Result<ListPage<'_>> {
    serde_json::from_slice(body).context("the answer is not a list of the API; check --server")
}

fn lines(rows: &[&RawValue]) -> String {
    let mut lines = String::new();
    for row in rows {
        lines.push_str(row.get());
        lines.push('\n');
    }
    lines
}
