//! `GET /apps/{app}/explore` — metrics by any dimensions, with sorting, drill-down and CSV export.

mod columns;
mod csv;
mod report;

pub(crate) use csv::csv;

use crate::access::ReportContext;
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::network_label::NetworkLabel;
use crate::pages::app::group_label;
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
use tributary_domain::vocabulary::day::Day;

/// Maximum rows on the page. The CSV file has all rows.
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
    filters: Vec<ActiveFilter>,
    fault: Option<String>,
    left_out: usize,
    /// First day on which the figures are complete, if they lack earlier ones.
    complete_from: Option<Day>,
}

impl ExplorePage {
    fn presets(&self) -> [(&'static str, &'static str, i32); 4] {
        PRESETS
    }

    fn with_range(&self, word: &str) -> String {
        self.query
            .with(&[("range", Some(word)), ("from", None), ("to", None)])
    }

    /// Returns the query's sort parameters.
    fn order(&self) -> Vec<(&'static str, &str)> {
        let parameter = |name| Some((name, self.query.get(name)?));
        ["sort", "order"]
            .into_iter()
            .filter_map(parameter)
            .collect()
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
        times
            .chain(dimensions)
            .map(|word| (word, group_label(word)))
            .collect()
    }

    fn groups_or_none(&self) -> Vec<(&'static str, &'static str)> {
        std::iter::once(("", "None")).chain(self.groups()).collect()
    }
}

struct Row {
    values: Vec<GroupValue>,
    figures: Vec<String>,
}

/// One of a row's grouping values.
struct GroupValue {
    text: String,
    /// Identifier shown beside a network's name; otherwise empty.
    id: &'static str,
    /// Query for the drill-down link.
    deeper: Option<String>,
}

impl GroupValue {
    /// Replaces a network's identifier with its name.
    fn new(head: &str, (text, deeper): (String, Option<String>)) -> Self {
        match network_label(head, &text) {
            Some(label) => Self {
                text: label.name.to_owned(),
                id: label.id,
                deeper,
            },
            None => Self {
                text,
                id: "",
                deeper,
            },
        }
    }
}

fn network_label(dimension: &str, value: &str) -> Option<NetworkLabel> {
    if dimension == Dimension::Network.as_str() {
        NetworkLabel::parse(value)
    } else {
        None
    }
}

/// A filter on the report.
struct ActiveFilter {
    name: &'static str,
    value: String,
    /// Name and value for people.
    text: String,
    /// Query without this filter.
    without: String,
}

/// Returns the filters in the query, even if they cannot be combined, so that the user can remove
/// them.
fn filters(query: &UrlQuery) -> Vec<ActiveFilter> {
    let filter = |one: &Dimension| {
        let name = one.as_str();
        let value = query.get(name)?;
        let text = match network_label(name, value) {
            Some(label) if label.id.is_empty() => label.name.to_owned(),
            Some(label) => format!("{} ({})", label.name, label.id),
            None => value.to_owned(),
        };
        Some(ActiveFilter {
            name,
            value: value.to_owned(),
            text: format!("{}: {text}", group_label(name)),
            without: query.with(&[(name, None)]),
        })
    };
    Dimension::ALL.iter().filter_map(filter).collect()
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let zone = &context.app()?.timezone;
    let range = PageDateRange::of(&context.query, handles.runtime.now(), zone);
    let found = load_report(&handles, &context, &range).await?;
    let query = &context.query;
    let mut page = ExplorePage {
        shell: context.shell(Section::Explore),
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
        complete_from: None,
    };
    match found {
        Err(message) => page.fault = Some(message),
        Ok(found) => {
            let figures =
                |row: &ReportFigures| COLUMNS.iter().map(|column| column.write(row)).collect();
            let heads = found.heads();
            let labels = heads.iter().map(|head| group_label(head).to_owned());
            page.heads = labels.collect();
            page.columns = found.columns(query);
            page.complete_from = found.complete_from;
            page.totals = figures(&found.total());
            page.left_out = found.rows.len().saturating_sub(ROWS_SHOWN_MAX);
            let row = |(key, row): &(ReportRowKey, ReportFigures)| {
                let values = heads.iter().zip(found.values(key, query));
                Row {
                    values: values
                        .map(|(head, value)| GroupValue::new(head, value))
                        .collect(),
                    figures: figures(row),
                }
            };
            page.rows = found.rows.iter().take(ROWS_SHOWN_MAX).map(row).collect();
        }
    }
    Ok(context.page(&page))
}
