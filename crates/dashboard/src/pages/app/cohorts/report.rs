//! The cohort report: its query, parsed from the URL, and its result.

use crate::access::PageContext;
use crate::analysis::{AnalysisBar, Obstacle};
use crate::failure::Failure;
use crate::metric::{Metric, Unit};
use crate::pages::app::spend;
use crate::query::UrlQuery;
use crate::range::PageDateRange;
use crate::state::DashboardHandles;
use crate::text;
use crate::value_names::ValueNames;
use std::collections::BTreeMap;
use tributary_domain::access::resource::CohortsRead;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::cohort::{
    Cohort, CohortMeasure, CohortReportQuery, CohortSums, CohortTable, cohort_report, same_cohorts,
    weighted_average,
};
use tributary_domain::report::range::Span;
use tributary_domain::report::{Dimension, Spend, TimeUnit};
use tributary_domain::vocabulary::money::Amount;

/// Days since install that the table shows.
pub(super) const AGES: [u8; 7] = [0, 1, 3, 7, 14, 30, 90];
/// Highest day since install on the page.
pub(super) const AGE_MAX: u8 = AGES[AGES.len() - 1];
/// Maximum number of rows to read, as in the REST API: one per cohort and day since install.
const ROWS_MAX: u32 = 200_000;
/// Maximum number of rows to read if paid revenue is told from organic revenue, as in the REST API.
const SPLIT_ROWS_MAX: u32 = 400_000;

/// Parameters of the report options.
pub(super) const SHOW: &str = "show";
pub(super) const INTERVAL: &str = "interval";
pub(super) const BY: &str = "by";

/// A report with its cohorts, newest first.
pub(super) struct CohortsReport {
    pub(super) measure: CohortMeasure,
    pub(super) by: Option<Dimension>,
    spans: Vec<Span>,
    /// Labels of the spans for a file, as in the REST API.
    plain_spans: Vec<String>,
    pub(super) cohorts: Vec<Cohort>,
    /// Sums of the same cohorts by age, from 0 on.
    pub(super) followed: Vec<CohortSums>,
    names: ValueNames,
    /// Whether costs are known for these cohorts.
    pub(super) has_costs: bool,
    /// Day from which on the payers of all installs are counted; `None` if all are.
    pub(super) payers_from: Option<String>,
}

/// Returns a measure's name and unit, with the same words as in other reports.
pub(super) fn describe(measure: CohortMeasure) -> (&'static str, Unit) {
    let same = |word| Metric::find(word).map_or((word, Unit::Ratio), |one| (one.label, one.unit));
    match measure {
        CohortMeasure::Retention => ("Retention", Unit::Share),
        CohortMeasure::PayerShare => ("Share of payers", Unit::Share),
        CohortMeasure::RevenuePerInstall => same("arpu"),
        CohortMeasure::CumulativeRevenue => ("Cumulative revenue", Unit::Money),
        CohortMeasure::PaidRoas => same("paidRoas"),
        CohortMeasure::Roas => same("roas"),
    }
}

/// Reads the measure. `revenue` was its name before there were several.
pub(super) fn measure(query: &UrlQuery) -> CohortMeasure {
    match query.get(SHOW) {
        Some("revenue") => CohortMeasure::RevenuePerInstall,
        other => other
            .and_then(CohortMeasure::parse)
            .unwrap_or(CohortMeasure::Retention),
    }
}

/// Reads the length of the install periods.
pub(super) fn interval(query: &UrlQuery) -> TimeUnit {
    match query.get(INTERVAL) {
        Some("day") => TimeUnit::Day,
        Some("month") => TimeUnit::Month,
        _ => TimeUnit::Week,
    }
}

/// Reads the dimension to group by.
pub(super) fn group(query: &UrlQuery) -> Option<Dimension> {
    let dimension = query.get(BY).and_then(Dimension::parse);
    dimension.filter(|one| CohortTable::has_dimension(*one))
}

/// Loads the report, or returns why the combination is not available.
pub(super) async fn load_report(
    handles: &DashboardHandles,
    context: &PageContext<CohortsRead>,
    caller: &Authorized<AnalyticsRead>,
    bar: &AnalysisBar,
) -> Result<Result<CohortsReport, Obstacle>, Failure> {
    let query = &context.query;
    let (measure, unit, by) = (measure(query), interval(query), group(query));
    let group_by: Vec<Dimension> = by.into_iter().collect();
    if let Some(obstacle) = bar.obstacle(&group_by) {
        return Ok(Err(obstacle));
    }
    let app = context.app()?.id;
    let spans = bar.range.spans(Some(unit));
    let periods = spans.iter().map(|span| span.period).collect();
    let mut question = CohortReportQuery::new(periods, &group_by, AGE_MAX, ROWS_MAX + 1);
    question.report.filters = bar.filters();
    let has_costs = Spend::is_available_for(caller.environment(), Some(unit), &question.report);
    let costs = if has_costs && measure.needs_cost() {
        Some(spend(handles, caller, app, &bar.range).await?)
    } else {
        None
    };
    let read = if costs.is_some() && measure == CohortMeasure::PaidRoas {
        question.split_by_network(SPLIT_ROWS_MAX + 1)
    } else {
        question.clone()
    };
    let payers_from = handles.store.payers_complete_from(caller, app).await?;
    let rows = handles.store.cohorts(caller, app, read.clone()).await?;
    if read.is_cut(rows.len()) {
        return Ok(Err(too_many_rows(query)));
    }
    let now = handles.runtime.now();
    let cohorts = cohort_report(rows, &question, &spans, costs.as_ref(), payers_from, now);
    let values = cohorts.iter().flat_map(|cohort| &cohort.values);
    let values = values.filter_map(|value| Some((by?, value)));
    let names = ValueNames::load(handles, caller, app, bar.range.whole(), values).await?;
    let plain = bar.range.days.split(Some(unit)).into_iter();
    Ok(Ok(CohortsReport {
        measure,
        by,
        spans,
        plain_spans: plain.map(|span| span.label).collect(),
        followed: same_cohorts(&cohorts, AGE_MAX),
        cohorts,
        names,
        has_costs,
        payers_from: payers_from.map(|from| text::date(from, &bar.range.days.zone)),
    }))
}

fn too_many_rows(query: &UrlQuery) -> Obstacle {
    Obstacle {
        message: "The report has too many cohorts for one page.".to_owned(),
        ways: vec![
            (
                "Show months".to_owned(),
                query.with(&[(INTERVAL, Some(TimeUnit::Month.as_str()))]),
            ),
            (
                "Show 7 days".to_owned(),
                PageDateRange::with_preset(query, "7d"),
            ),
            ("Show without groups".to_owned(), query.with(&[(BY, None)])),
        ],
    }
}

impl CohortsReport {
    /// Returns the ages that a device of at least one cohort has reached. Other ages have no
    /// figures.
    pub(super) fn ages(&self) -> Vec<u8> {
        let is_reached = |age: &u8| self.cohorts.iter().any(|cohort| cohort.at(*age).is_some());
        AGES.into_iter().filter(is_reached).collect()
    }

    /// Returns the value of the measure in millionths.
    pub(super) fn value(&self, sums: &CohortSums) -> Option<i64> {
        self.measure.of(sums).map(Amount::micros)
    }

    /// Returns the sums of the average row at an age. A total is that of the same cohorts at every
    /// age: it would fall where fewer cohorts have reached an age.
    pub(super) fn average(&self, age: u8) -> Option<CohortSums> {
        match self.measure {
            CohortMeasure::CumulativeRevenue => self.followed.get(usize::from(age)).copied(),
            _ => weighted_average(&self.cohorts, age),
        }
    }

    /// Returns the label of a cohort's install period.
    pub(super) fn period_label(&self, cohort: &Cohort) -> &str {
        let span = self.spans.get(cohort.period);
        span.map_or("", |span| &span.label)
    }

    /// Returns the label of a cohort's install period as in the REST API.
    pub(super) fn plain_period(&self, cohort: &Cohort) -> &str {
        self.plain_spans
            .get(cohort.period)
            .map_or("", |label| label)
    }

    /// Returns the value that a cohort is grouped by: as stored, and for people.
    pub(super) fn group_value<'a>(&self, cohort: &'a Cohort) -> Option<(&'a str, String)> {
        let value = cohort.values.first()?;
        let label = self.names.label_or_missing(self.by?, value);
        Some((value, label))
    }

    /// Returns the id of the value that a cohort is grouped by, if the value is shown by its name;
    /// otherwise an empty text.
    pub(super) fn group_id(&self, cohort: &Cohort) -> String {
        let value = self.by.zip(cohort.values.first());
        value.map_or_else(String::new, |(by, value)| self.names.id(by, value))
    }

    /// Returns the values of the dimension with their labels, as suggestions for a filter.
    pub(super) fn suggestions(&self) -> BTreeMap<String, String> {
        let values = self.cohorts.iter().filter_map(|one| self.group_value(one));
        values
            .map(|(value, label)| (value.to_owned(), label))
            .collect()
    }
}
