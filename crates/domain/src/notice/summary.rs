//! What messages say. The figures are those of the REST overview.

use super::message::one_line;
use super::{Message, MessageTable, MessageValue, Threshold, ThresholdCondition};
use crate::app::App;
use crate::attribution::CreditedNetwork;
use crate::forwarding::alert::{Alert, AlertKind};
use crate::integration::Network;
use crate::report::ReportFigures;
use crate::report::metric::Metric;
use crate::report::number_text;
use crate::report::range::DayRange;
use crate::vocabulary::calendar::{format_local, to_date};
use crate::vocabulary::day::Day;
use crate::vocabulary::money::Amount;

/// Metrics of a summary, in this order.
const SUMMARY_METRICS: [&str; 11] = [
    "cost",
    "clicks",
    "installs",
    "organicInstalls",
    "paidCpi",
    "netRevenue",
    "paidRoas",
    "payingDevices",
    "trials",
    "subscriptions",
    "refunds",
];
/// Metrics of the table by network.
const NETWORK_METRICS: [&str; 4] = ["installs", "cost", "netRevenue", "paidRoas"];

/// What a summary is about.
#[derive(Debug)]
pub struct SummaryFacts<'a> {
    /// The days.
    pub range: &'a DayRange,
    /// Figures of the days.
    pub now: &'a ReportFigures,
    /// Figures of as many days before.
    pub before: &'a ReportFigures,
    /// Figures by network.
    pub networks: &'a [(String, ReportFigures)],
}

fn date(day: Day) -> String {
    to_date(day).map_or_else(
        || day.to_string(),
        |date| date.strftime("%-d %b %Y").to_string(),
    )
}

fn days(from: Day, to: Day) -> String {
    if from == to {
        date(to)
    } else {
        format!("{} to {}", date(from), date(to))
    }
}

fn overview_link(base_url: &str, app: &App, range: &DayRange) -> String {
    let (from, to) = (range.from, range.to);
    format!("{base_url}/apps/{}?from={from}&to={to}", app.id)
}

fn footer(base_url: &str, app: &App) -> String {
    format!(
        "You get this message because of a notice of the app {}. Change or stop it at \
         {base_url}/apps/{}/notices",
        app.name.as_str(),
        app.id
    )
}

fn value(metric: &Metric, now: &ReportFigures, before: Option<&ReportFigures>) -> MessageValue {
    MessageValue {
        metric: metric.word,
        label: metric.label.to_owned(),
        value: metric.write(now),
        change: before.and_then(|before| Some(metric.change(before, now)?.text)),
        plain: metric.plain(now),
    }
}

/// Writes a summary.
pub fn summary_message(base_url: &str, app: &App, facts: &SummaryFacts<'_>) -> Message {
    let range = facts.range;
    let when = days(range.from, range.to);
    let figures = &facts.now.figures;
    let (installs, net) = (figures.installs, Amount::from_micros(figures.net_micros()));
    let compared = facts.range.preceding();
    let metrics = Metric::select(&SUMMARY_METRICS);
    let by_network = Metric::select(&NETWORK_METRICS);
    let row = |(network, figures): &(String, ReportFigures)| {
        let known = CreditedNetwork::parse(network);
        let name = known.map_or_else(|| network.clone(), |known| known.name().to_owned());
        let cells = by_network.iter().map(|metric| metric.write(figures));
        std::iter::once(name).chain(cells).collect()
    };
    let titles = by_network.iter().map(|metric| metric.label);
    Message {
        subject: one_line(&format!(
            "{}: {} installs and {} net revenue, {when}",
            app.name.as_str(),
            number_text::count(installs),
            number_text::usd(net)
        )),
        lines: vec![
            format!("Figures of {} for {when}.", app.name.as_str()),
            format!(
                "Changes compare with {}. Days follow the time zone {}.",
                days(compared.from, compared.to),
                range.zone.as_str()
            ),
        ],
        values: metrics
            .iter()
            .map(|metric| value(metric, facts.now, Some(facts.before)))
            .collect(),
        table: (!facts.networks.is_empty()).then(|| MessageTable {
            head: std::iter::once("Network").chain(titles).collect(),
            rows: facts.networks.iter().map(row).collect(),
        }),
        link: overview_link(base_url, app, range),
        footer: footer(base_url, app),
    }
}

/// Writes a message about a metric beyond its limit. The value is in millionths.
pub fn threshold_message(
    base_url: &str,
    app: &App,
    threshold: &Threshold,
    range: &DayRange,
    is_running: bool,
    micros: i64,
) -> Message {
    let (metric, limit) = (threshold.metric, threshold.write(threshold.value.micros()));
    let from_network = threshold.network.map(CreditedNetwork::name);
    let from_network = from_network.map_or_else(String::new, |name| format!(" of {name}"));
    let (when, so_far) = (
        days(range.from, range.to),
        if is_running { " so far" } else { "" },
    );
    let side = match threshold.condition {
        ThresholdCondition::Over => "over",
        ThresholdCondition::Under => "under",
    };
    let found = threshold.write(micros);
    let label = format!("{}{from_network}", metric.label);
    // Only an example is written for a value within the limit.
    let example = (!threshold.is_beyond(micros)).then(|| {
        format!("Example: {label} is not {side} {limit} now, so this message would not be sent.")
    });
    let lines = [
        format!("{label}: {found}, {when}{so_far}."),
        format!("This message is sent when {label} is {side} {limit}."),
    ];
    Message {
        subject: one_line(&format!(
            "{}: {label} {side} {limit}, {when}",
            app.name.as_str()
        )),
        lines: example.into_iter().chain(lines).collect(),
        values: vec![MessageValue {
            metric: metric.word,
            label,
            value: found,
            change: None,
            plain: Amount::from_micros(micros).to_string(),
        }],
        table: None,
        link: overview_link(base_url, app, range),
        footer: footer(base_url, app),
    }
}

/// Writes a message about an alert.
pub fn alert_message(base_url: &str, app: &App, alert: &Alert) -> Message {
    let name = app.name.as_str();
    let network = alert.network.map(Network::name);
    let (title, page) = match (alert.kind, network) {
        (AlertKind::IntegrationPaused, Some(network)) => (
            format!("integration with {network} paused"),
            "/integrations",
        ),
        (AlertKind::IntegrationPaused, None) => ("integration paused".to_owned(), "/integrations"),
        (AlertKind::DeliveriesFailing, _) => ("deliveries fail".to_owned(), "/deliveries"),
        (AlertKind::RatesStale, _) => ("exchange rates are old".to_owned(), ""),
        (AlertKind::TrafficAnomaly, _) => ("unusual traffic".to_owned(), ""),
    };
    Message {
        subject: one_line(&format!("{name}: {title}")),
        lines: vec![
            alert.message.clone(),
            format!("Noticed at {}.", format_local(alert.at, &app.timezone)),
        ],
        values: Vec::new(),
        table: None,
        link: format!("{base_url}/apps/{}{page}", app.id),
        footer: footer(base_url, app),
    }
}
