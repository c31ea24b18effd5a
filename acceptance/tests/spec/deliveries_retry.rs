//! Deliveries that are tried again: `POST …/deliveries/{deliveryId}/retry` and `POST …/deliveries/retry`.

use crate::outbox::{Outcome, connect, settle};
use crate::website::{START, Website, with};
use serde_json::{Value, json};
use std::time::Duration;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus};
use tributary_testkit::{TestServer, on_both_engines};

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// An end that an operator may not be content with.
fn ended(status: DeliveryStatus) -> Outcome {
    Outcome {
        verdict: AttemptVerdict::Unknown,
        ends: Some((status, None)),
        state: |_, _| {},
    }
}

/// A purchase whose delivery has come to this end; gives the delivery.
async fn sent(server: &TestServer, site: &Website, id: &str, outcome: &Outcome) -> Value {
    site.accepted(&site.purchase(id, "1")).await;
    let ids = settle(server, &site.app, outcome).await;
    assert_eq!(ids.len(), 1);
    read(site, &ids[0]).await
}

async fn read(site: &Website, id: &str) -> Value {
    let path = format!("/deliveries/{id}");
    site.call("GET", &path, Value::Null)
        .await
        .expect(200)
        .data()
}

fn retry(delivery: &Value) -> String {
    format!("/deliveries/{}/retry", delivery["id"].as_str().unwrap())
}

/// Asks for another try of all that fit; gives how many.
async fn retried(site: &Website, filter: Value) -> Value {
    let answer = site.call("POST", "/deliveries/retry", filter).await;
    let data = answer.expect(200).data();
    assert_eq!(data["hasMore"], false);
    data["retried"].clone()
}

on_both_engines! {
    async fn what_came_to_no_good_end_is_tried_again(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        for status in DeliveryStatus::ALL.iter().filter(|status| status.can_be_retried()) {
            let before = sent(&server, &site, status.as_str(), &ended(*status)).await;
            assert_eq!(before["status"], status.as_str());
            let after = site.call("POST", &retry(&before), Value::Null).await.expect(200).data();
            assert_eq!((&after["status"], &after["reason"]), (&json!("pending"), &json!(null)));
            assert!(after["nextAttemptAt"].is_string() && after["settledAt"].is_null(), "{after}");
            for field in ["id", "dedupId", "event", "networkEvent", "attempts", "attemptsMade"] {
                assert_eq!(after[field], before[field], "{field} stays");
            }
            assert_eq!(read(&site, before["id"].as_str().unwrap()).await, after);
            let again = settle(&server, &site.app, &Outcome::DELIVERED).await;
            assert_eq!(again, [before["id"].as_str().unwrap()]);
        }
        let log = server.get("/api/v1/audit-log", &site.key).await.expect(200).data();
        let actions = log.as_array().unwrap().iter().filter(|entry| entry["action"] == "deliveries.retried");
        assert_eq!(actions.count(), 3, "{log}");
    }

    async fn what_waits_or_arrived_is_not(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        let arrived = sent(&server, &site, "arrived", &Outcome::DELIVERED).await;
        let validated = sent(&server, &site, "validated", &ended(DeliveryStatus::Validated)).await;
        site.accepted(&site.purchase("waits", "1")).await;
        let waits = site.call("GET", "/deliveries?eventId=waits", Value::Null).await.data()[0].clone();
        for delivery in [&arrived, &validated, &waits] {
            let answer = site.call("POST", &retry(delivery), Value::Null).await.expect(409);
            assert_eq!((answer.code(), &answer.json()["error"]["retryable"]), ("delivery_not_retryable".to_owned(), &json!(false)));
            assert_eq!(read(&site, delivery["id"].as_str().unwrap()).await, *delivery);
        }
        assert_eq!(retried(&site, json!({"network": "network_a"})).await, 0);
    }

    async fn many_are_tried_again_by_what_they_have_in_common(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        site.accepted(&site.purchase("old", "1")).await;
        server.clock.advance(Duration::from_hours(2 * 24));
        let later = |id: &str| with(&site.purchase(id, "1"), "timestampMs", START + 2 * DAY);
        for id in ["a", "b", "c"] {
            site.accepted(&later(id)).await;
        }
        assert_eq!(settle(&server, &site.app, &Outcome::FAILED).await.len(), 4);
        site.accepted(&later("expired")).await;
        assert_eq!(settle(&server, &site.app, &ended(DeliveryStatus::Expired)).await.len(), 1);
        let day = json!({"from": "2026-01-01", "to": "2026-01-01", "timezone": "UTC"});
        for (filter, expected) in [
            (json!({"network": "network_c"}), 0), (json!({"eventId": "nobody"}), 0),
            (json!({"eventId": "a", "status": "expired"}), 0), (json!({"eventId": "a"}), 1), (json!({"eventId": "a"}), 0),
            (day, 1), (json!({"status": "failed", "network": null}), 2), (json!({"from": "2026-01-03"}), 1),
        ] {
            assert_eq!(retried(&site, filter.clone()).await, expected, "{filter}");
        }
        let pending = site.call("GET", "/deliveries?status=pending", Value::Null).await.data();
        assert_eq!(pending.as_array().unwrap().len(), 5);
    }

    async fn nobody_tries_everything_again_by_accident(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        sent(&server, &site, "a", &Outcome::FAILED).await;
        for (body, field, code) in [
            (json!({}), "body", "required"), (json!({"timezone": "UTC"}), "body", "required"),
            (json!({"status": null, "network": null, "eventId": null, "from": null, "to": null}), "body", "required"),
            (json!([]), "body", "wrong_type"), (json!({"status": "delivered"}), "status", "unknown_value"),
            (json!({"status": "pending"}), "status", "unknown_value"), (json!({"status": ["failed"]}), "status", "wrong_type"),
            (json!({"network": "organic"}), "network", "unknown_value"), (json!({"eventId": ""}), "eventId", "too_short"),
            (json!({"eventId": "x".repeat(256)}), "eventId", "too_long"), (json!({"from": "today"}), "from", "invalid_format"),
            (json!({"from": "2026-01-02", "to": "2026-01-01"}), "to", "out_of_range"),
            (json!({"status": "failed", "timezone": "Mars"}), "timezone", "unknown_value"),
        ] {
            let answer = site.call("POST", "/deliveries/retry", body.clone()).await.expect(422);
            assert_eq!(answer.faults()[0], (field.to_owned(), code.to_owned()), "{body}: {answer:?}");
        }
        let unknown = site.call("POST", "/deliveries/retry", json!({"status": "failed", "id": "dlv_x"})).await.expect(422);
        assert_eq!(unknown.code(), "unknown_field");
        let failed = site.call("GET", "/deliveries?status=failed", Value::Null).await.data();
        assert_eq!(failed.as_array().unwrap().len(), 1, "nothing was touched");
    }
}
