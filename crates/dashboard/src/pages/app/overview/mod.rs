//! `GET /apps/{app}` — how the app does: figures with their change, the main chart with the period before behind it,
//! networks, campaigns, links, the funnel, and the health of deliveries.

mod funnel;
mod kpi;
mod leaders;

pub(crate) use kpi::{KpiChange, METRICS};
pub(crate) use leaders::link_names;

use crate::access::PageContext;
use crate::chart::Chart;
use crate::failure::Failure;
use crate::query::UrlQuery;
use crate::range::{PRESETS, PageDateRange};
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use funnel::{Stage, funnel};
use kpi::{Kpi, METRIC_DEFAULT};
use leaders::{Table, figures_by, leaders, table};
use std::collections::BTreeMap;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::report::{Dimension, Figures, ReportFigures, ReportQuery};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::money::Amount;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    shell: Shell,
    range: PageDateRange,
    query: UrlQuery,
    kpis: Vec<Kpi>,
    metric: &'static str,
    chart: Chart,
    tables: Vec<Table>,
    funnel: Vec<Stage>,
    /// What ads cost, where anything was told.
    costs: Vec<Kpi>,
    /// Events that billing providers reported, and how many of them have a device.
    billing: Option<(String, String)>,
    health: Vec<(&'static str, String, String, String)>,
    is_empty: bool,
}

impl OverviewPage {
    fn presets(&self) -> [(&'static str, &'static str, i32); 4] {
        PRESETS
    }

    fn with_range(&self, word: &str) -> String {
        self.query
            .with(&[("range", Some(word)), ("from", None), ("to", None)])
    }

    fn shows(&self, metric: &str) -> bool {
        self.metric == metric
    }

    /// The question of one of the small tables.
    fn explore(&self, dimension: &str) -> String {
        self.query
            .with(&[("groupBy", Some(dimension)), ("metric", None)])
    }

    /// The days of one of its rows.
    fn drill(&self, dimension: &str, value: &str) -> String {
        let changes = [
            ("groupBy", Some("day")),
            (dimension, Some(value)),
            ("metric", None),
        ];
        self.query.with(&changes)
    }

    fn with_metric(&self, word: &str) -> String {
        self.query.with(&[("metric", Some(word))])
    }
}

fn sum<'a>(rows: impl Iterator<Item = &'a Figures>) -> Figures {
    let mut total = Figures::default();
    for figures in rows {
        total.add(figures, 1);
    }
    total
}

/// What is asked of the figures by day: these days, then those before.
async fn by_day(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &PageDateRange,
) -> Result<(Vec<Figures>, Vec<Figures>), Failure> {
    let (now, before) = (range.days(), range.before().days());
    let count = now.len();
    let question = ReportQuery {
        rows_max: u32::try_from(2 * count).unwrap_or(u32::MAX),
        periods: now.into_iter().chain(before).collect(),
        group_by: Vec::new(),
        filters: Vec::new(),
    };
    let mut days = vec![Figures::default(); 2 * count];
    for row in handles.store.stats(caller, app, question).await? {
        if let Some(day) = days.get_mut(row.period) {
            day.add(&row.figures, 1);
        }
    }
    let before = days.split_off(count);
    Ok((days, before))
}

async fn health(
    handles: &DashboardHandles,
    reader: &PageContext<AnalyticsRead>,
    app: AppId,
) -> Result<Vec<(&'static str, String, String, String)>, Failure> {
    let now = handles.source.now();
    let found = handles
        .store
        .delivery_health(&reader.authorized, app, now)
        .await?;
    let number = |count: u64| text::count(i64::try_from(count).unwrap_or(i64::MAX));
    let row = |(network, one): (
        tributary_domain::integration::Network,
        tributary_store::IntegrationHealth,
    )| {
        (
            network.as_str(),
            number(one.delivered),
            number(one.failed),
            number(one.pending),
        )
    };
    Ok(found.into_iter().map(row).collect())
}

/// What ads cost, and what it brought; nothing where nobody told a cost.
async fn costs(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &PageDateRange,
    [now, before]: [Figures; 2],
) -> Result<Vec<Kpi>, Failure> {
    if caller.environment() == Environment::Test {
        return Ok(Vec::new());
    }
    let measured = async |figures, range| {
        let spend = crate::pages::app::spend(handles, caller, app, range).await?;
        let cost = Some(spend.total());
        Ok::<_, Failure>(ReportFigures { figures, cost })
    };
    let now = measured(now, range).await?;
    let before = measured(before, &range.before()).await?;
    if now.cost == Some(0) && before.cost == Some(0) {
        return Ok(Vec::new());
    }
    let kpi =
        |word, label, of: fn(&ReportFigures) -> Option<Amount>, write: fn(Amount) -> String| {
            let (value, before) = (of(&now), of(&before));
            let change = value.zip(before);
            Kpi {
                word,
                label,
                value: value.map_or_else(|| "–".to_owned(), write),
                change: change
                    .and_then(|(now, before)| KpiChange::of(before.micros(), now.micros())),
            }
        };
    let cost = |one: &ReportFigures| one.cost.map(Amount::from_micros);
    Ok(vec![
        kpi("cost", "Cost", cost, text::usd_brief),
        kpi("cpi", "Cost per install", ReportFigures::cpi, text::usd),
        kpi("roas", "ROAS", ReportFigures::roas, text::ratio),
    ])
}

/// How much of what billing providers reported in these days has a device.
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

/// The page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let app = reader.app()?;
    let caller = &reader.authorized;
    let range = PageDateRange::of(&reader.query, handles.source.now(), &app.timezone);
    let links_and_campaigns = [Dimension::Link, Dimension::Campaign];
    let ((days, days_before), networks, credited, health, billing) = tokio::try_join!(
        by_day(&handles, caller, app.id, &range),
        figures_by(&handles, caller, app.id, &range, &[Dimension::Network]),
        figures_by(&handles, caller, app.id, &range, &links_and_campaigns),
        health(&handles, &reader, app.id),
        billing(&handles, caller, app.id, &range),
    )?;
    let (total, before) = (sum(days.iter()), sum(days_before.iter()));
    let asked = reader.query.get("metric");
    let metric = METRICS.iter().find(|one| Some(one.word) == asked);
    let metric = metric.unwrap_or(&METRICS[METRIC_DEFAULT]);
    let values = |days: &[Figures]| days.iter().map(metric.of).collect::<Vec<i64>>();
    let links = leaders(&credited, 0);
    let names = link_names(&handles, caller, app.id, links.iter().map(|(link, _)| link)).await?;
    let none = BTreeMap::new();
    let shell = reader.shell(Section::Overview);
    let page = OverviewPage {
        costs: costs(&handles, caller, app.id, &range, [total, before]).await?,
        billing,
        health,
        shell,
        query: reader.query.clone(),
        kpis: METRICS
            .iter()
            .map(|one| Kpi {
                word: one.word,
                label: one.label,
                value: one.unit.write((one.of)(&total)),
                change: KpiChange::of((one.of)(&before), (one.of)(&total)),
            })
            .collect(),
        metric: metric.word,
        chart: Chart::of(
            metric.label,
            metric.unit,
            &range.labels(),
            &values(&days),
            &values(&days_before),
        ),
        tables: vec![
            table("Networks", "network", leaders(&networks, 0), &none),
            table("Campaigns", "campaign", leaders(&credited, 1), &none),
            table("Links", "link", links, &names),
        ],
        funnel: funnel(&total),
        is_empty: total.is_zero() && before.is_zero(),
        range,
    };
    Ok(reader.page(&page))
}
