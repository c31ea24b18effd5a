//! `GET /apps/{app}/explore` — figures by any dimension: sorted, drilled into, shared by their address, taken as CSV.

use super::overview::link_names;
use crate::access::Reader;
use crate::failure::Failure;
use crate::filled::Filled;
use crate::query::Query;
use crate::range::{PRESETS, Range};
use crate::shell::{Section, Shell};
use crate::state::Handles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::{
    Dimension, Figures, GroupBy, Rollup, StatsQuestion, StatsRow, TimeUnit,
};
use tributary_domain::vocabulary::money::Amount;

/// Rows of one report.
const ROWS_MAX: u32 = 5_000;
/// Rows that a page shows; the file has them all.
const ROWS_SHOWN_MAX: usize = 500;

#[derive(Template)]
#[template(path = "explore.html")]
struct ExplorePage {
    shell: Shell,
    range: Range,
    query: Query,
    form: Filled,
    heads: Vec<String>,
    columns: Vec<Head>,
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

    fn csv_query(&self) -> String {
        self.query.with(&[])
    }

    const fn has_more_rows(&self) -> bool {
        self.left_out > 0
    }

    fn groups(&self) -> Vec<(&'static str, &'static str)> {
        let times = [TimeUnit::Day, TimeUnit::Week, TimeUnit::Month].map(TimeUnit::as_str);
        let dimensions = Dimension::ALL.iter().map(|one| one.as_str());
        times
            .into_iter()
            .chain(dimensions)
            .map(|word| (word, word))
            .collect()
    }

    fn groups_or_none(&self) -> Vec<(&'static str, &'static str)> {
        std::iter::once(("", "nothing else"))
            .chain(self.groups())
            .collect()
    }
}

/// A column that can be sorted by.
struct Head {
    label: &'static str,
    query: String,
    sorted: &'static str,
}

struct Row {
    /// Words, and where a click on them leads.
    values: Vec<(String, Option<String>)>,
    figures: Vec<String>,
}

struct Column {
    word: &'static str,
    label: &'static str,
    is_money: bool,
    of: fn(&Figures) -> i64,
}

const fn column(word: &'static str, label: &'static str, of: fn(&Figures) -> i64) -> Column {
    Column {
        word,
        label,
        is_money: false,
        of,
    }
}

const COLUMNS: [Column; 12] = [
    column("clicks", "Clicks", |one| one.clicks),
    column("installs", "Installs", |one| one.installs),
    column("organicInstalls", "Organic", |one| one.organic_installs),
    column("signUps", "Sign-ups", |one| one.sign_ups),
    column("trials", "Trials", |one| one.trials),
    column("subscriptions", "Subscriptions", |one| one.subscriptions),
    column("purchases", "Purchases", |one| one.purchases),
    column("renewals", "Renewals", |one| one.renewals),
    column("refunds", "Refunds", |one| one.refunds),
    column("events", "Events", |one| one.events),
    column("payingDevices", "New payers", |one| one.paying_devices),
    Column {
        word: "netRevenue",
        label: "Net revenue",
        is_money: true,
        of: |one| one.net_micros(),
    },
];

impl Column {
    fn write(&self, figures: &Figures) -> String {
        let value = (self.of)(figures);
        if self.is_money {
            text::usd(Amount::from_micros(value))
        } else {
            text::count(value)
        }
    }
}

/// What is asked, with what was found.
struct Found {
    group: GroupBy,
    filters: Vec<(Dimension, String)>,
    labels: Vec<String>,
    rows: Vec<StatsRow>,
    names: BTreeMap<String, String>,
    sort: usize,
    descending: bool,
}

/// The group of two fields, or of one with commas between, as the REST interface has it.
fn group_of(query: &Query) -> GroupBy {
    let first = query.get("groupBy").unwrap_or("day");
    let words = match query.get("then") {
        Some(then) => format!("{first},{then}"),
        None => first.to_owned(),
    };
    GroupBy::parse(&words).unwrap_or_else(|_| GroupBy {
        time: Some(TimeUnit::Day),
        dimensions: Vec::new(),
    })
}

async fn find(
    handles: &Handles,
    reader: &Reader<AnalyticsRead>,
    range: &Range,
) -> Result<Result<Found, String>, Failure> {
    let query = &reader.query;
    let group = group_of(query);
    let filter = |one: &Dimension| Some((*one, query.get(one.as_str())?.to_owned()));
    let filters: Vec<(Dimension, String)> = Dimension::ALL.iter().filter_map(filter).collect();
    let (labels, periods) = range.stretches(group.time);
    let question = StatsQuestion {
        periods,
        by: group.dimensions.clone(),
        filters: filters.clone(),
        rows_max: ROWS_MAX,
    };
    if Rollup::answering(&question.dimensions()).is_none() {
        let words = "These are not counted together. Network, link, campaign, ad set and ad go together; event and \
                     source; country and platform.";
        return Ok(Err(words.to_owned()));
    }
    let app = reader.app()?.id;
    let mut rows = handles
        .store
        .stats(&reader.authorized, app, question)
        .await?;
    let names = link_names(handles, &reader.authorized, app, &rows).await?;
    let sort = query.get("sort");
    let sort = COLUMNS.iter().position(|column| Some(column.word) == sort);
    let descending = query.get("order") != Some("asc");
    match sort {
        None if group.dimensions.is_empty() => rows.sort_by_key(|row| row.period),
        sort => {
            let of = COLUMNS[sort.unwrap_or(1)].of;
            rows.sort_by_key(|row| Reverse(of(&row.figures)));
            if !descending {
                rows.reverse();
            }
        }
    }
    Ok(Ok(Found {
        group,
        filters,
        labels,
        rows,
        names,
        sort: sort.unwrap_or(usize::MAX),
        descending,
    }))
}

impl Found {
    fn heads(&self) -> Vec<String> {
        let time = self.group.time.map(|unit| unit.as_str().to_owned());
        let others = self
            .group
            .dimensions
            .iter()
            .map(|one| one.as_str().to_owned());
        time.into_iter().chain(others).collect()
    }

    fn columns(&self, query: &Query) -> Vec<Head> {
        let head = |(index, column): (usize, &Column)| {
            let is_sorted = index == self.sort;
            let order = if is_sorted && self.descending {
                "asc"
            } else {
                "desc"
            };
            Head {
                label: column.label,
                query: query.with(&[("sort", Some(column.word)), ("order", Some(order))]),
                sorted: match (is_sorted, self.descending) {
                    (false, _) => "none",
                    (true, true) => "descending",
                    (true, false) => "ascending",
                },
            }
        };
        COLUMNS.iter().enumerate().map(head).collect()
    }

    fn values(&self, row: &StatsRow, query: &Query) -> Vec<(String, Option<String>)> {
        let time = self.group.time.map(|_| {
            let label = self.labels.get(row.period).cloned();
            (label.unwrap_or_default(), None)
        });
        let others = self
            .group
            .dimensions
            .iter()
            .zip(&row.values)
            .map(|(one, value)| {
                let name = self.names.get(value).cloned();
                let words = match value.as_str() {
                    "" => "none".to_owned(),
                    other => name.unwrap_or_else(|| other.to_owned()),
                };
                let word = one.as_str();
                let deeper = (!value.is_empty()).then(|| {
                    let changes = [
                        ("groupBy", Some("day")),
                        ("then", None),
                        ("sort", None),
                        ("order", None),
                        (word, Some(value.as_str())),
                    ];
                    query.with(&changes)
                });
                (words, deeper)
            });
        time.into_iter().chain(others).collect()
    }

    fn total(&self) -> Figures {
        let mut total = Figures::default();
        for row in &self.rows {
            total.add(&row.figures, 1);
        }
        total
    }
}

/// The page.
pub(crate) async fn show(
    State(handles): State<Handles>,
    reader: Reader<AnalyticsRead>,
) -> Result<Response, Failure> {
    let zone = &reader.app()?.timezone;
    let range = Range::of(&reader.query, handles.source.now(), zone);
    let found = find(&handles, &reader, &range).await?;
    let query = &reader.query;
    let mut page = ExplorePage {
        shell: reader.shell(Section::Explore),
        form: Filled::default()
            .with("groupBy", query.get("groupBy").unwrap_or("day"))
            .with("then", query.get("then").unwrap_or("")),
        query: query.clone(),
        range,
        heads: Vec::new(),
        columns: Vec::new(),
        rows: Vec::new(),
        totals: Vec::new(),
        filters: Vec::new(),
        fault: None,
        left_out: 0,
    };
    match found {
        Err(words) => page.fault = Some(words),
        Ok(found) => {
            let total = found.total();
            page.heads = found.heads();
            page.columns = found.columns(query);
            page.totals = COLUMNS.iter().map(|column| column.write(&total)).collect();
            page.left_out = found.rows.len().saturating_sub(ROWS_SHOWN_MAX);
            let row = |row: &StatsRow| Row {
                values: found.values(row, query),
                figures: COLUMNS
                    .iter()
                    .map(|column| column.write(&row.figures))
                    .collect(),
            };
            page.rows = found.rows.iter().take(ROWS_SHOWN_MAX).map(row).collect();
            let filter = |(one, value): &(Dimension, String)| {
                let without = query.with(&[(one.as_str(), None)]);
                (one.as_str(), value.clone(), without)
            };
            page.filters = found.filters.iter().map(filter).collect();
        }
    }
    Ok(reader.page(&page))
}

/// A field of a CSV file. One that a spreadsheet would take for a formula is kept from being one.
fn field(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        "'"
    } else {
        ""
    };
    if guard.is_empty() && !text.contains(['"', ',', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

/// `GET /apps/{app}/explore.csv` — the same, every row of it.
pub(crate) async fn csv(
    State(handles): State<Handles>,
    reader: Reader<AnalyticsRead>,
) -> Result<Response, Failure> {
    let zone = &reader.app()?.timezone;
    let range = Range::of(&reader.query, handles.source.now(), zone);
    let found = find(&handles, &reader, &range)
        .await?
        .map_err(|_| Failure::NotFound)?;
    let mut heads = found.heads();
    heads.extend(COLUMNS.iter().map(|column| column.word.to_owned()));
    let mut file = heads.join(",");
    for row in &found.rows {
        let values = found.values(row, &reader.query);
        let values = values.iter().map(|(words, _)| field(words));
        let figures = COLUMNS.iter().map(|column| {
            let value = (column.of)(&row.figures);
            if column.is_money {
                Amount::from_micros(value).to_string()
            } else {
                value.to_string()
            }
        });
        let line: Vec<String> = values.chain(figures).collect();
        // Writing to a String cannot fail.
        let _infallible = write!(file, "\r\n{}", line.join(","));
    }
    file.push_str("\r\n");
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"explore.csv\"",
        ),
        (header::CACHE_CONTROL, "no-store"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)));
    Ok((headers, file).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("Spring", "Spring")]
    #[case("a,b", "\"a,b\"")]
    #[case("say \"hi\"", "\"say \"\"hi\"\"\"")]
    #[case("=1+1", "\"'=1+1\"")]
    #[case("@x", "\"'@x\"")]
    fn fields(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(field(text), expected);
    }
}
