//! `GET /apps/{app}/explore` — figures by any dimension: sorted, drilled into, shared by their address, taken as CSV.

mod columns;
mod csv;
mod report;

pub(crate) use csv::csv;

use crate::access::PageContext;
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::query::UrlQuery;
use crate::range::{PRESETS, PageDateRange};
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use columns::COLUMNS;
use report::{SortHeader, load_report};
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::{Dimension, ReportFigures, ReportRowKey, TimeUnit};

/// Rows that a page shows; the file has them all.
const ROWS_SHOWN_MAX: usize = 500;

#[derive(Template)]
#[template(path = "explore.html")]
struct ExplorePage {
    shell: Shell,
    range: PageDateRange,
    query: UrlQuery,
    form: FormState,
    heads: Vec<String>,
    columns: Vec<SortHeader>,
    rows: Vec<Row>,
    totals: Vec<String>,
    filters: Vec<(&'static str, String, String)>,
    fault: Option<String>,
    left_out: usize,
}

impl ExplorePage {
    fn presets(&self) -> [(&'static str, &'static str, i32); 4] {
        PRESETS
    }

    fn with_range(&self, word: &str) -> String {
        self.query
            .with(&[("range", Some(word)), ("from", None), ("to", None)])
    }

    /// How the rows are sorted, where somebody said it.
    fn order(&self) -> Vec<(&'static str, &str)> {
        let said = |name| Some((name, self.query.get(name)?));
        ["sort", "order"].into_iter().filter_map(said).collect()
    }

    fn csv_query(&self) -> String {
        self.query.with(&[])
    }

    const fn has_more_rows(&self) -> bool {
        self.left_out > 0
    }

    fn groups(&self) -> Vec<(&'static str, &'static str)> {
        let times = [
            TimeUnit::Hour,
            TimeUnit::Day,
            TimeUnit::Week,
            TimeUnit::Month,
        ];
        let times = times.map(TimeUnit::as_str).into_iter();
        let dimensions = Dimension::ALL.iter().map(|one| one.as_str());
        times.chain(dimensions).map(|word| (word, word)).collect()
    }

    fn groups_or_none(&self) -> Vec<(&'static str, &'static str)> {
        std::iter::once(("", "nothing else"))
            .chain(self.groups())
            .collect()
    }
}

struct Row {
    /// Words, and where a click on them leads.
    values: Vec<(String, Option<String>)>,
    figures: Vec<String>,
}

/// What the figures are narrowed by, and the question without it. It stays where it cannot be answered, to be changed.
fn filters(query: &UrlQuery) -> Vec<(&'static str, String, String)> {
    let filter = |one: &Dimension| {
        let value = query.get(one.as_str())?;
        let without = query.with(&[(one.as_str(), None)]);
        Some((one.as_str(), value.to_owned(), without))
    };
    Dimension::ALL.iter().filter_map(filter).collect()
}

/// The page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let zone = &reader.app()?.timezone;
    let range = PageDateRange::of(&reader.query, handles.source.now(), zone);
    let found = load_report(&handles, &reader, &range).await?;
    let query = &reader.query;
    let mut page = ExplorePage {
        shell: reader.shell(Section::Explore),
        form: FormState::default()
            .with("groupBy", query.get("groupBy").unwrap_or("day"))
            .with("then", query.get("then").unwrap_or("")),
        query: query.clone(),
        range,
        heads: Vec::new(),
        columns: Vec::new(),
        rows: Vec::new(),
        totals: Vec::new(),
        filters: filters(query),
        fault: None,
        left_out: 0,
    };
    match found {
        Err(words) => page.fault = Some(words),
        Ok(found) => {
            let figures =
                |row: &ReportFigures| COLUMNS.iter().map(|column| column.write(row)).collect();
            page.heads = found.heads();
            page.columns = found.columns(query);
            page.totals = figures(&found.total());
            page.left_out = found.rows.len().saturating_sub(ROWS_SHOWN_MAX);
            let row = |(place, row): &(ReportRowKey, ReportFigures)| Row {
                values: found.values(place, query),
                figures: figures(row),
            };
            page.rows = found.rows.iter().take(ROWS_SHOWN_MAX).map(row).collect();
        }
    }
    Ok(reader.page(&page))
}
