//! The Explore report: its query, parsed from the URL, and its result.

use super::compared::{ComparedRows, compared_rows};
use crate::access::PageContext;
use crate::analysis::{AnalysisBar, Obstacle};
use crate::failure::Failure;
use crate::metric::{METRICS, Metric};
use crate::pages::app::spend;
use crate::query::UrlQuery;
use crate::range::{FROM, PageDateRange, RANGE, TO};
use crate::state::DashboardHandles;
use crate::value_names::ValueNames;
use std::cmp::Reverse;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::range::Span;
use tributary_domain::report::{
    Dimension, GroupBy, ReportFigures, ReportQuery, ReportRowKey, Spend, TimeUnit, report_rows,
};
use tributary_domain::vocabulary::day::Day;

/// Maximum rows in the report, as in the REST API.
const ROWS_MAX: u32 = 50_000;
/// Maximum hours in the report: more than half a year.
const HOURS_MAX: usize = 5_000;
/// Columns if none are chosen. Those that need costs are left out where costs are unknown.
const COLUMNS_DEFAULT: [&str; 8] = [
    "cost",
    "clicks",
    "installs",
    "paidCpi",
    "netRevenue",
    "paidRoas",
    "arpu",
    "payingDevices",
];
/// Columns of a report by event, whose rows lack most other figures.
const EVENT_COLUMNS_DEFAULT: [&str; 3] = ["events", "netRevenue", "payingDevices"];
const SORT_DEFAULT: &str = "installs";
/// Sort column of a report without installs.
const EVENT_SORT_DEFAULT: &str = "events";

/// A report with its rows.
pub(super) struct ExploreReport {
    group: GroupBy,
    spans: Vec<Span>,
    /// Labels of the spans for a file, as in the REST API.
    plain_spans: Vec<String>,
    pub(super) rows: Vec<(ReportRowKey, ReportFigures)>,
    pub(super) columns: Vec<&'static Metric>,
    names: ValueNames,
    filters: Vec<(Dimension, String)>,
    /// Whether the rows are figures of single events or sources.
    pub(super) of_events: bool,
    has_costs: bool,
    /// The compared range; `None` if nothing is compared.
    before: Option<ComparedRows>,
    is_searched: bool,
    pub(super) sort: Option<&'static Metric>,
    pub(super) is_descending: bool,
    /// First day on which the figures are complete, if they lack earlier ones.
    pub(super) complete_from: Option<Day>,
}

/// Reads the grouping from `groupBy` and `then`. As in the REST API, `groupBy` may also be a
/// comma-separated list.
fn group_from_query(query: &UrlQuery) -> Result<GroupBy, Obstacle> {
    let first = query.get("groupBy").unwrap_or("day");
    let names = match query.get("then").filter(|then| *then != first) {
        Some(then) => format!("{first},{then}"),
        None => first.to_owned(),
    };
    GroupBy::parse(&names).map_err(|problem| Obstacle {
        message: format!(
            "The report cannot be grouped like this. {}",
            problem.message
        ),
        ways: vec![(
            "Group by day".to_owned(),
            query.with(&[("groupBy", Some("day")), ("then", None)]),
        )],
    })
}

/// Returns the columns that the URL names, in the order of all metrics.
fn columns(query: &UrlQuery, has_costs: bool, of_events: bool) -> Vec<&'static Metric> {
    let chosen: Vec<&str> = query.all("column").collect();
    let default: &[&str] = if of_events {
        &EVENT_COLUMNS_DEFAULT
    } else {
        &COLUMNS_DEFAULT
    };
    let is_default = |one: &Metric| default.contains(&one.word);
    let is_shown = |one: &&Metric| {
        if chosen.is_empty() {
            is_default(one) && (has_costs || !one.needs_cost)
        } else {
            chosen.contains(&one.word)
        }
    };
    let shown: Vec<&'static Metric> = METRICS.iter().filter(is_shown).collect();
    if shown.is_empty() {
        return Metric::select(&[SORT_DEFAULT]);
    }
    shown
}

/// Returns the figures of a row without any.
fn nothing(has_costs: bool) -> ReportFigures {
    ReportFigures {
        cost: has_costs.then_some(0),
        ..ReportFigures::zero()
    }
}

/// Returns the ways to a report with fewer rows.
fn fewer_rows(query: &UrlQuery, message: String) -> Obstacle {
    let week = PageDateRange::with_preset(query, "7d");
    let by_day = query.with(&[("groupBy", Some("day")), ("then", None)]);
    Obstacle {
        message,
        ways: vec![
            ("Show 7 days".to_owned(), week),
            ("Group by day".to_owned(), by_day),
        ],
    }
}

/// Loads the report, or returns why the combination is not available.
pub(super) async fn load_report(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    bar: &AnalysisBar,
) -> Result<Result<ExploreReport, Obstacle>, Failure> {
    let query = &context.query;
    let group = match group_from_query(query) {
        Ok(group) => group,
        Err(obstacle) => return Ok(Err(obstacle)),
    };
    let spans = bar.range.spans(group.time);
    if spans.len() > HOURS_MAX {
        let message = "The period has too many hours for one report.".to_owned();
        return Ok(Err(fewer_rows(query, message)));
    }
    if let Some(obstacle) = bar.obstacle(&group.dimensions) {
        return Ok(Err(obstacle));
    }
    let question = ReportQuery {
        periods: spans.iter().map(|span| span.period).collect(),
        group_by: group.dimensions.clone(),
        filters: bar.filters(),
        rows_max: ROWS_MAX + 1,
    };
    let (app, caller) = (context.app()?.id, &context.authorized);
    let complete_from = handles.store.complete_from(caller, app, &question).await?;
    let has_costs = Spend::is_available_for(caller.environment(), group.time, &question);
    let (read, spend) = if has_costs {
        let spend = spend(handles, caller, app, &bar.range).await?;
        (question.split_by_network(), Some(spend))
    } else {
        (question.clone(), None)
    };
    let stats = handles.store.stats(caller, app, read).await?;
    let mut rows = report_rows(stats, &question, &spans, spend.as_ref());
    if rows.len() > ROWS_MAX as usize {
        let message = format!("The report has more than {ROWS_MAX} rows.");
        return Ok(Err(fewer_rows(query, message)));
    }
    let before = compared_rows(handles, context, bar, &group.dimensions, has_costs).await?;
    if let Some(before) = before.as_ref().filter(|_| group.time.is_none()) {
        // A network that brought something before and nothing now is worth a row.
        for values in before.rows.keys() {
            let key = (0, values.clone());
            rows.entry(key).or_insert_with(|| nothing(has_costs));
        }
    }
    let dimensions = group.dimensions.iter().copied();
    let values = rows
        .keys()
        .flat_map(|(_, values)| dimensions.clone().zip(values));
    let names = ValueNames::load(handles, caller, app, bar.range.whole(), values).await?;
    let named = group.dimensions.iter().copied();
    let named = named.chain(bar.filters().into_iter().map(|(one, _)| one));
    let of_events = named
        .into_iter()
        .any(|one| matches!(one, Dimension::Event | Dimension::Source));
    let mut found = ExploreReport {
        plain_spans: bar
            .range
            .days
            .split(group.time)
            .into_iter()
            .map(|span| span.label)
            .collect(),
        group,
        spans,
        rows: rows.into_iter().collect(),
        columns: columns(query, has_costs, of_events),
        names,
        filters: bar.filters(),
        of_events,
        has_costs,
        before,
        is_searched: query.get("search").is_some(),
        sort: query.get("sort").and_then(Metric::find),
        is_descending: query.get("order") != Some("asc"),
        complete_from: complete_from.map(Day::first_from),
    };
    found.search(query.get("search"));
    found.sort_rows();
    Ok(Ok(found))
}

impl ExploreReport {
    /// Keeps the rows that have the text in one of their values.
    fn search(&mut self, text: Option<&str>) {
        let Some(text) = text.map(str::to_lowercase) else {
            return;
        };
        let rows = std::mem::take(&mut self.rows);
        let fits = |key: &ReportRowKey| {
            let values = self.labels(key).into_iter().chain(key.1.iter().cloned());
            values
                .into_iter()
                .any(|value| value.to_lowercase().contains(&text))
        };
        self.rows = rows.into_iter().filter(|(key, _)| fits(key)).collect();
    }

    /// Sorts the rows. A report grouped only by time stays in time order unless the user selects a
    /// sort column.
    fn sort_rows(&mut self) {
        if self.sort.is_none() && self.group.dimensions.is_empty() {
            return;
        }
        let default = if self.of_events {
            EVENT_SORT_DEFAULT
        } else {
            SORT_DEFAULT
        };
        let sort = self.sort.or_else(|| Metric::find(default));
        let of = sort.map_or(METRICS[0].of, |metric| metric.of);
        self.rows.sort_by_key(|(_, row)| Reverse(of(row)));
        if !self.is_descending {
            self.rows.reverse();
        }
    }

    /// Returns the names of the grouping columns.
    pub(super) fn heads(&self) -> Vec<&'static str> {
        let time = self.group.time.map(TimeUnit::as_str);
        let others = self.group.dimensions.iter().map(|one| one.as_str());
        time.into_iter().chain(others).collect()
    }

    /// Returns whether a metric has a value in a row. A zero of figures that the row cannot have
    /// would look like a measured one.
    pub(super) fn has_value(&self, metric: &Metric, (_, values): &ReportRowKey) -> bool {
        let filters = self.filters.iter().map(|(one, value)| (*one, value));
        let row = self.group.dimensions.iter().copied().zip(values);
        metric.has_value_for(filters.chain(row).map(|(one, value)| (one, value.as_str())))
    }

    /// Returns whether a metric has a total. Rows of single events have one if some row has a value.
    pub(super) fn has_total(&self, metric: &Metric) -> bool {
        self.rows.iter().any(|(key, _)| self.has_value(metric, key))
    }

    /// Returns the dimensions that the report is grouped by.
    pub(super) fn dimensions(&self) -> &[Dimension] {
        &self.group.dimensions
    }

    /// Returns the names of the values.
    pub(super) const fn names(&self) -> &ValueNames {
        &self.names
    }

    /// Returns whether changes of costs are missing, because a part of a day has no costs.
    pub(super) fn lacks_compared_costs(&self) -> bool {
        let before = self.before.as_ref().map(|before| before.total.cost);
        let shows_costs = self.columns.iter().any(|column| column.needs_cost);
        self.has_costs && shows_costs && before == Some(None)
    }

    /// Returns whether the report is grouped by time.
    pub(super) const fn has_time(&self) -> bool {
        self.group.time.is_some()
    }

    /// Returns a row's values as shown.
    pub(super) fn labels(&self, (span, values): &ReportRowKey) -> Vec<String> {
        let time = self.group.time.map(|_| {
            let label = self.spans.get(*span).map(|span| span.label.clone());
            label.unwrap_or_default()
        });
        let others = self.group.dimensions.iter().zip(values);
        let others = others.map(|(one, value)| self.names.label_or_missing(*one, value));
        time.into_iter().chain(others).collect()
    }

    /// Returns the ids of a row's values that are shown by name; empty for the others.
    pub(super) fn ids(&self, (_, values): &ReportRowKey) -> Vec<String> {
        let time = self.group.time.map(|_| String::new());
        let others = self.group.dimensions.iter().zip(values);
        let others = others.map(|(one, value)| self.names.id(*one, value));
        time.into_iter().chain(others).collect()
    }

    /// Returns a row's values for a file: dates and identifiers as in the REST API, except for links,
    /// whose names say more than their ids.
    pub(super) fn plain_values(&self, key: &ReportRowKey) -> Vec<String> {
        let mut shown = self.labels(key);
        let first = usize::from(self.has_time());
        if let Some(label) = self.plain_spans.get(key.0).filter(|_| self.has_time()) {
            shown[0].clone_from(label);
        }
        for (place, dimension) in self.group.dimensions.iter().enumerate() {
            match key.1[place].as_str() {
                "" => "none".clone_into(&mut shown[first + place]),
                value if *dimension != Dimension::Link => {
                    value.clone_into(&mut shown[first + place]);
                }
                _ => {}
            }
        }
        shown
    }

    /// Returns the query that each of a row's values leads to. A value filters the report, which is
    /// then grouped by what is left; a time becomes the range.
    pub(super) fn drill_downs(
        &self,
        (span, values): &ReportRowKey,
        query: &UrlQuery,
    ) -> Vec<Option<String>> {
        let time = self.group.time.map(|unit| {
            let span = self.spans.get(*span)?;
            let finer = match unit {
                TimeUnit::Hour => return None,
                TimeUnit::Day => "hour",
                TimeUnit::Week | TimeUnit::Month => "day",
            };
            let names = self.heads();
            let then = names.get(1).copied();
            Some(query.with(&[
                (RANGE, None),
                (FROM, Some(&span.from.to_string())),
                (TO, Some(&span.to.to_string())),
                ("groupBy", Some(finer)),
                ("then", then),
            ]))
        });
        let value = |(one, value): (&Dimension, &String)| {
            if value.is_empty() {
                return None;
            }
            let left = self
                .heads()
                .into_iter()
                .filter(|head| *head != one.as_str());
            let left: Vec<&str> = left.collect();
            Some(query.with(&[
                ("groupBy", Some(left.first().copied().unwrap_or("day"))),
                ("then", left.get(1).copied()),
                ("search", None),
                (one.as_str(), Some(value.as_str())),
            ]))
        };
        let others = self.group.dimensions.iter().zip(values).map(value);
        time.into_iter().chain(others).collect()
    }

    /// Returns a row's figures in the compared range; `None` if they are not known. Times have no
    /// counterpart in that range.
    pub(super) fn row_before(&self, (_, values): &ReportRowKey) -> Option<ReportFigures> {
        let before = self.before.as_ref().filter(|_| !self.has_time())?;
        let found = before.rows.get(values).copied();
        Some(found.unwrap_or_else(|| nothing(before.total.cost.is_some())))
    }

    /// Returns whether rows have figures of the compared range.
    pub(super) const fn has_rows_before(&self) -> bool {
        self.before.is_some() && !self.has_time()
    }

    /// Returns the totals of the compared range; `None` if nothing is compared or only some rows are
    /// shown.
    pub(super) fn total_before(&self) -> Option<&ReportFigures> {
        let before = self.before.as_ref().filter(|_| !self.is_searched)?;
        Some(&before.total)
    }

    pub(super) fn total(&self) -> ReportFigures {
        let nothing = nothing(self.has_costs);
        self.rows.iter().fold(nothing, |mut total, (_, row)| {
            total.add(row);
            total
        })
    }

    /// Returns the values of a dimension with their labels, as suggestions for a filter.
    pub(super) fn suggestions(&self) -> Vec<(Dimension, Vec<(String, String)>)> {
        let dimensions = self.group.dimensions.iter().enumerate();
        dimensions
            .map(|(place, dimension)| {
                let mut values: Vec<(String, String)> = Vec::new();
                for ((_, row), _) in &self.rows {
                    if !values.iter().any(|(value, _)| *value == row[place]) {
                        let label = self.names.label(*dimension, &row[place]);
                        values.push((row[place].clone(), label));
                    }
                    if values.len() > SUGGESTIONS_MAX {
                        break;
                    }
                }
                (*dimension, values)
            })
            .collect()
    }
}

/// Maximum number of suggested values.
const SUGGESTIONS_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::default_with_costs("", true, false, &["cost", "clicks", "installs", "paidCpi", "netRevenue", "paidRoas", "arpu", "payingDevices"])]
    #[case::default_without_costs("", false, false, &["clicks", "installs", "netRevenue", "arpu", "payingDevices"])]
    #[case::chosen("column=events&column=clicks", true, true, &["clicks", "events"])]
    #[case::unknown("column=nonsense", true, false, &["installs"])]
    #[case::events("", true, true, &["netRevenue", "payingDevices", "events"])]
    fn columns_come_from_the_url(
        #[case] query: &str,
        #[case] has_costs: bool,
        #[case] of_events: bool,
        #[case] expected: &[&str],
    ) {
        let found = columns(&UrlQuery::of(Some(query)), has_costs, of_events);
        let words: Vec<&str> = found.iter().map(|one| one.word).collect();
        assert_eq!(words, expected);
    }

    #[rstest]
    #[case::two("groupBy=week&then=country", true)]
    #[case::the_same_twice("groupBy=day&then=day", true)]
    #[case::two_times("groupBy=day&then=week", false)]
    #[case::unknown("groupBy=colour", false)]
    fn a_grouping_that_cannot_be_shown_offers_a_way_out(#[case] query: &str, #[case] is_ok: bool) {
        let found = group_from_query(&UrlQuery::of(Some(query)));
        assert_eq!(found.is_ok(), is_ok);
        assert!(found.err().is_none_or(|obstacle| !obstacle.ways.is_empty()));
    }
}
