//! `GET /portfolio` — the organization's apps, each with its trend and change.

use crate::access::{PageContext, ReportContext};
use crate::failure::Failure;
use crate::metric::{Metric, MetricChange};
use crate::query::UrlQuery;
use crate::range::PageDateRange;
use crate::shell::{Section, Shell};
use crate::sparkline::sparkline;
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::resource::PortfolioRead;
use tributary_domain::report::{Figures, ReportFigures, ReportQuery};
use tributary_store::AppName;

/// Metrics of each app.
const METRICS: [&str; 6] = [
    "clicks",
    "installs",
    "trials",
    "purchases",
    "netRevenue",
    "payingDevices",
];
/// Maximum number of apps with figures, because each app requires its own report query. The page
/// lists the other apps by name only.
const APPS_READ_MAX: usize = 50;

#[derive(Template)]
#[template(path = "portfolio.html")]
struct PortfolioPage {
    shell: Shell,
    range: PageDateRange,
    query: UrlQuery,
    rows: Vec<Row>,
    totals: Vec<String>,
    others: Vec<AppName>,
    archived: Vec<AppName>,
}

struct Row {
    id: String,
    name: String,
    /// Sparkline of daily installs.
    trend: String,
    figures: Vec<(String, Option<MetricChange>)>,
}

impl PortfolioPage {
    fn presets(&self) -> Vec<(&'static str, &'static str)> {
        PageDateRange::presets()
    }

    fn with_range(&self, word: &str) -> String {
        PageDateRange::with_preset(&self.query, word)
    }

    /// Returns the query string that keeps the date range on an app's page.
    fn days(&self) -> String {
        let query = self.query.with(&[]);
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{mark}{query}")
    }

    fn heads(&self) -> Vec<&'static str> {
        let metrics = Metric::select(&METRICS).into_iter();
        metrics.map(|metric| metric.label).collect()
    }
}

/// Loads an app's daily figures, and the total for the preceding range.
async fn figures(
    handles: &DashboardHandles,
    context: &PageContext<PortfolioRead>,
    app: &AppName,
) -> Result<(Vec<Figures>, Figures), Failure> {
    let range = PageDateRange::of(&context.query, handles.runtime.now(), &app.timezone);
    let days = range.days();
    let count = days.len();
    let question = ReportQuery {
        rows_max: u32::try_from(count + 1).unwrap_or(u32::MAX),
        periods: days
            .into_iter()
            .chain(range.compared.map(|compared| compared.period))
            .collect(),
        group_by: Vec::new(),
        filters: Vec::new(),
    };
    let mut days = vec![Figures::default(); count + 1];
    for row in handles
        .store
        .stats(&context.authorized.analytics_access(), app.id, question)
        .await?
    {
        if let Some(day) = days.get_mut(row.period) {
            day.add(&row.figures, 1);
        }
    }
    let before = days.pop().unwrap_or_default();
    Ok((days, before))
}

const fn without_cost(figures: Figures) -> ReportFigures {
    ReportFigures {
        figures,
        cost: None,
        organic_net: None,
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<PortfolioRead>,
) -> Result<Response, Failure> {
    let (archived, mut active): (Vec<AppName>, Vec<AppName>) =
        context.apps().iter().cloned().partition(|app| app.archived);
    let others = active.split_off(active.len().min(APPS_READ_MAX));
    let (mut rows, mut total) = (Vec::new(), Figures::default());
    for app in &active {
        let (days, before) = figures(&handles, &context, app).await?;
        let mut sum = Figures::default();
        for day in &days {
            sum.add(day, 1);
        }
        total.add(&sum, 1);
        let installs: Vec<i64> = days.iter().map(|day| day.installs).collect();
        rows.push(Row {
            id: app.id.to_string(),
            name: app.name.as_str().to_owned(),
            trend: sparkline(&installs),
            figures: Metric::select(&METRICS)
                .into_iter()
                .map(|one| {
                    let (now, before) = (without_cost(sum), without_cost(before));
                    (one.write_brief(&now), one.change(&before, &now))
                })
                .collect(),
        });
    }
    let utc = tributary_domain::vocabulary::timezone::Timezone::UTC;
    let page = PortfolioPage {
        shell: context.shell(Section::Portfolio),
        range: PageDateRange::of(&context.query, handles.runtime.now(), &utc),
        query: context.query.clone(),
        rows,
        totals: Metric::select(&METRICS)
            .into_iter()
            .map(|one| one.write_brief(&without_cost(total)))
            .collect(),
        others,
        archived,
    };
    Ok(context.page(&page))
}
