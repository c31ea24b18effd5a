//! Integration health: `status` and `health`, `POST …/{network}/resume`, and
//! `POST …/{network}/test`.

use crate::outbox::{Outcome, connect, settle};
use crate::website::Website;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_domain::forwarding::AttemptVerdict;
use tributary_domain::forwarding::queue_change::QueueChange;
use tributary_testkit::{TestServer, on_both_engines};

/// Reads the integration and checks that the list shows the same.
async fn read_network_a(site: &Website) -> Value {
    let path = "/integrations/network_a";
    let one = site.call("GET", path, Value::Null).await.expect(200).data();
    let list = site.call("GET", "/integrations", Value::Null).await;
    assert_eq!(list.expect(200).data()[0], one, "the list shows the same");
    one
}

on_both_engines! {
    async fn health_counts_pending_deliveries_and_results_of_the_last_day(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        assert_eq!(read_network_a(&site).await["status"], "not_configured");
        connect(&site).await;
        for (ids, outcome) in [(&["a", "b"][..], &Outcome::DELIVERED), (&["c"], &Outcome::FAILED)] {
            for id in ids {
                site.send_accepted(&site.purchase(id, "1")).await;
            }
            settle(&server, &site.app, outcome).await;
        }
        site.send_accepted(&site.purchase("d", "1")).await;
        let one = read_network_a(&site).await;
        assert_eq!((&one["status"], &one["statusReason"]), (&json!("active"), &json!(null)));
        let last = one["health"]["lastDeliveredAt"].clone();
        assert!(last.as_str().unwrap().starts_with("2026-01-01T00:00:0"), "{last}");
        assert_eq!(one["health"], json!({
            "pending": 1, "delivered24h": 2, "failed24h": 1, "lastDeliveredAt": last, "skipped7d": [],
            "skipped7dStoppedEarly": false,
        }));
        server.clock.advance(Duration::from_hours(25));
        let health = read_network_a(&site).await["health"].clone();
        assert_eq!(health, json!({
            "pending": 1, "delivered24h": 0, "failed24h": 0, "lastDeliveredAt": last, "skipped7d": [],
            "skipped7dStoppedEarly": false,
        }));
        let changed = site.call("PATCH", "/integrations/network_a", json!({"enabled": false})).await.expect(200).data();
        assert_eq!((&changed["status"], &changed["health"]), (&json!("paused"), &health));
    }

    async fn health_counts_skipped_conversions_by_reason(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        for id in ["a", "b"] {
            site.send_accepted(&site.purchase(id, "2000.01")).await;
        }
        site.send_accepted(&site.purchase("c", "1")).await;
        // Refunds are for reporting only and do not count as skipped.
        site.send_accepted(&site.refund("d", "-1", "c")).await;
        let skipped = async |key: &str| {
            let path = format!("{}/integrations/network_a", site.app);
            server.get(&path, key).await.expect(200).data()["health"]["skipped7d"].clone()
        };
        assert_eq!(skipped(&site.key).await, json!([{"reason": "amount_not_forwardable", "count": 2, "events": [{"name": "purchase", "count": 2}]}]));
        assert_eq!(read_network_a(&site).await["health"]["skipped7dStoppedEarly"], false);
        server.clock.advance(Duration::from_hours(7 * 24 + 1));
        assert_eq!(skipped(&site.key).await, json!([]), "a week later");
    }

    async fn a_rejected_credential_pauses_the_integration_until_it_is_resumed(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        site.send_accepted(&site.purchase("a", "1")).await;
        let refused = Outcome {
            verdict: AttemptVerdict::Pause, end: None,
            changes: |at| vec![QueueChange::Stopped {
                at, code: "190".to_owned(), message: Some("Invalid OAuth access token".to_owned()),
            }],
        };
        settle(&server, &site.app, &refused).await;
        let paused = read_network_a(&site).await;
        assert_eq!(paused["status"], "paused");
        let reason = paused["statusReason"].as_str().unwrap();
        assert!(reason.contains("190") && reason.contains("Invalid OAuth access token"), "{reason}");
        assert_eq!((&paused["enabled"], &paused["health"]["pending"]), (&json!(true), &json!(1)), "deliveries stay pending");
        let path = format!("{}/integrations/network_a/resume", site.app);
        let stale = server.request(Method::POST, &path).bearer_auth(&site.key).header("if-match", "\"99\"");
        assert_eq!(server.send(stale).await.expect(409).code(), "version_conflict");
        assert_eq!(read_network_a(&site).await["status"], "paused");
        let answer = site.call("POST", "/integrations/network_a/resume", Value::Null).await.expect(200);
        assert!(answer.header("etag").is_some());
        assert_eq!((&answer.data()["status"], &answer.data()["health"]["pending"]), (&json!("active"), &json!(1)));
        assert_eq!(read_network_a(&site).await, answer.data());
        let again = site.call("POST", "/integrations/network_a/resume", Value::Null).await.expect(200).data();
        assert_eq!(again["status"], "active", "resuming an active integration changes nothing");
        let log = server.get("/api/v1/audit-log", &site.key).await.expect(200).data();
        assert_eq!((&log[0]["action"], &log[0]["target"]), (&json!("integration.resumed"), &json!("network_a")));
        let unknown = site.call("POST", "/integrations/network_x/resume", Value::Null).await.expect(404);
        assert_eq!(unknown.code(), "network_not_found");
    }

    async fn an_outage_sets_the_error_status(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        site.send_accepted(&site.purchase("a", "1")).await;
        let outage = Outcome {
            verdict: AttemptVerdict::Retry, end: None,
            changes: |at| vec![QueueChange::Failed { at, wait: None, random: 0 }; 5],
        };
        settle(&server, &site.app, &outage).await;
        let one = read_network_a(&site).await;
        assert_eq!(one["status"], "error");
        assert!(one["statusReason"].as_str().unwrap().contains("failed"), "{one}");
    }

    async fn a_test_event_returns_the_network_response_or_the_missing_settings(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let test = async || site.call("POST", "/integrations/network_a/test", Value::Null).await;
        let fault = |field: &str| vec![(field.to_owned(), "required".to_owned())];
        let answer = test().await.expect(422);
        assert_eq!((answer.code(), answer.faults()), ("validation_failed".to_owned(), fault("credentials")));
        let message = answer.json()["error"]["details"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("pixelId") && message.contains("accessToken"), "{message}");
        connect(&site).await;
        let data = test().await.expect(200).data();
        let mut fields: Vec<&str> = data.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["accepted", "answer", "code", "durationMs", "status"]);
        assert!(data["accepted"].is_boolean(), "{data}");
        let without_test_code = json!({"enabled": false, "settings": {"testEventCode": null}});
        site.call("PATCH", "/integrations/network_a", without_test_code).await.expect(200);
        assert_eq!(test().await.expect(422).faults(), fault("settings.testEventCode"));
        let without_pixel = json!({"settings": {"pixelId": null}});
        site.call("PATCH", "/integrations/network_a", without_pixel).await.expect(200);
        assert_eq!(test().await.expect(422).faults(), fault("settings"));
        let unknown = site.call("POST", "/integrations/network_x/test", Value::Null).await.expect(404);
        assert_eq!(unknown.code(), "network_not_found");
        let deliveries = site.call("GET", "/deliveries", Value::Null).await.expect(200).data();
        assert_eq!(deliveries, json!([]), "a test event creates no delivery");
    }
}
