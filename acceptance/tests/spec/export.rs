//! Exports (`GET /api/v1/apps/{appId}/export`) of more than the server reads at a time. What is in a line is compared in
//! `reports`.

use super::track::Sdk;
use serde_json::{Value, json};
use tributary_testkit::on_both_engines;

/// 2026-01-01T00:00:00Z, where the clock of every test begins.
const START: i64 = 1_767_225_600_000;
/// Requests of a hundred events: more than two parts, and not a whole number of them.
const REQUESTS: i64 = 45;

on_both_engines! {
    async fn an_export_of_many_parts_has_everything_once_and_in_order(engine: Engine) {
        let sdk = Sdk::start(engine).await;
        sdk.configure("d1", json!({})).await;
        for request in 0..REQUESTS {
            // Those sent first happened last.
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
            let ids: Vec<String> = text.lines().filter_map(|line| given_id(format, line)).collect();
            assert_eq!(ids, expected, "{format}");
        }
    }
}

/// The id that the sender gave, of a line of an event that is no install.
fn given_id(format: &str, line: &str) -> Option<String> {
    if format == "csv" {
        let fields: Vec<&str> = line.split(',').collect();
        return (fields[2] == "open").then(|| fields[1].to_owned());
    }
    let event: Value = serde_json::from_str(line).unwrap();
    (event["name"] == "open").then(|| event["eventId"].as_str().unwrap().to_owned())
}
