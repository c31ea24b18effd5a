//! `GET /apps/{app}/cohorts` — retention, revenue and ROAS by days since the install.

mod csv;
mod report;
mod table;

pub(crate) use csv::csv;

use crate::access::ReportContext;
use crate::analysis::{AnalysisBar, Obstacle, ReportKind};
use crate::chart::{Chart, ChartData, ChartPoint, ChartSeries};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::pages::app::group_label;
use crate::query::UrlQuery;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use crate::views::ViewMenu;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use report::{AGES, BY, CohortsReport, INTERVAL, SHOW, describe, load_report};
use table::{AverageRow, Row};
use tributary_domain::access::resource::CohortsRead;
use tributary_domain::report::cohort::{CohortMeasure, CohortTable};
use tributary_domain::report::view::ReportPage;
use tributary_domain::report::{Dimension, TimeUnit};

/// Maximum rows on the page. The CSV file has all rows.
const ROWS_SHOWN_MAX: usize = 500;

#[derive(Template)]
#[template(path = "cohorts.html")]
struct CohortsPage {
    shell: Shell,
    bar: AnalysisBar,
    views: ViewMenu,
    query: UrlQuery,
    form: FormState,
    measure: CohortMeasure,
    obstacle: Option<Obstacle>,
    table: Option<CohortsTable>,
}

/// The curve of the cohorts that have completed its last day.
struct Curve {
    chart: Chart,
    last_day: usize,
    /// Number of installs that it follows.
    installs: String,
    /// Number of all installs of the report.
    all: String,
}

/// The table and the curve.
struct CohortsTable {
    ages: Vec<u8>,
    /// One row per value over all periods, if the cohorts are grouped.
    sums: Vec<Row>,
    rows: Vec<Row>,
    average: AverageRow,
    /// The same cohorts by day since install; `None` if they have completed fewer than two days.
    curve: Option<Curve>,
    /// Whether the last row is a total.
    is_total: bool,
    /// Number of cohorts, including those that the page does not show.
    row_count: usize,
    /// Whether the measure needs costs that are not known for these cohorts.
    lacks_costs: bool,
    /// Day from which on payers are counted, if the measure needs them and some are not counted.
    payers_from: Option<String>,
}

impl CohortsTable {
    fn of(found: &CohortsReport, query: &UrlQuery) -> Self {
        let ages = found.ages();
        Self {
            sums: table::sums(found, &ages, query),
            rows: table::rows(found, &ages, query, ROWS_SHOWN_MAX),
            average: table::average(found, &ages),
            curve: curve(found),
            is_total: found.measure == CohortMeasure::CumulativeRevenue,
            row_count: found.cohorts.len(),
            payers_from: found
                .payers_from
                .clone()
                .filter(|_| found.measure == CohortMeasure::PayerShare),
            lacks_costs: found.measure.needs_cost() && !found.has_costs,
            ages,
        }
    }

    const fn left_out(&self) -> usize {
        self.row_count.saturating_sub(ROWS_SHOWN_MAX)
    }

    /// Returns the lowest age that no cohort has reached.
    fn next_age(&self) -> Option<u8> {
        AGES.into_iter().find(|age| !self.ages.contains(age))
    }
}

impl CohortsPage {
    fn measures(&self) -> Vec<(&'static str, &'static str)> {
        let measures = CohortMeasure::ALL.iter();
        measures
            .map(|one| (one.as_str(), describe(*one).0))
            .collect()
    }

    fn groups(&self) -> Vec<(&'static str, &'static str)> {
        let dimensions = Dimension::ALL.iter();
        let dimensions = dimensions.filter(|one| CohortTable::has_dimension(**one));
        let dimensions = dimensions.map(|one| (one.as_str(), group_label(one.as_str())));
        std::iter::once(("", "Nothing")).chain(dimensions).collect()
    }

    /// Returns the fields that the form for the options keeps.
    fn kept(&self) -> Vec<(&str, &str)> {
        self.query.fields_except(&[SHOW, INTERVAL, BY])
    }

    fn csv_query(&self) -> String {
        self.query.with(&[])
    }

    /// Returns whether the measure contains revenue or payments.
    const fn is_of_payments(&self) -> bool {
        !matches!(self.measure, CohortMeasure::Retention)
    }

    fn is_by_day(&self) -> bool {
        report::interval(&self.query) == TimeUnit::Day
    }

    /// Returns what the cells show.
    const fn explanation(&self) -> &'static str {
        match self.measure {
            CohortMeasure::Retention => {
                "Share of devices that were active on a day after the install."
            }
            CohortMeasure::PayerShare => {
                "Share of devices that made their first counted payment until the end of a day."
            }
            CohortMeasure::RevenuePerInstall => {
                "Net revenue until the end of a day, divided by all installs."
            }
            CohortMeasure::CumulativeRevenue => "Net revenue until the end of a day.",
            CohortMeasure::PaidRoas => {
                "Net revenue of paid installs until the end of a day, divided by the spend. Organic \
                 installs and their revenue are left out."
            }
            CohortMeasure::Roas => {
                "Net revenue until the end of a day, divided by the spend. Organic revenue is included."
            }
        }
    }
}

/// Draws the same cohorts by day since install. Retention begins on day 1: day 0 is always 100 % and
/// would use up the whole scale.
fn curve(found: &CohortsReport) -> Option<Curve> {
    let (label, unit) = describe(found.measure);
    let first = usize::from(found.measure == CohortMeasure::Retention);
    let sums = found.followed.iter().enumerate().skip(first);
    let values: Vec<(usize, i64)> = sums
        .map_while(|(age, sums)| Some((age, found.value(sums)?)))
        .collect();
    if values.len() < 2 {
        return None;
    }
    let point = |(age, _): &(usize, i64)| ChartPoint {
        label: format!("Day {age}"),
        days: None,
        is_unfinished: false,
        notes: Vec::new(),
    };
    let data = ChartData {
        label: label.to_owned(),
        axis: "Days since install",
        points: values.iter().map(point).collect(),
        series: vec![ChartSeries {
            label: label.to_owned(),
            unit,
            values: values.iter().map(|(_, value)| Some(*value)).collect(),
        }],
        before: None,
        second: None,
        can_zoom: false,
    };
    let all = found.cohorts.iter().map(|cohort| cohort.installs).sum();
    Some(Curve {
        chart: data.draw(),
        last_day: values.last()?.0,
        installs: text::count(found.followed.first()?.installs),
        all: text::count(all),
    })
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<CohortsRead>,
) -> Result<Response, Failure> {
    let caller = context.authorized.analytics_access();
    let mut bar = AnalysisBar::for_report(ReportKind::Cohorts, &handles, &context, &caller).await?;
    let found = load_report(&handles, &context, &caller, &bar).await?;
    let query = &context.query;
    if let Ok(found) = &found
        && let Some(by) = found.by
    {
        bar.suggest(by, found.suggestions());
    }
    let (table, obstacle) = match found {
        Ok(found) => (Some(CohortsTable::of(&found, query)), None),
        Err(obstacle) => (None, Some(obstacle)),
    };
    let measure = report::measure(query);
    let by = report::group(query).map_or("", Dimension::as_str);
    let page = CohortsPage {
        shell: context.shell(Section::Cohorts),
        views: ViewMenu::load(&handles, &context, &caller, ReportPage::Cohorts).await?,
        form: FormState::default()
            .with(SHOW, measure.as_str())
            .with(INTERVAL, report::interval(query).as_str())
            .with(BY, by),
        query: query.clone(),
        bar,
        measure,
        obstacle,
        table,
    };
    Ok(context.page(&page))
}
