//! How integrations do: `status` and `health`, `POST …/{network}/resume`, and `POST …/{network}/test`.

use crate::outbox::{Outcome, connect, settle};
use crate::website::Website;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_domain::forwarding::AttemptVerdict;
use tributary_testkit::{TestServer, on_both_engines};

async fn network_a(site: &Website) -> Value {
    let path = "/integrations/network_a";
    let one = site.call("GET", path, Value::Null).await.expect(200).data();
    let list = site.call("GET", "/integrations", Value::Null).await;
    assert_eq!(list.expect(200).data()[0], one, "the same in the list");
    one
}

on_both_engines! {
    async fn health_counts_what_waits_and_what_became_of_the_last_day(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        assert_eq!(network_a(&site).await["status"], "not_configured");
        connect(&site).await;
        for (ids, outcome) in [(&["a", "b"][..], &Outcome::DELIVERED), (&["c"], &Outcome::FAILED)] {
            for id in ids {
                site.accepted(&site.purchase(id, "1")).await;
            }
            settle(&server, &site.app, outcome).await;
        }
        site.accepted(&site.purchase("d", "1")).await;
        let one = network_a(&site).await;
        assert_eq!((&one["status"], &one["statusReason"]), (&json!("active"), &json!(null)));
        let last = one["health"]["lastDeliveredAt"].clone();
        assert!(last.as_str().unwrap().starts_with("2026-01-01T00:00:0"), "{last}");
        assert_eq!(one["health"], json!({
            "pending": 1, "delivered24h": 2, "failed24h": 1, "lastDeliveredAt": last, "skipped7d": [],
            "skipped7dStoppedEarly": false,
        }));
        server.clock.advance(Duration::from_hours(25));
        let health = network_a(&site).await["health"].clone();
        assert_eq!(health, json!({
            "pending": 1, "delivered24h": 0, "failed24h": 0, "lastDeliveredAt": last, "skipped7d": [],
            "skipped7dStoppedEarly": false,
        }));
        let changed = site.call("PATCH", "/integrations/network_a", json!({"enabled": false})).await.expect(200).data();
        assert_eq!((&changed["status"], &changed["health"]), (&json!("paused"), &health));
    }

    async fn health_says_which_conversions_were_not_sent_and_why(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        for id in ["a", "b"] {
            site.accepted(&site.purchase(id, "2000.01")).await;
        }
        site.accepted(&site.purchase("c", "1")).await;
        // By design: it updates revenue alone.
        site.accepted(&site.refund("d", "-1", "c")).await;
        let skipped = async |key: &str| {
            let path = format!("{}/integrations/network_a", site.app);
            server.get(&path, key).await.expect(200).data()["health"]["skipped7d"].clone()
        };
        assert_eq!(skipped(&site.key).await, json!([{"reason": "amount_not_forwardable", "count": 2}]));
        assert_eq!(network_a(&site).await["health"]["skipped7dStoppedEarly"], false);
        server.clock.advance(Duration::from_hours(7 * 24 + 1));
        assert_eq!(skipped(&site.key).await, json!([]), "a week later");
    }

    async fn a_refused_credential_pauses_until_somebody_resumes(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        site.accepted(&site.purchase("a", "1")).await;
        let refused = Outcome {
            verdict: AttemptVerdict::Pause, ends: None,
            state: |state, at| state.pause(at, "190", Some("Invalid OAuth access token".to_owned())),
        };
        settle(&server, &site.app, &refused).await;
        let paused = network_a(&site).await;
        assert_eq!(paused["status"], "paused");
        let reason = paused["statusReason"].as_str().unwrap();
        assert!(reason.contains("190") && reason.contains("Invalid OAuth access token"), "{reason}");
        assert_eq!((&paused["enabled"], &paused["health"]["pending"]), (&json!(true), &json!(1)), "deliveries are kept");
        let path = format!("{}/integrations/network_a/resume", site.app);
        let stale = server.request(Method::POST, &path).bearer_auth(&site.key).header("if-match", "\"99\"");
        assert_eq!(server.send(stale).await.expect(409).code(), "version_conflict");
        assert_eq!(network_a(&site).await["status"], "paused");
        let answer = site.call("POST", "/integrations/network_a/resume", Value::Null).await.expect(200);
        assert!(answer.header("etag").is_some());
        assert_eq!((&answer.data()["status"], &answer.data()["health"]["pending"]), (&json!("active"), &json!(1)));
        assert_eq!(network_a(&site).await, answer.data());
        let again = site.call("POST", "/integrations/network_a/resume", Value::Null).await.expect(200).data();
        assert_eq!(again["status"], "active", "one that is not paused stays as it is");
        let log = server.get("/api/v1/audit-log", &site.key).await.expect(200).data();
        assert_eq!((&log[0]["action"], &log[0]["target"]), (&json!("integration.resumed"), &json!("network_a")));
        let nowhere = site.call("POST", "/integrations/network_x/resume", Value::Null).await.expect(404);
        assert_eq!(nowhere.code(), "network_not_found");
    }

    async fn an_outage_shows(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        site.accepted(&site.purchase("a", "1")).await;
        let away = Outcome {
            verdict: AttemptVerdict::Retry, ends: None,
            state: |state, at| (0..5).for_each(|_| state.record_failure(at, None, 0)),
        };
        settle(&server, &site.app, &away).await;
        let one = network_a(&site).await;
        assert_eq!(one["status"], "error");
        assert!(one["statusReason"].as_str().unwrap().contains("failed"), "{one}");
    }

    async fn a_test_event_tells_what_the_network_says_or_what_is_missing(engine: Engine) {
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
        let coded = json!({"enabled": false, "settings": {"testEventCode": null}});
        site.call("PATCH", "/integrations/network_a", coded).await.expect(200);
        assert_eq!(test().await.expect(422).faults(), fault("settings.testEventCode"));
        let half = json!({"settings": {"pixelId": null}});
        site.call("PATCH", "/integrations/network_a", half).await.expect(200);
        assert_eq!(test().await.expect(422).faults(), fault("settings"));
        let nowhere = site.call("POST", "/integrations/network_x/test", Value::Null).await.expect(404);
        assert_eq!(nowhere.code(), "network_not_found");
        let deliveries = site.call("GET", "/deliveries", Value::Null).await.expect(200).data();
        assert_eq!(deliveries, json!([]), "a test makes no delivery");
    }
}
