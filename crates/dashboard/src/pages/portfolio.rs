//! `GET /portfolio` — every app of the organization side by side, each with its course and its change.

use crate::access::PageContext;
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
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::{Figures, ReportQuery};
use tributary_store::AppName;

/// Apps whose figures are read for one page. The others are named.
const APPS_READ_MAX: usize = 50;

#[derive(Template)]
#[template(path = "portfolio.html")]
struct PortfolioPage {
    shell: Shell,
    range: PageDateRange,
    query: UrlQuery,
    rows: Vec<Row>,
    totals: Vec<String>,
    archived: Vec<AppName>,
}

struct Row {
    id: String,
    name: String,
    /// Installs by day.
    course: String,
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

    /// What an app's page is to show the same days by.
    fn days(&self) -> String {
        let query = self.query.with(&[]);
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{mark}{query}")
    }

    fn heads(&self) -> [&'static str; 6] {
        METRICS.map(|metric| metric.label)
    }
}

/// An app's figures by day, and those of the days before together.
async fn figures(
    handles: &DashboardHandles,
    reader: &PageContext<AnalyticsRead>,
    app: &AppName,
) -> Result<(Vec<Figures>, Figures), Failure> {
    let range = PageDateRange::of(&reader.query, handles.source.now(), &app.timezone);
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
        .stats(&reader.authorized, app.id, question)
        .await?
    {
        if let Some(day) = days.get_mut(row.period) {
            day.add(&row.figures, 1);
        }
    }
    let before = days.pop().unwrap_or_default();
    Ok((days, before))
}

/// The page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let (archived, present): (Vec<AppName>, Vec<AppName>) =
        reader.apps().iter().cloned().partition(|app| app.archived);
    let (mut rows, mut total) = (Vec::new(), Figures::default());
    for app in present.iter().take(APPS_READ_MAX) {
        let (days, before) = figures(&handles, &reader, app).await?;
        let mut sum = Figures::default();
        for day in &days {
            sum.add(day, 1);
        }
        total.add(&sum, 1);
        let installs: Vec<i64> = days.iter().map(|day| day.installs).collect();
        rows.push(Row {
            id: app.id.to_string(),
            name: app.name.as_str().to_owned(),
            course: sparkline(&installs),
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
        shell: reader.shell(Section::Portfolio),
        range: PageDateRange::of(&reader.query, handles.source.now(), &utc),
        query: reader.query.clone(),
        rows,
        totals: METRICS
            .iter()
            .map(|one| one.unit.write((one.of)(&total)))
            .collect(),
        archived,
    };
    Ok(reader.page(&page))
}
