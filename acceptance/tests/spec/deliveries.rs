//! Deliveries, `/api/v1/apps/{appId}/deliveries`, and the reasons that an event lists for networks
//! that were skipped. Retries are in `deliveries_retry.rs`.

use super::track::SdkFixture;
use crate::networks::with_current_time;
use crate::outbox::{Outcome, connect, settle};
use crate::routes::RouteFixture;
use crate::website::{START, Website, with};
use serde_json::{Value, json};
use std::time::Duration;
use tributary_domain::access::{Environment, Permission};
use tributary_domain::forwarding::AttemptVerdict;
use tributary_testkit::{ServerProcess, TestDatabase, TestServer, on_both_engines};

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Lists the deliveries that match a query.
async fn list_deliveries(site: &Website, query: &str) -> Vec<Value> {
    let path = format!("/deliveries?{query}");
    let answer = site.call("GET", &path, Value::Null).await.expect(200);
    answer.data().as_array().unwrap().clone()
}

/// Lists the event ids of the deliveries that match a query.
async fn event_ids(site: &Website, query: &str) -> Vec<String> {
    let deliveries = list_deliveries(site, query).await;
    let id = |one: &Value| one["eventId"].as_str().unwrap().to_owned();
    deliveries.iter().map(id).collect()
}

/// Returns network, status and reason of each delivery that an event lists.
fn delivery_states(event: &Value) -> Vec<(&str, &str, Option<&str>)> {
    let all = event["deliveries"].as_array().unwrap();
    all.iter()
        .map(|one| {
            let (network, status) = (&one["network"], &one["status"]);
            (
                network.as_str().unwrap(),
                status.as_str().unwrap(),
                one["reason"].as_str(),
            )
        })
        .collect()
}

on_both_engines! {
    async fn an_event_for_a_connected_network_creates_a_delivery(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        site.send_accepted(&site.purchase("order-1", "49.99")).await;
        let event = site.logged_event("order-1").await;
        let list = site.call("GET", "/deliveries", Value::Null).await.expect(200).json();
        assert_eq!(list["meta"], json!({"hasMore": false, "cursor": null}));
        let one = list["data"][0].clone();
        let (id, dedup) = (one["id"].as_str().unwrap(), one["dedupId"].as_str().unwrap());
        assert!(id.starts_with("dlv_") && !dedup.is_empty(), "{one}");
        assert_eq!(list["data"], json!([{
            "id": id, "eventId": "order-1", "event": {"id": event["id"], "eventId": "order-1", "name": "purchase"},
            "network": "network_a", "networkEvent": "Purchase", "dedupId": dedup, "status": "pending", "reason": null,
            "plannedAt": event["receivedAt"], "settledAt": null, "nextAttemptAt": one["nextAttemptAt"],
            "attemptsMade": 0, "attempts": [],
        }]));
        assert!(one["nextAttemptAt"].is_string());
        let single = site.call("GET", &format!("/deliveries/{id}"), Value::Null).await.expect(200).data();
        assert_eq!(single, one);
        assert_eq!(event["deliveries"], json!([{
            "id": id, "network": "network_a", "networkEvent": "Purchase", "status": "pending", "reason": null,
            "attemptsMade": 0, "nextAttemptAt": one["nextAttemptAt"], "settledAt": null,
        }]));
        let device = site.call("GET", "/devices/visitor-1", Value::Null).await.expect(200).data();
        assert_eq!(device["events"], json!([event]), "the device lists the same event");
    }

    async fn a_delivery_lists_its_attempts_and_result(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        site.send_accepted(&site.purchase("order-1", "1")).await;
        let retry = Outcome { end: None, verdict: AttemptVerdict::Retry, changes: |_| Vec::new() };
        settle(&server, &site.app, &retry).await;
        let one = list_deliveries(&site, "").await.remove(0);
        assert_eq!((&one["status"], &one["attemptsMade"]), (&json!("pending"), &json!(1)));
        server.clock.advance(Duration::from_mins(2));
        settle(&server, &site.app, &Outcome::FAILED).await;
        let one = list_deliveries(&site, "").await.remove(0);
        assert_eq!((&one["status"], &one["reason"]), (&json!("failed"), &json!("2804003")));
        assert!(one["settledAt"].is_string() && one["nextAttemptAt"].is_null(), "{one}");
        let attempts = one["attempts"].as_array().unwrap();
        let verdicts: Vec<&Value> = attempts.iter().map(|attempt| &attempt["verdict"]).collect();
        assert_eq!(verdicts, ["retry", "terminal_event"]);
        assert_eq!(one["attemptsMade"], 2);
        assert_eq!(attempts[1], json!({
            "at": attempts[1]["at"], "status": 400, "durationMs": 180, "verdict": "terminal_event", "answer": "text",
        }));
        let event = site.logged_event("order-1").await;
        assert_eq!(delivery_states(&event), [("network_a", "failed", Some("2804003"))]);
        assert_eq!(event["deliveries"][0]["settledAt"], one["settledAt"]);
    }

    async fn an_event_lists_why_a_network_was_skipped(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        site.send_accepted(&site.purchase("before", "1")).await;
        connect(&site).await;
        let c = json!({
            "enabled": true, "settings": {"pixelCode": "C123"}, "credentials": {"accessToken": "tiktok-token"},
        });
        site.call("PATCH", "/integrations/network_c", c).await.expect(200);
        server.clock.advance(Duration::from_hours(8 * 24));
        site.send_accepted(&site.event("old", "sign_up")).await;
        for event in [
            site.purchase("bought", "1"), site.purchase("dear", "2000.01"), site.priced("checkout", "checkout_started", "1"),
            site.child("renewed", "renewal", "1", "bought"),
        ] {
            site.send_accepted(&with(&event, "timestampMs", START + 8 * DAY)).await;
        }
        let other_network = ("network_c", "skipped", Some("not_attributed"));
        for (id, first) in [
            ("bought", ("network_a", "pending", None)),
            ("dear", ("network_a", "skipped", Some("amount_not_forwardable"))),
            ("checkout", ("network_a", "skipped", Some("not_mapped"))),
            ("old", ("network_a", "skipped", Some("too_old"))),
        ] {
            assert_eq!(delivery_states(&site.logged_event(id).await), [first, other_network], "{id}");
        }
        let reporting = Some("reporting_only");
        let renewed = site.logged_event("renewed").await;
        assert_eq!(delivery_states(&renewed), [("network_a", "skipped", reporting), ("network_c", "skipped", reporting)]);
        let before = site.logged_event("before").await;
        assert_eq!(delivery_states(&before), [("network_a", "skipped", Some("integration_disabled"))], "earlier events are not forwarded");
        assert_eq!(event_ids(&site, "").await, ["bought"], "skipped events create no delivery");
    }

    async fn deliveries_stay_pending_while_the_network_is_unreachable(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let unreachable = [
            ("TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL", "http://127.0.0.1:9"),
            ("TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES", "true"),
        ];
        let server = ServerProcess::start_with(&database, &unreachable).await;
        let key = ServerProcess::full_key(&database);
        let site = Website::open_at(server.base_url(), &key).await;
        connect(&site).await;
        site.send_accepted(&with_current_time(&site.purchase("order-1", "1"))).await;
        let mut one = Value::Null;
        for _ in 0..900 {
            one = list_deliveries(&site, "").await.remove(0);
            if one["attemptsMade"] != 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!((&one["status"], &one["attempts"][0]["verdict"]), (&json!("pending"), &json!("retry")), "{one}");
        assert_eq!(one["attempts"][0]["status"], json!(null), "no response");
        assert!(one["nextAttemptAt"].is_string(), "{one}");
        let test = site.call("POST", "/integrations/network_a/test", Value::Null).await.expect(200).data();
        assert_eq!((&test["accepted"], &test["status"]), (&json!(false), &json!(null)), "{test}");
    }

    async fn test_events_are_not_sent(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let path = format!("{}/integrations/network_d", sdk.app);
        let connected = json!({
            "enabled": true, "scope": "all", "settings": {"pixelId": "1"},
            "credentials": {"apiKey": "d-key-0123456789abcdef"},
        });
        sdk.server.patch(&path, &sdk.key, connected).await.expect(200);
        let body = json!({"deviceId": "d1", "events": [{"eventId": "e1", "name": "sign_up"}]});
        for sdk_key in [&sdk.live, &sdk.test] {
            sdk.call("events", sdk_key, &body).await.expect(202);
        }
        let read = async |path: &str, key: &str| {
            sdk.server.get(&format!("{}{path}", sdk.app), key).await.expect(200).data()
        };
        let test = read("/events", &sdk.test_key).await;
        assert_eq!(delivery_states(&test[0]), [("network_d", "skipped", Some("sandbox"))]);
        let live = read("/events", &sdk.key).await;
        assert_eq!(delivery_states(&live[0]), [("network_d", "pending", None)]);
        assert_eq!(read("/events", &sdk.analytics_key).await, live, "analytics keys see delivery states too");
        assert_eq!(read("/deliveries", &sdk.test_key).await, json!([]));
        assert_eq!(read("/deliveries", &sdk.key).await.as_array().unwrap().len(), 1);
        let pending = async |key: &str| read("/integrations/network_d", key).await["health"]["pending"].clone();
        assert_eq!((pending(&sdk.test_key).await, pending(&sdk.key).await), (json!(0), json!(1)));
    }

    async fn filters_the_list(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        site.send_accepted(&site.purchase("first", "1")).await;
        server.clock.advance(Duration::from_hours(2 * 24));
        let later = |event: &Value| with(event, "timestampMs", START + 2 * DAY);
        site.send_accepted(&later(&site.purchase("arrived", "1"))).await;
        let failed = settle(&server, &site.app, &Outcome::FAILED).await;
        assert_eq!(failed.len(), 2);
        site.send_accepted(&later(&site.event("waits", "sign_up"))).await;
        assert_eq!(event_ids(&site, "").await[2], "first", "newest event first");
        let day = "from=2026-01-01&to=2026-01-01";
        for (query, expected) in [
            ("status=pending", &["waits"][..]), ("status=failed&eventId=arrived", &["arrived"]), ("status=delivered", &[]),
            ("eventId=waits", &["waits"]), ("eventId=unknown", &[]), ("network=network_c", &[]),
            ("network=network_a&to=2026-01-02", &["first"]), (day, &["first"]), ("from=2026-01-04", &[]),
            // Midnight in UTC is the evening before in New York.
            ("from=2026-01-03&timezone=America/New_York", &[]), ("to=2025-12-31&timezone=America/New_York", &["first"]),
        ] {
            assert_eq!(event_ids(&site, query).await, expected, "{query}");
        }
        assert_eq!(event_ids(&site, "status=failed").await, ["arrived", "first"]);
        site.call("PATCH", "", json!({"timezone": "America/New_York"})).await.expect(200);
        assert_eq!(event_ids(&site, "to=2025-12-31").await, ["first"], "days start in the app's time zone");
        for (query, field) in [
            ("status=skipped", "status"), ("status=", "status"), ("network=organic", "network"), ("eventId=", "eventId"),
            ("from=yesterday", "from"), ("from=2026-01-02&to=2026-01-01", "to"), ("limit=0", "limit"),
            ("timezone=Mars", "timezone"), ("name=purchase", "name"), ("status=failed&status=failed", "status"),
        ] {
            let answer = site.call("GET", &format!("/deliveries?{query}"), Value::Null).await.expect(422);
            assert_eq!(answer.faults()[0].0, field, "{query}: {answer:?}");
        }
    }

    async fn any_page_size_gives_the_same_list(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        for number in 0..7 {
            site.send_accepted(&site.purchase(&format!("order-{number}"), "1")).await;
            if number == 3 {
                settle(&server, &site.app, &Outcome::DELIVERED).await;
            }
        }
        let whole = list_deliveries(&site, "").await;
        assert_eq!(whole.len(), 7);
        for limit in [1, 2, 6, 7, 8] {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let path = format!("/deliveries?limit={limit}{cursor}");
                let page = site.call("GET", &path, Value::Null).await.expect(200).json();
                seen.extend(page["data"].as_array().unwrap().clone());
                let Some(next) = page["meta"]["cursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            assert_eq!(seen, whole, "limit {limit}");
        }
        let page = site.call("GET", "/deliveries?limit=1", Value::Null).await.expect(200).json();
        let cursor = page["meta"]["cursor"].as_str().unwrap();
        for path in [
            format!("/deliveries?status=pending&cursor={cursor}"), format!("/events?cursor={cursor}"),
        ] {
            let answer = site.call("GET", &path, Value::Null).await.expect(422);
            assert_eq!(answer.code(), "invalid_cursor", "{path}");
        }
    }

    async fn a_delivery_is_visible_in_its_own_app_and_to_live_keys_only(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let key = server.key(organization, Permission::Full, Environment::Live).await;
        let test = server.key(organization, Permission::Full, Environment::Test).await;
        let (one, other) = (RouteFixture::with_website(&server, &key).await, RouteFixture::with_website(&server, &key).await);
        let at = |app: &str, id: &str| format!("/api/v1/apps/{app}/deliveries/{id}");
        server.get(&at(&one.app, &one.delivery), &key).await.expect(200);
        for (path, key) in [
            (at(&one.app, &other.delivery), &key), (at(&one.app, "dlv_x"), &key), (at(&one.app, "%00"), &key),
            (at(&one.app, &one.link), &key), (at(&one.app, &one.delivery), &test),
        ] {
            assert_eq!(server.get(&path, key).await.expect(404).code(), "delivery_not_found", "{path}");
        }
        for id in [&one.delivery, "dlv_x"] {
            let answer = server.get(&at("app_x", id), &key).await.expect(404);
            assert_eq!(answer.code(), "app_not_found");
        }
        let of_other_app = format!("{}/retry", at(&one.app, &other.delivery));
        let answer = server.call("POST", &of_other_app, &key, None).await.expect(404);
        assert_eq!(answer.code(), "delivery_not_found");
        let own = format!("{}/retry", at(&one.app, &one.delivery));
        let answer = server.call("POST", &own, &test, None).await.expect(403);
        assert_eq!(answer.code(), "production_only");
    }
}
