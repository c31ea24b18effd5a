//! Exports (`GET /api/v1/apps/{appId}/export`) with more rows than the server reads at a time. The
//! content of a line is tested in `reports.rs`.

use super::track::SdkFixture;
use serde_json::{Value, json};
use tributary_testkit::on_both_engines;

/// Start time of every test clock, 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600_000;
/// Requests of a hundred events each: more than two chunks, the last one incomplete.
const REQUESTS: i64 = 45;

on_both_engines! {
    async fn a_chunked_export_has_every_event_once_and_in_order(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.configure("d1", json!({})).await;
        for request in 0..REQUESTS {
            // Events sent first have the latest timestamps.
            let event = |number: i64| {
                let at = START - request * 100_000 - number * 1_000;
                json!({"eventId": format!("{request}-{number}"), "name": "open", "timestampMs": at})
            };
            sdk.send("d1", (0..100).map(event).collect()).await;
        }
        let mut expected: Vec<String> = (0..REQUESTS * 100).map(|event| format!("{}-{}", event / 100, event % 100)).collect();
        expected.reverse();
        for format in ["ndjson", "csv"] {
            let path = format!("{}/export?format={format}&from=2025-12-01&to=2026-01-01&timezone=UTC", sdk.app);
            let text = sdk.server.get(&path, &sdk.key).await.expect(200).text;
            let ids: Vec<String> = text.lines().filter_map(|line| event_id(format, line)).collect();
            assert_eq!(ids, expected, "{format}");
        }
    }
}

/// Returns the `eventId` of a line, unless it is the install.
fn event_id(format: &str, line: &str) -> Option<String> {
    if format == "csv" {
        let fields: Vec<&str> = line.split(',').collect();
        return (fields[2] == "open").then(|| fields[1].to_owned());
    }
    let event: Value = serde_json::from_str(line).unwrap();
    (event["name"] == "open").then(|| event["eventId"].as_str().unwrap().to_owned())
}
