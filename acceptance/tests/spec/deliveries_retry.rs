//! Retries of deliveries: `POST …/deliveries/{deliveryId}/retry` and `POST …/deliveries/retry`.

use crate::outbox::{Outcome, connect, settle};
use crate::website::{START, Website, with};
use serde_json::{Value, json};
use std::time::Duration;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus};
use tributary_testkit::{TestServer, on_both_engines};

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Builds an outcome that ends a delivery with this status.
fn ending_with(status: DeliveryStatus) -> Outcome {
    Outcome {
        verdict: AttemptVerdict::Unknown,
        end: Some((status, None)),
        changes: |_| Vec::new(),
    }
}

/// Sends a purchase, settles its delivery with this outcome and returns the delivery.
async fn settled_purchase(
    server: &TestServer,
    site: &Website,
    id: &str,
    outcome: &Outcome,
) -> Value {
    site.send_accepted(&site.purchase(id, "1")).await;
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

fn retry_path(delivery: &Value) -> String {
    format!("/deliveries/{}/retry", delivery["id"].as_str().unwrap())
}

/// Retries all deliveries that match the filter and returns how many.
async fn retry_matching(site: &Website, filter: Value) -> Value {
    let answer = site.call("POST", "/deliveries/retry", filter).await;
    let data = answer.expect(200).data();
    assert_eq!(data["hasMore"], false);
    data["retried"].clone()
}

on_both_engines! {
    async fn retries_deliveries_that_did_not_succeed(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        for status in DeliveryStatus::ALL.iter().filter(|status| status.can_be_retried()) {
            let before = settled_purchase(&server, &site, status.as_str(), &ending_with(*status)).await;
            assert_eq!(before["status"], status.as_str());
            let after = site.call("POST", &retry_path(&before), Value::Null).await.expect(200).data();
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

    async fn does_not_retry_pending_or_delivered_ones(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        let arrived = settled_purchase(&server, &site, "arrived", &Outcome::DELIVERED).await;
        let validated = settled_purchase(&server, &site, "validated", &ending_with(DeliveryStatus::Validated)).await;
        site.send_accepted(&site.purchase("waits", "1")).await;
        let waiting = site.call("GET", "/deliveries?eventId=waits", Value::Null).await.data()[0].clone();
        for delivery in [&arrived, &validated, &waiting] {
            let answer = site.call("POST", &retry_path(delivery), Value::Null).await.expect(409);
            assert_eq!((answer.code(), &answer.json()["error"]["retryable"]), ("delivery_not_retryable".to_owned(), &json!(false)));
            assert_eq!(read(&site, delivery["id"].as_str().unwrap()).await, *delivery);
        }
        assert_eq!(retry_matching(&site, json!({"network": "network_a"})).await, 0);
    }

    async fn retries_many_deliveries_by_filter(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        site.send_accepted(&site.purchase("old", "1")).await;
        server.clock.advance(Duration::from_hours(2 * 24));
        let later = |id: &str| with(&site.purchase(id, "1"), "timestampMs", START + 2 * DAY);
        for id in ["a", "b", "c"] {
            site.send_accepted(&later(id)).await;
        }
        assert_eq!(settle(&server, &site.app, &Outcome::FAILED).await.len(), 4);
        site.send_accepted(&later("expired")).await;
        assert_eq!(settle(&server, &site.app, &ending_with(DeliveryStatus::Expired)).await.len(), 1);
        let day = json!({"from": "2026-01-01", "to": "2026-01-01", "timezone": "UTC"});
        for (filter, expected) in [
            (json!({"network": "network_c"}), 0), (json!({"eventId": "unknown"}), 0),
            (json!({"eventId": "a", "status": "expired"}), 0), (json!({"eventId": "a"}), 1), (json!({"eventId": "a"}), 0),
            (day, 1), (json!({"status": "failed", "network": null}), 2), (json!({"from": "2026-01-03"}), 1),
        ] {
            assert_eq!(retry_matching(&site, filter.clone()).await, expected, "{filter}");
        }
        let pending = site.call("GET", "/deliveries?status=pending", Value::Null).await.data();
        assert_eq!(pending.as_array().unwrap().len(), 5);
    }

    async fn a_bulk_retry_requires_a_valid_filter(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        settled_purchase(&server, &site, "a", &Outcome::FAILED).await;
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
        assert_eq!(failed.as_array().unwrap().len(), 1, "no delivery was retried");
    }
}
