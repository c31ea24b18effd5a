//! The audit log: `/api/v1/audit-log`.

use crate::routes::{Needs, ROUTES, Route, RouteFixture};
use serde_json::json;
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{TestServer, TestServerSettings, on_both_engines};

/// Operations that are not audited, although they are no GET, by the end of their path, and why.
const NOT_AUDITED: [(&str, &str); 7] = [
    ("/web-events", "adds data, not configuration"),
    (
        "/web-events/validate",
        "checks an event and changes nothing",
    ),
    (
        "/integrations/{network}/test",
        "sends a sample and changes nothing",
    ),
    (
        "/notices/{noticeId}/test",
        "sends a sample and changes nothing",
    ),
    ("/notices/preview", "shows a message and changes nothing"),
    ("/skan/evaluate", "computes a value and changes nothing"),
    (
        "/attribution/what-if",
        "computes a report and changes nothing",
    ),
];

/// Returns whether a call adds an entry: every change, and every export. SDK calls and Apple's and
/// billing providers' messages add data of people, and are stored themselves.
fn is_audited(route: &Route) -> bool {
    let is_export = ["/data", "/export"]
        .iter()
        .any(|end| route.path.ends_with(end));
    let is_exempt = NOT_AUDITED.iter().any(|(end, _)| route.path.ends_with(end));
    let has_key = !matches!(route.needs, Needs::Nothing | Needs::SdkKey);
    has_key && !is_exempt && (route.method != "GET" || is_export)
}

#[test]
fn every_exemption_is_an_operation() {
    for (end, _) in NOT_AUDITED {
        let is_exempt = |route: &Route| route.path.ends_with(end) && route.method != "GET";
        assert!(ROUTES.iter().any(is_exempt), "{end}");
    }
}

on_both_engines! {
    async fn every_rest_change_is_audited(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::with_website(&server, &key).await;
        let count = async || {
            let log = server.get("/api/v1/audit-log?limit=500", &key).await.expect(200).data();
            log.as_array().unwrap().len()
        };
        let mut before = count().await;
        for route in ROUTES.iter().filter(|route| is_audited(route)) {
            // A PATCH that sends the current values is not audited, so these send new ones.
            let body = match (route.method, route.path.rsplit('/').next().unwrap()) {
                ("PATCH", "{appId}") => Some(json!({"name": "Walker"})),
                ("PATCH", "{linkId}") => Some(json!({"name": "Summer"})),
                ("PATCH", "{network}" | "skan") => Some(json!({"enabled": false})),
                _ => route.body(&fixture),
            };
            // Each link of a bulk request has an entry.
            let links = body.as_ref().and_then(|body| Some(body["links"].as_array()?.len()));
            // A rotation changes one key and creates another.
            let entries = if route.path.ends_with("/{keyId}/rotate") { 2 } else { links.unwrap_or(1) };
            let answer = server.call(route.method, &route.path_for(&fixture), &key, body).await;
            assert_eq!(answer.status.as_u16(), route.success, "{route:?}: {answer:?}");
            let after = count().await;
            assert_eq!(after, before + entries, "{route:?}");
            before = after;
        }
    }

    async fn an_entry_records_actor_action_time_and_address(engine: Engine) {
        let proxy = "127.0.0.1".parse().unwrap();
        let settings = TestServerSettings { proxies: vec![proxy], ..TestServerSettings::default() };
        let server = TestServer::start_with(engine, settings).await;
        let key = server.full_key().await;
        let path = server.app(&key).await;
        let request = server
            .request(reqwest::Method::PATCH, &path)
            .bearer_auth(&key)
            .header("content-type", "application/json")
            .header("x-forwarded-for", "198.51.100.1, 203.0.113.9")
            .body(json!({"webEvents": {"enabled": true}}).to_string());
        let answer = server.send(request).await.expect(200);
        let log = server.get("/api/v1/audit-log?limit=1", &key).await.expect(200).json();
        let entry = &log["data"][0];
        assert_eq!(entry["action"], "app.updated");
        assert_eq!(entry["target"], path.rsplit('/').next().unwrap());
        assert_eq!(entry["appId"], entry["target"]);
        assert_eq!(entry["actor"]["kind"], "key");
        assert!(entry["actor"]["id"].as_str().unwrap().starts_with("key_"));
        assert_eq!(entry["address"], "203.0.113.9", "the nearest address that is not a trusted proxy");
        assert_eq!(entry["requestId"], answer.header("x-request-id").unwrap());
        assert_eq!(entry["changes"], json!([{"field": "webEvents.enabled", "before": "false", "after": "true"}]));
        assert_eq!(log["meta"]["hasMore"], true);
    }

    async fn a_test_key_reads_no_live_entries(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let live = server.key(organization, Permission::Full, Environment::Live).await;
        let test = server.key(organization, Permission::Full, Environment::Test).await;
        let fixture = RouteFixture::new(&server, &live).await;
        let log = async |key: &str| -> Vec<String> {
            let log = server.get("/api/v1/audit-log?limit=500", key).await.expect(200).data();
            let actions = log.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap().to_owned());
            actions.collect()
        };
        assert_eq!(log(&test).await, [""; 0], "live changes are hidden");
        let of_app = format!("/api/v1/audit-log?appId={}", fixture.app);
        assert_eq!(server.get(&of_app, &test).await.expect(200).data(), json!([]));
        let device = format!("/api/v1/apps/{}/devices/{}", fixture.app, crate::routes::DEVICE);
        server.call("DELETE", &device, &test, None).await.expect(204);
        assert_eq!(log(&test).await, ["device.erased"], "its own environment is visible");
        let all = log(&live).await;
        assert!(all.len() > 3 && all[0] == "device.erased", "{all:?}");
    }

    async fn filters_the_log_by_app(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let (one, _other) = (RouteFixture::new(&server, &key).await, RouteFixture::new(&server, &key).await);
        let log = server.get(&format!("/api/v1/audit-log?appId={}", one.app), &key).await.expect(200).data();
        let actions: Vec<&str> =
            log.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["app.updated", "app.updated", "notice.created", "link.created", "app.created"]);
        let answer = server.get("/api/v1/audit-log?appId=x", &key).await.expect(422);
        assert_eq!(answer.faults()[0].0, "appId");
    }
}
