//! The Explore report: its query, parsed from the URL, and its result.

use super::columns::{COLUMNS, MetricColumn, SORT_DEFAULT};
use crate::access::PageContext;
use crate::failure::Failure;
use crate::pages::app::overview::link_names;
use crate::pages::app::spend;
use crate::query::UrlQuery;
use crate::range::PageDateRange;
use crate::state::DashboardHandles;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::range::Span;
use tributary_domain::report::{
    Dimension, GroupBy, ReportFigures, ReportQuery, ReportRowKey, Rollup, Spend, TimeUnit,
    report_rows,
};
use tributary_domain::vocabulary::day::Day;

/// Maximum rows in the report.
const ROWS_MAX: u32 = 5_000;

/// Header for a sortable column.
pub(super) struct SortHeader {
    pub(super) label: &'static str,
    pub(super) query: String,
    pub(super) sorted: &'static str,
}

/// A report with its rows.
pub(super) struct ExploreReport {
    group: GroupBy,
    spans: Vec<Span>,
    pub(super) rows: Vec<(ReportRowKey, ReportFigures)>,
    names: BTreeMap<String, String>,
    has_costs: bool,
    sort: Option<usize>,
    descending: bool,
    /// First day on which the figures are complete, if they lack earlier ones.
    pub(super) complete_from: Option<Day>,
}

/// Reads the grouping from `groupBy` and `then`. As in the REST API, `groupBy` may also be a
/// comma-separated list.
fn group_from_query(query: &UrlQuery) -> GroupBy {
    let first = query.get("groupBy").unwrap_or("day");
    let names = match query.get("then") {
        Some(then) => format!("{first},{then}"),
        None => first.to_owned(),
    };
    GroupBy::parse(&names).unwrap_or_else(|_| GroupBy {
        time: Some(TimeUnit::Day),
        dimensions: Vec::new(),
    })
}

/// Loads the report, or returns a message if the combination is not available.
pub(super) async fn load_report(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    range: &PageDateRange,
) -> Result<Result<ExploreReport, String>, Failure> {
    let query = &context.query;
    let group = group_from_query(query);
    let filter = |one: &Dimension| Some((*one, query.get(one.as_str())?.to_owned()));
    let filters: Vec<(Dimension, String)> = Dimension::ALL.iter().filter_map(filter).collect();
    let spans = range.spans(group.time);
    let question = ReportQuery {
        periods: spans.iter().map(|span| span.period).collect(),
        group_by: group.dimensions.clone(),
        filters,
        rows_max: ROWS_MAX,
    };
    if spans.len() > ROWS_MAX as usize {
        return Ok(Err("Too many hours. Choose a shorter period.".to_owned()));
    }
    if Rollup::for_dimensions(&question.dimensions()).is_none() {
        let message = "These dimensions cannot be combined. Combine network, link, campaign, ad \
                       set and ad with each other, network and campaign with country and platform, \
                       or event with source.";
        return Ok(Err(message.to_owned()));
    }
    let (app, caller) = (context.app()?.id, &context.authorized);
    let complete_from = handles.store.complete_from(caller, app, &question).await?;
    let stats = handles.store.stats(caller, app, question.clone()).await?;
    let names = link_names(
        handles,
        caller,
        app,
        stats.iter().flat_map(|row| &row.values),
    )
    .await?;
    let has_costs = Spend::is_available_for(caller.environment(), group.time, &question);
    let spend = if has_costs {
        Some(spend(handles, caller, app, range).await?)
    } else {
        None
    };
    let rows = report_rows(stats, &question, &spans, spend.as_ref());
    let sort = query.get("sort");
    let sort = COLUMNS.iter().position(|column| Some(column.word) == sort);
    let mut found = ExploreReport {
        group,
        spans,
        rows: rows.into_iter().collect(),
        names,
        has_costs,
        sort,
        descending: query.get("order") != Some("asc"),
        complete_from: complete_from.map(Day::first_from),
    };
    found.sort_rows();
    Ok(Ok(found))
}

impl ExploreReport {
    /// Sorts the rows. A report grouped only by time stays in time order unless the user selects a
    /// sort column.
    fn sort_rows(&mut self) {
        if self.sort.is_none() && self.group.dimensions.is_empty() {
            return;
        }
        let of = COLUMNS[self.sort.unwrap_or(SORT_DEFAULT)].of;
        self.rows.sort_by_key(|(_, row)| Reverse(of(row)));
        if !self.descending {
            self.rows.reverse();
        }
    }

    /// Returns the names of the grouping columns.
    pub(super) fn heads(&self) -> Vec<String> {
        let time = self.group.time.map(|unit| unit.as_str().to_owned());
        let others = self.group.dimensions.iter();
        let others = others.map(|one| one.as_str().to_owned());
        time.into_iter().chain(others).collect()
    }

    pub(super) fn columns(&self, query: &UrlQuery) -> Vec<SortHeader> {
        let head = |(index, column): (usize, &MetricColumn)| {
            let is_sorted = Some(index) == self.sort;
            let order = if is_sorted && self.descending {
                "asc"
            } else {
                "desc"
            };
            SortHeader {
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

    /// Returns a row's grouping values, each with the query for its drill-down link.
    pub(super) fn values(
        &self,
        (span, values): &ReportRowKey,
        query: &UrlQuery,
    ) -> Vec<(String, Option<String>)> {
        let time = self.group.time.map(|_| {
            let label = self.spans.get(*span).map(|span| span.label.clone());
            (label.unwrap_or_default(), None)
        });
        let value = |(one, value): (&Dimension, &String)| {
            if value.is_empty() {
                return ("none".to_owned(), None);
            }
            let name = self.names.get(value).unwrap_or(value);
            let changes = [
                ("groupBy", Some("day")),
                ("then", None),
                ("sort", None),
                ("order", None),
                (one.as_str(), Some(value.as_str())),
            ];
            (name.clone(), Some(query.with(&changes)))
        };
        let others = self.group.dimensions.iter().zip(values).map(value);
        time.into_iter().chain(others).collect()
    }

    pub(super) fn total(&self) -> ReportFigures {
        let mut total = if self.has_costs {
            ReportFigures::zero()
        } else {
            ReportFigures::default()
        };
        for (_, row) in &self.rows {
            total.add(row);
        }
        total
    }
}
