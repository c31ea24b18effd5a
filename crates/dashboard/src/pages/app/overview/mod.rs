//! `GET /apps/{app}` — an app's overview: key metrics, chart, top lists, retention and delivery
//! health, filtered by the bar that Explore shares.

mod annotations;
mod anomalies;
mod health;
mod kpi;
mod leaders;
pub(super) mod load;
pub(super) mod plot;
mod retention;
pub(crate) mod shared;

use crate::access::ReportContext;
use crate::analysis::{AnalysisBar, Obstacle};
use crate::chart::Chart;
use crate::failure::Failure;
use crate::metric::Metric;
use crate::query::UrlQuery;
use crate::range::PageDateRange;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use crate::views::ViewMenu;
use annotations::annotations;
use anomalies::{AnomalyLine, anomalies};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use health::{HealthRow, health};
use kpi::{Kpi, kpis};
use leaders::{LeaderRows, TopList, leaders};
use load::FigureReader;
use plot::{ChartChoice, plot};
use retention::{Stage, retention};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::view::ReportPage;
use tributary_domain::report::{Dimension, Figures, StatsRow};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, LinkId};

/// Dimensions that the chart can be stacked by: URL value and label.
const STACKS: [(&str, &str); 3] = [
    ("", "nothing"),
    ("network", "network"),
    ("campaign", "campaign"),
];
/// Maximum number of links that are shown by name, in the top list and as suggestions.
const LINKS_NAMED_MAX: usize = 60;
/// Parameters of the chart.
const CHART: [&str; 3] = ["metric", "second", "stack"];

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    shell: Shell,
    bar: AnalysisBar,
    views: ViewMenu,
    query: UrlQuery,
    /// Why the figures cannot be shown with these filters.
    obstacle: Option<Obstacle>,
    /// First day on which the figures are complete, if they lack earlier ones.
    complete_from: Option<Day>,
    kpis: Vec<Kpi>,
    choice: ChartChoice,
    chart: Chart,
    tables: Vec<TopList>,
    retention: Vec<Stage>,
    /// Number of events from billing providers, and the share of them that were matched to a
    /// device.
    billing: Option<(String, String)>,
    health: Vec<HealthRow>,
    /// Whether the period is not over, so that costs have no change.
    lacks_compared_costs: bool,
    /// Whether the filters hide spend, CPI and ROAS.
    hides_costs: bool,
    /// Number of held installs, if any.
    held: Option<String>,
    anomalies: Vec<AnomalyLine>,
    is_empty: bool,
    /// Whether the filters leave nothing.
    matches_nothing: bool,
}

impl OverviewPage {
    fn shows(&self, metric: &str) -> bool {
        self.choice.metric.word == metric
    }

    fn shows_second(&self, metric: &str) -> bool {
        self.choice.second.map(|one| one.word) == Some(metric)
    }

    fn shows_stack(&self, word: &str) -> bool {
        self.choice.stack.map_or("", Dimension::as_str) == word
    }

    /// Returns the top lists that the filters leave out.
    fn unavailable(&self) -> Vec<&TopList> {
        let tables = self.tables.iter();
        tables.filter(|table| table.obstacle.is_some()).collect()
    }

    /// Returns the ways to the lists that the filters leave out, each once.
    fn ways_to_all(&self) -> Vec<(&str, &str)> {
        let tables = self
            .tables
            .iter()
            .filter_map(|table| table.obstacle.as_ref());
        let ways = tables.flat_map(|obstacle| &obstacle.ways);
        let ways = ways.map(|(text, query)| (query.as_str(), text.as_str()));
        let ways: BTreeMap<&str, &str> = ways.collect();
        ways.into_iter()
            .map(|(query, text)| (text, query))
            .collect()
    }

    fn metrics(&self) -> Vec<&'static Metric> {
        self.bar.metrics()
    }

    fn stacks(&self) -> [(&'static str, &'static str); 3] {
        STACKS
    }

    /// Returns the fields that the chart's form keeps.
    fn kept_by_chart(&self) -> Vec<(&str, &str)> {
        self.query.fields_except(&CHART)
    }

    /// Returns the Explore query for a top list.
    fn explore(&self, dimension: &str) -> String {
        let changes = CHART.map(|name| (name, None));
        let by = [("groupBy", Some(dimension)), ("then", None)];
        let changes: Vec<_> = changes.into_iter().chain(by).collect();
        self.query.with(&changes)
    }

    /// Returns the link whose page has what a top list lacks: clicks by country and platform.
    fn page_with(&self, dimension: &str) -> Option<&str> {
        let is_place = [Dimension::Country, Dimension::Platform]
            .iter()
            .any(|one| one.as_str() == dimension);
        let link = self.query.get(Dimension::Link.as_str())?;
        let is_link = LinkId::parse(link).is_ok();
        (is_place && is_link && self.shell.sees_apps).then_some(link)
    }

    fn with_metric(&self, word: &str) -> String {
        self.query.with(&[("metric", Some(word))])
    }
}

/// Returns the number of billing events in the range, and the share of them that were matched to a
/// device.
async fn billing(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &PageDateRange,
) -> Result<Option<(String, String)>, Failure> {
    let days = range.days.from..=range.days.to;
    let mut all = handles.store.billing_figures(caller, app, days).await?;
    all.retain(|one| one.environment == caller.environment());
    let events: i64 = all.iter().map(|one| one.events).sum();
    let matched: i64 = all.iter().map(|one| one.matched).sum();
    Ok((events > 0).then(|| (text::count(events), text::percent(matched, events))))
}

/// Returns the number of held installs; `None` if there are none.
fn held(installs: i64) -> Option<String> {
    match installs {
        ..=0 => None,
        1 => Some("1 install".to_owned()),
        _ => Some(format!("{} installs", text::count(installs))),
    }
}

/// Returns the links whose names the page needs: those with the most revenue and installs.
fn top_links(credited: &[StatsRow]) -> Vec<&String> {
    let mut sums: BTreeMap<&String, Figures> = BTreeMap::new();
    for row in credited {
        sums.entry(&row.values[1]).or_default().add(&row.figures, 1);
    }
    let mut links: Vec<(&String, Figures)> = sums.into_iter().collect();
    links.sort_by_key(|(_, one)| Reverse((one.net_micros(), one.installs, one.clicks)));
    links.truncate(LINKS_NAMED_MAX);
    links.into_iter().map(|(link, _)| link).collect()
}

/// Loads the rows of the top lists.
async fn leader_rows(reader: &FigureReader<'_>) -> Result<LeaderRows, Failure> {
    let credits = [Dimension::Campaign, Dimension::Link, Dimension::Network];
    let (credited, places, names) = tokio::try_join!(
        reader.whole(&credits),
        reader.whole(&[Dimension::Country, Dimension::Platform]),
        reader.whole(&[Dimension::Event]),
    )?;
    // No roll-up has links with countries or platforms, but one has campaigns with them.
    let campaigns = if credited.is_some() {
        leaders::pick(credited.as_ref(), &[0, 2])
    } else {
        let by = [Dimension::Campaign, Dimension::Network];
        reader.whole(&by).await?
    };
    let links = top_links(credited.as_deref().unwrap_or_default()).into_iter();
    let links = links.map(|link| (Dimension::Link, link));
    let rows = campaigns.as_deref().unwrap_or_default().iter();
    let values = links.chain(rows.map(|row| (Dimension::Campaign, &row.values[0])));
    let value_names = reader.names(values).await?;
    Ok(LeaderRows {
        campaigns,
        links: leaders::pick(credited.as_ref(), &[1]),
        places,
        names,
        value_names,
    })
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let caller = &context.authorized;
    let mut bar = AnalysisBar::load(&handles, &context).await?;
    let reader = FigureReader {
        handles: &handles,
        caller,
        app: app.id,
        bar: &bar,
    };
    let (figures, rows, retention, health, billing, anomalies, notes) = tokio::try_join!(
        reader.load(),
        leader_rows(&reader),
        retention(&handles, caller, app.id, &bar),
        health(&handles, &context, app.id),
        billing(&handles, caller, app.id, &bar.range),
        anomalies(&handles, caller, app),
        annotations(&handles, &context, app.id, bar.range.whole()),
    )?;
    let complete_from = reader.complete_from().await?;
    let choice = ChartChoice::of(&context.query, |metric| bar.has_value(metric));
    let chart = plot(&reader, &figures, &choice, &rows.value_names, &notes).await?;
    let leaders = leaders(&reader, &figures, &rows);
    let before = figures.total_before.as_ref();
    let matches_nothing = figures.total.figures.is_zero() && !bar.tags.is_empty();
    let is_empty = figures.total.figures.is_zero()
        && before.is_none_or(|before| before.figures.is_zero())
        && bar.data_begin.is_none()
        && bar.tags.is_empty();
    let (obstacle, kpis) = (bar.obstacle(&[]), kpis(&bar, &figures));
    for (dimension, values) in leaders.values {
        bar.suggest(dimension, values);
    }
    let page = OverviewPage {
        shell: context.shell(Section::Overview),
        views: ViewMenu::load(
            &handles,
            &context,
            &context.authorized,
            ReportPage::Overview,
        )
        .await?,
        query: context.query.clone(),
        obstacle,
        complete_from,
        kpis,
        choice,
        chart,
        tables: leaders.lists,
        retention,
        billing,
        health,
        lacks_compared_costs: figures.lacks_compared_costs(),
        hides_costs: figures.hides_costs,
        held: held(figures.total.figures.held_installs),
        anomalies,
        is_empty,
        matches_nothing,
        bar,
    };
    Ok(context.page(&page))
}
