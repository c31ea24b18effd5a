//! `GET /apps/{app}` — how the app does: figures with their change, the main chart with the period before behind it,
//! networks, campaigns, links, the funnel, and the health of deliveries.

use crate::access::Reader;
use crate::chart::{Chart, Unit};
use crate::failure::Failure;
use crate::query::Query;
use crate::range::{PRESETS, Range};
use crate::shell::{Section, Shell};
use crate::state::Handles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeMap;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::report::{Dimension, Figures, Measured, StatsQuestion, StatsRow};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::money::Amount;

/// Rows of the small tables.
const TOP_ROWS: usize = 8;
/// Rows that are read for them. They are sorted here, so more are read than shown.
const ROWS_READ_MAX: u32 = 50_000;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    shell: Shell,
    range: Range,
    query: Query,
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

/// A figure and how it changed.
pub(crate) struct Kpi {
    pub(crate) word: &'static str,
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) change: Option<Change>,
}

/// By how much, in words and colours.
pub(crate) struct Change {
    pub(crate) words: String,
    pub(crate) tone: &'static str,
}

impl Change {
    /// From one number to another; nothing where there was none.
    pub(crate) fn of(before: i64, now: i64) -> Option<Self> {
        if before <= 0 {
            return None;
        }
        let tenths = (i128::from(now) - i128::from(before)) * 1_000 / i128::from(before);
        let sign = match tenths {
            1.. => "+",
            0 => "±",
            _ => "−",
        };
        let tenths = tenths.unsigned_abs();
        Some(Self {
            words: format!("{sign}{}.{} %", tenths / 10, tenths % 10),
            tone: match sign {
                "+" => "good",
                "−" => "bad",
                _ => "quiet",
            },
        })
    }
}

/// What the main chart can show.
pub(crate) struct Metric {
    pub(crate) word: &'static str,
    pub(crate) label: &'static str,
    pub(crate) unit: Unit,
    pub(crate) of: fn(&Figures) -> i64,
}

/// The key figures, in their order.
pub(crate) const METRICS: [Metric; 6] = [
    Metric {
        word: "clicks",
        label: "Clicks",
        unit: Unit::Count,
        of: |one| one.clicks,
    },
    Metric {
        word: "installs",
        label: "Installs",
        unit: Unit::Count,
        of: |one| one.installs,
    },
    Metric {
        word: "trials",
        label: "Trials",
        unit: Unit::Count,
        of: |one| one.trials,
    },
    Metric {
        word: "purchases",
        label: "Purchases",
        unit: Unit::Count,
        of: |one| one.purchases,
    },
    Metric {
        word: "revenue",
        label: "Net revenue",
        unit: Unit::Money,
        of: |one| one.net_micros(),
    },
    Metric {
        word: "payers",
        label: "New payers",
        unit: Unit::Count,
        of: |one| one.paying_devices,
    },
];
/// The one that is shown at first.
const METRIC_DEFAULT: usize = 1;

/// A small table: who leads.
struct Table {
    title: &'static str,
    word: &'static str,
    rows: Vec<TableRow>,
}

struct TableRow {
    name: String,
    value: String,
    clicks: String,
    installs: String,
    purchases: String,
    revenue: String,
}

/// A stage of the funnel.
struct Stage {
    label: &'static str,
    value: String,
    /// Of the widest, in tenths of a percent.
    width: i64,
    share: String,
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
    handles: &Handles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &Range,
) -> Result<(Vec<Figures>, Vec<Figures>), Failure> {
    let (now, before) = (range.days(), range.before().days());
    let count = now.len();
    let question = StatsQuestion {
        rows_max: u32::try_from(2 * count).unwrap_or(u32::MAX),
        periods: now.into_iter().chain(before).collect(),
        by: Vec::new(),
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

/// Figures of the whole range by some dimensions.
async fn figures_by(
    handles: &Handles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &Range,
    by: &[Dimension],
) -> Result<Vec<StatsRow>, Failure> {
    let question = StatsQuestion {
        periods: vec![range.whole()],
        by: by.to_vec(),
        filters: Vec::new(),
        rows_max: ROWS_READ_MAX,
    };
    Ok(handles.store.stats(caller, app, question).await?)
}

/// Those that brought the most, by one of the dimensions that rows were asked for.
fn leaders(rows: &[StatsRow], place: usize) -> Vec<(String, Figures)> {
    let mut sums: BTreeMap<&String, Figures> = BTreeMap::new();
    let named = |row: &&StatsRow| !row.values[place].is_empty();
    for row in rows.iter().filter(named) {
        sums.entry(&row.values[place])
            .or_default()
            .add(&row.figures, 1);
    }
    let sums = sums.into_iter();
    let mut leaders: Vec<(String, Figures)> =
        sums.map(|(value, one)| (value.clone(), one)).collect();
    leaders.sort_by_key(|(_, one)| std::cmp::Reverse((one.net_micros(), one.installs, one.clicks)));
    leaders.truncate(TOP_ROWS);
    leaders
}

fn table(
    title: &'static str,
    word: &'static str,
    rows: Vec<(String, Figures)>,
    names: &BTreeMap<String, String>,
) -> Table {
    let row = |(value, figures): (String, Figures)| TableRow {
        name: names.get(&value).cloned().unwrap_or_else(|| value.clone()),
        value,
        clicks: text::count(figures.clicks),
        installs: text::count(figures.installs),
        purchases: text::count(figures.purchases),
        revenue: text::usd(Amount::from_micros(figures.net_micros())),
    };
    Table {
        title,
        word,
        rows: rows.into_iter().map(row).collect(),
    }
}

/// Names of links, by id.
pub(crate) async fn link_names(
    handles: &Handles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    values: impl Iterator<Item = &String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let links: Vec<LinkId> = values
        .filter_map(|value| LinkId::parse(value).ok())
        .collect();
    if links.is_empty() {
        return Ok(BTreeMap::new());
    }
    let names = handles.store.link_names(caller, app, links).await?;
    Ok(names
        .into_iter()
        .map(|(link, name)| (link.to_string(), name))
        .collect())
}

fn funnel(total: &Figures) -> Vec<Stage> {
    let stages = [
        ("Clicks", total.clicks),
        ("Installs", total.installs),
        ("Trials", total.trials),
        ("Purchases", total.purchases),
    ];
    let widest = stages
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0)
        .max(1);
    let mut before: Option<i64> = None;
    stages
        .into_iter()
        .map(|(label, count)| {
            let share = before
                .filter(|before| *before > 0)
                .map(|before| format!("{} of the stage before", text::percent(count, before)))
                .unwrap_or_default();
            before = Some(count);
            Stage {
                label,
                value: text::count(count),
                width: i64::try_from(i128::from(count) * 1_000 / i128::from(widest)).unwrap_or(0),
                share,
            }
        })
        .collect()
}

async fn health(
    handles: &Handles,
    reader: &Reader<AnalyticsRead>,
    app: AppId,
) -> Result<Vec<(&'static str, String, String, String)>, Failure> {
    let now = handles.source.now();
    let caller = reader
        .visitor
        .authorize::<AnalyticsRead>(Environment::Live)?;
    let found = handles.store.delivery_health(&caller, app, now).await?;
    let number = |count: u64| text::count(i64::try_from(count).unwrap_or(i64::MAX));
    let row = |(network, one): (
        tributary_domain::integration::Network,
        tributary_store::Health,
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
    handles: &Handles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &Range,
    [now, before]: [Figures; 2],
) -> Result<Vec<Kpi>, Failure> {
    if caller.environment() == Environment::Test {
        return Ok(Vec::new());
    }
    let measured = async |figures, range| {
        let spend = super::spend(handles, caller, app, range).await?;
        let cost = Some(spend.total());
        Ok::<_, Failure>(Measured { figures, cost })
    };
    let now = measured(now, range).await?;
    let before = measured(before, &range.before()).await?;
    if now.cost == Some(0) && before.cost == Some(0) {
        return Ok(Vec::new());
    }
    let kpi = |word, label, of: fn(&Measured) -> Option<Amount>, write: fn(Amount) -> String| {
        let (value, before) = (of(&now), of(&before));
        let change = value.zip(before);
        Kpi {
            word,
            label,
            value: value.map_or_else(|| "–".to_owned(), write),
            change: change.and_then(|(now, before)| Change::of(before.micros(), now.micros())),
        }
    };
    let cost = |one: &Measured| one.cost.map(Amount::from_micros);
    Ok(vec![
        kpi("cost", "Cost", cost, text::usd_brief),
        kpi("cpi", "Cost per install", Measured::cpi, text::usd),
        kpi("roas", "ROAS", Measured::roas, text::ratio),
    ])
}

/// How much of what billing providers reported in these days has a device.
async fn billing(
    handles: &Handles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &Range,
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
    State(handles): State<Handles>,
    reader: Reader<AnalyticsRead>,
) -> Result<Response, Failure> {
    let app = reader.app()?;
    let caller = &reader.authorized;
    let range = Range::of(&reader.query, handles.source.now(), &app.timezone);
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
                change: Change::of((one.of)(&before), (one.of)(&total)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::more(100, 150, Some("+50.0 %"))]
    #[case::less(3, 2, Some("−33.3 %"))]
    #[case::the_same(5, 5, Some("±0.0 %"))]
    #[case::from_nothing(0, 5, None)]
    fn changes(#[case] before: i64, #[case] now: i64, #[case] expected: Option<&str>) {
        let change = Change::of(before, now);
        assert_eq!(
            change.as_ref().map(|change| change.words.as_str()),
            expected
        );
    }

    #[test]
    fn a_funnel_is_as_wide_as_its_widest_stage() {
        let total = Figures {
            clicks: 50,
            installs: 100,
            trials: 25,
            ..Figures::default()
        };
        let stages = funnel(&total);
        let widths: Vec<i64> = stages.iter().map(|stage| stage.width).collect();
        assert_eq!(widths, [500, 1_000, 250, 0]);
        assert_eq!(stages[2].share, "25.0 % of the stage before");
    }
}
