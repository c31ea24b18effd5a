//! The audit log: `/api/v1/audit-log`.

use crate::routes::{Needs, Place, ROUTES, Route};
use serde_json::json;
use tributary_testkit::{TestServer, TestServerSettings, on_both_engines};

on_both_engines! {
    async fn every_change_over_rest_leaves_a_line(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let place = Place::with_website(&server, &key).await;
        let count = async || {
            let log = server.get("/api/v1/audit-log?limit=500", &key).await.expect(200).data();
            log.as_array().unwrap().len()
        };
        let mut before = count().await;
        // A website event is data, as an event of the SDK is, and a test event is nothing of ours at all.
        let is_no_change = |route: &Route| route.path.ends_with("/web-events") || route.path.ends_with("/test");
        // And what is only read changes nothing, though it be a secret.
        let changes = |route: &&Route| {
            let may_change = matches!(route.needs, Needs::AppsWrite | Needs::PeopleErase);
            may_change && route.method != "GET" && !is_no_change(route)
        };
        for route in ROUTES.iter().filter(changes) {
            // What would say again what is so already is no change, so these say something else.
            let body = match (route.method, route.path.rsplit('/').next().unwrap()) {
                ("PATCH", "{appId}") => Some(json!({"name": "Walker"})),
                ("PATCH", "{linkId}") => Some(json!({"name": "Summer"})),
                ("PATCH", "{network}" | "skan") => Some(json!({"enabled": false})),
                _ => route.body(&place),
            };
            let answer = server.call(route.method, &route.at(&place), &key, body).await;
            assert_eq!(answer.status.as_u16(), route.success, "{route:?}: {answer:?}");
            let after = count().await;
            assert_eq!(after, before + 1, "{route:?}");
            before = after;
        }
    }

    async fn who_what_when_from_where(engine: Engine) {
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
        assert_eq!(entry["address"], "203.0.113.9", "proxies are seen through, no further than trusted");
        assert_eq!(entry["requestId"], answer.header("x-request-id").unwrap());
        assert_eq!(entry["changes"], json!([{"field": "webEvents.enabled", "before": "false", "after": "true"}]));
        assert_eq!(log["meta"]["hasMore"], true);
    }

    async fn the_log_of_one_app(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let (one, _other) = (Place::new(&server, &key).await, Place::new(&server, &key).await);
        let log = server.get(&format!("/api/v1/audit-log?appId={}", one.app), &key).await.expect(200).data();
        let actions: Vec<&str> =
            log.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["link.created", "app.created"]);
        let answer = server.get("/api/v1/audit-log?appId=x", &key).await.expect(422);
        assert_eq!(answer.faults()[0].0, "appId");
    }
}
