//! `GET /portfolio` — the organization's apps, each with its trend and change.

use crate::access::{PageContext, ReportContext};
use crate::chart::sparkline;
use crate::failure::Failure;
use crate::pages::app::overview::{KpiChange, METRICS};
use crate::query::UrlQuery;
use crate::range::{PRESETS, PageDateRange};
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::resource::PortfolioRead;
use tributary_domain::report::{Figures, ReportQuery};
use tributary_store::AppName;

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
    figures: Vec<(String, Option<KpiChange>)>,
}

impl PortfolioPage {
    fn presets(&self) -> [(&'static str, &'static str, i32); 4] {
        PRESETS
    }

    fn with_range(&self, word: &str) -> String {
        self.query
            .with(&[("range", Some(word)), ("from", None), ("to", None)])
    }

    /// Returns the query string that keeps the date range on an app's page.
    fn days(&self) -> String {
        let query = self.query.with(&[]);
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{mark}{query}")
    }

    fn heads(&self) -> [&'static str; 6] {
        METRICS.map(|metric| metric.label)
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
        periods: days.into_iter().chain([range.before().whole()]).collect(),
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
            figures: METRICS
                .iter()
                .map(|one| {
                    let (now, before) = ((one.of)(&sum), (one.of)(&before));
                    (one.unit.write(now), KpiChange::of(before, now))
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
        totals: METRICS
            .iter()
            .map(|one| one.unit.write((one.of)(&total)))
            .collect(),
        others,
        archived,
    };
    Ok(context.page(&page))
}
