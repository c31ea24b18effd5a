//! `GET /apps/{app}` — an app's overview: key metrics, chart, top lists, funnel and delivery
//! health.

mod anomalies;
mod funnel;
mod kpi;
mod leaders;

pub(crate) use kpi::{KpiChange, METRICS};
pub(crate) use leaders::link_names;

use crate::access::{PageContext, ReportContext};
use crate::chart::Chart;
use crate::failure::Failure;
use crate::network_label::NetworkLabel;
use crate::query::UrlQuery;
use crate::range::{PRESETS, PageDateRange};
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use anomalies::{AnomalyLine, anomalies};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use funnel::{Stage, funnel};
use kpi::{Kpi, METRIC_DEFAULT, is_new};
use leaders::{TopList, figures_by, leaders, table};
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
    tables: Vec<TopList>,
    funnel: Vec<Stage>,
    /// Cost metrics; empty without cost data.
    costs: Vec<Kpi>,
    /// Number of events from billing providers, and the share of them that were matched to a
    /// device.
    billing: Option<(String, String)>,
    health: Vec<(NetworkLabel, String, String, String)>,
    /// Number of held installs, if any.
    held: Option<String>,
    anomalies: Vec<AnomalyLine>,
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

    /// Returns the Explore query for a top list.
    fn explore(&self, dimension: &str) -> String {
        self.query
            .with(&[("groupBy", Some(dimension)), ("metric", None)])
    }

    /// Returns the Explore query for a top-list row, by day.
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

/// Loads daily figures for the range and for the preceding range.
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

/// Returns the networks' names by identifier.
fn network_names(networks: &[(String, Figures)]) -> BTreeMap<String, String> {
    let name = |id: &str| NetworkLabel::parse(id).map(|label| label.name.to_owned());
    let ids = networks.iter().map(|(id, _)| id);
    ids.filter_map(|id| Some((id.clone(), name(id)?))).collect()
}

/// Loads recent delivery counts by network.
async fn health(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    app: AppId,
) -> Result<Vec<(NetworkLabel, String, String, String)>, Failure> {
    let now = handles.runtime.now();
    let found = handles
        .store
        .delivery_health(&context.authorized, app, now)
        .await?;
    let number = |count: u64| text::count(i64::try_from(count).unwrap_or(i64::MAX));
    let row = |(network, one): (
        tributary_domain::integration::Network,
        tributary_store::IntegrationHealth,
    )| {
        (
            NetworkLabel::of(network),
            number(one.delivered),
            number(one.failed),
            number(one.pending),
        )
    };
    Ok(found.into_iter().map(row).collect())
}

/// Returns the cost metrics; empty without cost data.
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
                is_new: false,
            }
        };
    let cost = |one: &ReportFigures| one.cost.map(Amount::from_micros);
    Ok(vec![
        kpi("cost", "Cost", cost, text::usd_brief),
        kpi("cpi", "Cost per install", ReportFigures::cpi, text::usd),
        kpi("roas", "ROAS", ReportFigures::roas, text::ratio),
    ])
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

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let caller = &context.authorized;
    let range = PageDateRange::of(&context.query, handles.runtime.now(), &app.timezone);
    let links_and_campaigns = [Dimension::Link, Dimension::Campaign];
    let ((days, days_before), networks, credited, health, billing) = tokio::try_join!(
        by_day(&handles, caller, app.id, &range),
        figures_by(&handles, caller, app.id, &range, &[Dimension::Network]),
        figures_by(&handles, caller, app.id, &range, &links_and_campaigns),
        health(&handles, &context, app.id),
        billing(&handles, caller, app.id, &range),
    )?;
    let (total, before) = (sum(days.iter()), sum(days_before.iter()));
    let requested = context.query.get("metric");
    let metric = METRICS.iter().find(|one| Some(one.word) == requested);
    let metric = metric.unwrap_or(&METRICS[METRIC_DEFAULT]);
    let values = |days: &[Figures]| days.iter().map(metric.of).collect::<Vec<i64>>();
    let links = leaders(&credited, 0);
    let link_names =
        link_names(&handles, caller, app.id, links.iter().map(|(link, _)| link)).await?;
    let none = BTreeMap::new();
    let networks = leaders(&networks, 0);
    let network_names = network_names(&networks);
    let shell = context.shell(Section::Overview);
    let page = OverviewPage {
        costs: costs(&handles, caller, app.id, &range, [total, before]).await?,
        billing,
        health,
        anomalies: anomalies(&handles, caller, app).await?,
        shell,
        query: context.query.clone(),
        kpis: METRICS
            .iter()
            .map(|one| Kpi {
                word: one.word,
                label: one.label,
                value: one.unit.write((one.of)(&total)),
                change: KpiChange::of((one.of)(&before), (one.of)(&total)),
                is_new: is_new((one.of)(&before), (one.of)(&total)),
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
            table("Networks", "network", networks, &network_names),
            table("Campaigns", "campaign", leaders(&credited, 1), &none),
            table("Links", "link", links, &link_names),
        ],
        funnel: funnel(&total),
        held: held(total.held_installs),
        is_empty: total.is_zero() && before.is_zero(),
        range,
    };
    Ok(context.page(&page))
}
