//! Devices and websites whose clocks are years off. Each event is rejected with a clear message, or
//! taken as documented, and the figures stay consistent.

use crate::billing::Shop;
use crate::website::START;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

const MINUTE: i64 = 60_000;
/// 1970, 2010, the last moment of 2014, 2035, 2100, and the limits of the type.
const TIMES: [(&str, i64); 9] = [
    ("1970", 0),
    ("before 1970", -86_400_000),
    ("2010", 1_262_304_000_000),
    ("2014", 1_420_070_399_999),
    ("2035", 2_051_222_400_000),
    ("2100", 4_102_444_800_000),
    ("seconds", 1_767_225_600),
    ("smallest", i64::MIN),
    ("largest", i64::MAX),
];

/// Returns whether the documented rule takes a time.
fn is_taken(time: i64) -> bool {
    time >= 1_420_070_400_000
}

fn event(name: &str, time: i64) -> Value {
    json!({
        "eventId": name, "name": "purchase", "timestampMs": time, "revenue": "2.50", "currency": "USD",
    })
}

on_both_engines! {
    async fn events_of_wrong_clocks_are_taken_or_rejected_one_by_one(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::without_billing(&server).await;
        shop.install("phone-1").await;
        server.clock.advance(Duration::from_hours(1));
        // One batch, between two events with the right time.
        let right = START + 30 * MINUTE;
        let mut events = vec![event("first", right)];
        events.extend(TIMES.map(|(name, time)| event(name, time)));
        events.push(event("last", right));
        let body = json!({"deviceId": "phone-1", "events": events});
        let sent = shop.track("events", body.clone()).await.expect(202).data();
        let sent = sent.as_array().unwrap();
        let mut taken = 2;
        for ((name, time), answer) in TIMES.iter().zip(&sent[1..]) {
            if is_taken(*time) {
                assert_eq!(answer["status"], "accepted", "{name}: {answer}");
                taken += 1;
            } else {
                assert_eq!(answer["status"], "rejected", "{name}: {answer}");
                let text = answer["error"].to_string();
                assert!(text.contains("timestampMs") && text.contains("2015"), "{name}: {text}");
            }
        }
        assert_eq!((&sent[0]["status"], &sent[10]["status"]), (&json!("accepted"), &json!("accepted")));
        // Times that are too late are clamped: ten minutes after the arrival at most.
        let log = shop.log().await;
        let now = START + 3 * 60 * MINUTE;
        for one in log.iter().filter(|one| one["name"] == "purchase") {
            let time = one["timestampMs"].as_i64().unwrap();
            assert!((START..now).contains(&time), "{one}");
        }
        let path = format!("{}/stats?groupBy=day&from=2025-12-31&to=2026-01-02&timezone=UTC", shop.app);
        let report = server.get(&path, &shop.key).await.expect(200).json();
        assert_eq!(report["meta"]["totals"]["purchases"], taken);
        let rows: i64 = report["data"].as_array().unwrap().iter().map(|row| row["purchases"].as_i64().unwrap()).sum();
        assert_eq!(rows, taken);
        // The clock is right now. The repeated batch changes nothing.
        let again = shop.track("events", body).await.expect(202).data();
        for (one, first) in again.as_array().unwrap().iter().zip(sent) {
            let expected = if first["status"] == "accepted" { "duplicate" } else { "rejected" };
            assert_eq!(one["status"], expected, "{one}");
        }
    }

    async fn installs_of_wrong_clocks_are_recorded(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::without_billing(&server).await;
        server.clock.advance(Duration::from_hours(1));
        // The Play Store's times in seconds, by the device's clock and by Google's. A 4xx would lose the
        // install for good, so times that make no sense are ignored.
        for (number, (name, time)) in TIMES.into_iter().enumerate() {
            let seconds = time / 1_000;
            let body = json!({
                "deviceId": format!("device-{number}"), "platform": "android",
                "installReferrer": {
                    "referrer": "utm_source=google-play", "clickAtSeconds": seconds, "installBeginAtSeconds": seconds,
                    "clickAtServerSeconds": seconds, "installBeginAtServerSeconds": seconds,
                },
            });
            let answer = shop.track("configure", body).await;
            assert_eq!(answer.status, 200, "{name}: {answer:?}");
        }
        let installs: Vec<Value> = shop.log().await.into_iter().filter(|one| one["name"] == "install").collect();
        assert_eq!(installs.len(), TIMES.len());
        for one in &installs {
            let time = one["timestampMs"].as_i64().unwrap();
            assert!((START..START + 3 * 60 * MINUTE).contains(&time), "{one}");
        }
        let path = format!("{}/stats?groupBy=day&from=2025-12-31&to=2026-01-02&timezone=UTC", shop.app);
        let report = server.get(&path, &shop.key).await.expect(200).json();
        assert_eq!(report["meta"]["totals"]["installs"], TIMES.len(), "installs count at their arrival");
    }

    async fn website_events_of_wrong_clocks_are_refused(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = crate::website::Website::open(&server).await;
        for (name, time) in TIMES {
            let answer = site.send(&crate::website::with(&site.purchase(name, "2.50"), "timestampMs", time)).await;
            let answer = answer.expect(422);
            assert_eq!(answer.faults(), [("timestampMs".to_owned(), "out_of_range".to_owned())], "{name}: {answer:?}");
        }
        site.send_accepted(&site.purchase("right", "2.50")).await;
        assert_eq!(site.log().await.len(), 1);
    }
}
