//! `GET /apps/{app}` — how the app does: figures with their change, networks, deliveries.

use crate::access::Reader;
use crate::failure::Failure;
use crate::shell::{Section, Shell};
use crate::state::Handles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::time::Duration;
use tributary_domain::access::{AnalyticsRead, AppsRead, Environment};
use tributary_domain::report::Figures;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

/// The period that is looked at.
const PERIOD: Duration = Duration::from_hours(30 * 24);

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    shell: Shell,
    kpis: Vec<Kpi>,
    networks: Vec<NetworkRow>,
    health: Vec<(&'static str, String, String, String)>,
    is_empty: bool,
}

/// A figure and how it changed.
pub(crate) struct Kpi {
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

struct NetworkRow {
    network: String,
    clicks: String,
    installs: String,
    purchases: String,
    revenue: String,
}

fn sum(rows: &[(String, Figures)]) -> Figures {
    let of = |read: fn(&Figures) -> i64| rows.iter().map(|(_, figures)| read(figures)).sum();
    Figures {
        clicks: of(|one| one.clicks),
        installs: of(|one| one.installs),
        trials: of(|one| one.trials),
        purchases: of(|one| one.purchases),
        events: of(|one| one.events),
        paying_devices: of(|one| one.paying_devices),
        revenue_micros: of(|one| one.revenue_micros),
        refunded_micros: of(|one| one.refunded_micros),
        ..Figures::default()
    }
}

const fn net(figures: &Figures) -> i64 {
    figures.revenue_micros.saturating_sub(figures.refunded_micros)
}

fn kpis(now: &Figures, before: &Figures) -> Vec<Kpi> {
    let count = |label, of: fn(&Figures) -> i64| Kpi {
        label,
        value: text::count(of(now)),
        change: Change::of(of(before), of(now)),
    };
    vec![
        count("Clicks", |one| one.clicks),
        count("Installs", |one| one.installs),
        count("Trials", |one| one.trials),
        count("Purchases", |one| one.purchases),
        Kpi {
            label: "Net revenue",
            value: text::usd(Amount::from_micros(net(now))),
            change: Change::of(net(before), net(now)),
        },
        count("New payers", |one| one.paying_devices),
    ]
}

/// The page.
pub(crate) async fn show(
    State(handles): State<Handles>,
    reader: Reader<AnalyticsRead>,
) -> Result<Response, Failure> {
    let app = reader.app()?.id;
    let now = handles.source.now();
    let span = i64::try_from(PERIOD.as_millis()).unwrap_or(i64::MAX);
    let back = |times: i64| Timestamp::from_millis(now.as_millis() - times * span);
    let (caller, store) = (&reader.authorized, &handles.store);
    let rows = store.figures_by_network(caller, app, back(1), now).await?;
    let earlier = store.figures_by_network(caller, app, back(2), back(1)).await?;
    let (total, before) = (sum(&rows), sum(&earlier));
    let shell = reader.shell(Section::Overview);
    let health = if shell.sees_apps {
        let caller = reader.visitor.authorize::<AppsRead>(Environment::Live)?;
        store.integration_health(&caller, app, now).await?
    } else {
        Vec::new()
    };
    let number = |count: u64| text::count(i64::try_from(count).unwrap_or(i64::MAX));
    let page = OverviewPage {
        shell,
        kpis: kpis(&total, &before),
        is_empty: total == Figures::default(),
        networks: rows
            .into_iter()
            .map(|(network, figures)| NetworkRow {
                network,
                clicks: text::count(figures.clicks),
                installs: text::count(figures.installs),
                purchases: text::count(figures.purchases),
                revenue: text::usd(Amount::from_micros(net(&figures))),
            })
            .collect(),
        health: health
            .into_iter()
            .map(|(network, one)| {
                let figures = (number(one.delivered), number(one.failed), number(one.pending));
                (network.as_str(), figures.0, figures.1, figures.2)
            })
            .collect(),
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
        assert_eq!(change.as_ref().map(|change| change.words.as_str()), expected);
    }
}
