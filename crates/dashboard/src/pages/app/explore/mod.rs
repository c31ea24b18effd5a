//! `GET /apps/{app}/explore` — metrics by any dimensions, with sorting, search, drill-down and CSV
//! export.

mod compared;
mod csv;
mod plot;
mod report;

pub(crate) use csv::csv;

use crate::access::ReportContext;
use crate::analysis::{AnalysisBar, Obstacle};
use crate::chart::Chart;
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::metric::{ComparedFigure, METRICS, Metric, MetricChange, Unit};
use crate::pages::app::group_label;
use crate::query::UrlQuery;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::views::ViewMenu;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use report::{ExploreReport, load_report};
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::metric::SMALL_SAMPLE_INSTALLS;
use tributary_domain::report::view::ReportPage;
use tributary_domain::report::{APP_PLATFORMS, Dimension, ReportFigures, ReportRowKey, TimeUnit};
use tributary_domain::vocabulary::day::Day;

/// Maximum rows on the page. The CSV file has all rows.
const ROWS_SHOWN_MAX: usize = 500;

#[derive(Template)]
#[template(path = "explore.html")]
struct ExplorePage {
    shell: Shell,
    bar: AnalysisBar,
    views: ViewMenu,
    query: UrlQuery,
    form: FormState,
    heads: Vec<&'static str>,
    columns: Vec<SortHeader>,
    chart: Option<Chart>,
    rows: Vec<Row>,
    totals: Vec<String>,
    /// Totals of the compared range with their change; empty if nothing is compared.
    totals_before: Vec<(String, Option<MetricChange>)>,
    obstacle: Option<Obstacle>,
    /// Number of rows, including those that the page does not show.
    row_count: usize,
    /// First day on which the figures are complete, if they lack earlier ones.
    complete_from: Option<Day>,
    /// Whether changes of costs are missing, because a part of a day has no costs.
    lacks_compared_costs: bool,
}

/// Header of a metric's column.
struct SortHeader {
    metric: &'static Metric,
    query: String,
    sorted: &'static str,
}

impl ExplorePage {
    fn csv_query(&self) -> String {
        self.query.with(&[])
    }

    /// Returns the installs from which a ratio is shown without a reservation, if some row has
    /// fewer.
    fn small_sample(&self) -> Option<i64> {
        let mut figures = self.rows.iter().flat_map(|row| &row.figures);
        figures
            .any(|one| one.is_small_sample)
            .then_some(SMALL_SAMPLE_INSTALLS)
    }

    const fn left_out(&self) -> usize {
        self.row_count.saturating_sub(ROWS_SHOWN_MAX)
    }

    const fn has_more_rows(&self) -> bool {
        self.row_count > ROWS_SHOWN_MAX
    }

    fn is_searched(&self) -> bool {
        self.query.get("search").is_some()
    }

    fn search(&self) -> &str {
        self.query.get("search").unwrap_or_default()
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
        std::iter::once(("", "Nothing"))
            .chain(self.groups())
            .collect()
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn shows_column(&self, word: &str) -> bool {
        self.columns.iter().any(|one| one.metric.word == word)
    }

    fn kept_by_groups(&self) -> Vec<(&str, &str)> {
        self.query.fields_except(&["groupBy", "then", "search"])
    }

    fn kept_by_columns(&self) -> Vec<(&str, &str)> {
        self.query.fields_except(&["column"])
    }

    fn kept_by_search(&self) -> Vec<(&str, &str)> {
        self.query.fields_except(&["search"])
    }

    /// Returns the query that leaves out payments on websites; `None` if a filter does that already, or
    /// if the report's roll-up has no platform.
    fn without_websites(&self) -> Option<String> {
        let platform = Dimension::Platform;
        let groups = ["groupBy", "then"].map(|name| self.query.get(name));
        let groups = groups.into_iter().flatten().filter_map(Dimension::parse);
        let dimensions: Vec<Dimension> = groups.chain([platform]).collect();
        let is_free = self.query.get(platform.as_str()).is_none();
        (is_free && self.bar.obstacle(&dimensions).is_none())
            .then(|| self.query.with(&[(platform.as_str(), Some(APP_PLATFORMS))]))
    }

    fn is_without_websites(&self) -> bool {
        self.query.get(Dimension::Platform.as_str()) == Some(APP_PLATFORMS)
    }

    fn default_columns(&self) -> String {
        self.query.with(&[("column", None)])
    }
}

struct Row {
    values: Vec<GroupValue>,
    figures: Vec<Figure>,
}

/// A value of a row.
struct Figure {
    text: String,
    /// Value in the compared range, and the change from it.
    compared: Option<ComparedFigure>,
    /// Whether the value is a ratio of few installs.
    is_small_sample: bool,
}

/// Shown where a metric has no value.
const NO_VALUE: &str = "–";

/// One of a row's grouping values.
struct GroupValue {
    text: String,
    /// Id of a value that is shown by its name; otherwise empty.
    id: String,
    /// Query for the drill-down link.
    deeper: Option<String>,
}

fn row(
    found: &ExploreReport,
    key: &ReportRowKey,
    figures: &ReportFigures,
    query: &UrlQuery,
) -> Row {
    let links = found.drill_downs(key, query).into_iter();
    let values = found.labels(key).into_iter().zip(found.ids(key)).zip(links);
    let value = |((text, id), deeper)| GroupValue { text, id, deeper };
    let before = found.row_before(key);
    let figure = |metric: &&Metric| {
        let has_value = found.has_value(metric, key);
        let before = before.as_ref().filter(|_| has_value);
        Figure {
            text: if has_value {
                metric.write(figures)
            } else {
                NO_VALUE.to_owned()
            },
            compared: before
                .and_then(|before| ComparedFigure::of(metric, before, figures, Unit::write)),
            is_small_sample: metric.is_from_small_sample(figures),
        }
    };
    Row {
        values: values.map(value).collect(),
        figures: found.columns.iter().map(figure).collect(),
    }
}

fn sort_header(found: &ExploreReport, metric: &'static Metric, query: &UrlQuery) -> SortHeader {
    let is_sorted = found.sort.is_some_and(|sort| sort.word == metric.word);
    let order = if is_sorted && found.is_descending {
        "asc"
    } else {
        "desc"
    };
    SortHeader {
        metric,
        query: query.with(&[("sort", Some(metric.word)), ("order", Some(order))]),
        sorted: match (is_sorted, found.is_descending) {
            (false, _) => "none",
            (true, true) => "descending",
            (true, false) => "ascending",
        },
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let mut bar = AnalysisBar::load(&handles, &context).await?;
    let found = load_report(&handles, &context, &bar).await?;
    let query = &context.query;
    let mut chart = None;
    if let Ok(found) = &found {
        chart = plot::chart(&handles, &context, &bar, found).await?;
        for (dimension, values) in found.suggestions() {
            bar.suggest(dimension, values);
        }
    }
    let mut page = ExplorePage {
        shell: context.shell(Section::Explore),
        views: ViewMenu::load(&handles, &context, &context.authorized, ReportPage::Explore).await?,
        form: FormState::default()
            .with("groupBy", query.get("groupBy").unwrap_or("day"))
            .with("then", query.get("then").unwrap_or("")),
        query: query.clone(),
        bar,
        heads: Vec::new(),
        columns: Vec::new(),
        chart,
        rows: Vec::new(),
        totals: Vec::new(),
        totals_before: Vec::new(),
        obstacle: None,
        row_count: 0,
        complete_from: None,
        lacks_compared_costs: false,
    };
    match found {
        Err(obstacle) => page.obstacle = Some(obstacle),
        Ok(found) => {
            page.complete_from = found.complete_from;
            page.lacks_compared_costs = found.lacks_compared_costs();
            let total = found.total();
            page.heads = found.heads().into_iter().map(group_label).collect();
            let columns = found.columns.iter();
            page.columns = columns
                .clone()
                .map(|metric| sort_header(&found, metric, query))
                .collect();
            let before = |metric: &&'static Metric| {
                let before = found.total_before()?;
                Some((metric.write(before), metric.change(before, &total)))
            };
            page.totals_before = columns.clone().filter_map(before).collect();
            let written = |metric: &&'static Metric| {
                if found.has_total(metric) {
                    metric.write(&total)
                } else {
                    NO_VALUE.to_owned()
                }
            };
            page.totals = columns.map(written).collect();
            page.row_count = found.rows.len();
            let shown = found.rows.iter().take(ROWS_SHOWN_MAX);
            page.rows = shown
                .map(|(key, figures)| row(&found, key, figures, query))
                .collect();
        }
    }
    Ok(context.page(&page))
}
