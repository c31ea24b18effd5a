//! API keys: limits, rotation, and what a key may create.

use crate::routes::{Needs, ROUTES, Route, RouteFixture};
use reqwest::Method;
use serde_json::{Value, json};
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{TestResponse, TestServer, TestServerSettings, on_both_engines};

/// Creates a key and returns its id and text.
async fn create(server: &TestServer, by: &str, body: Value) -> (String, String) {
    let created = server
        .post("/api/v1/keys", by, body)
        .await
        .expect(201)
        .data();
    let text = |name: &str| created[name].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

fn needs_private_key(route: &Route) -> bool {
    !matches!(route.needs, Needs::Nothing | Needs::SdkKey)
}

/// Calls a route from this address; the server trusts the proxy that names it.
async fn call_from(
    server: &TestServer,
    address: &str,
    route: &Route,
    fixture: &RouteFixture,
    key: &str,
) -> TestResponse {
    let mut request = route
        .request(server, fixture, key)
        .header("x-forwarded-for", address);
    if let Some(body) = route.body(fixture) {
        request = request
            .header("content-type", "application/json")
            .body(body.to_string());
    }
    server.send(request).await
}

/// Returns the fields in the details of an error.
fn fields(answer: &TestResponse) -> Vec<String> {
    let details = answer.json()["error"]["details"].clone();
    let details = details.as_array().cloned().unwrap_or_default();
    details
        .iter()
        .map(|detail| detail["field"].as_str().unwrap().to_owned())
        .collect()
}

on_both_engines! {
    /// A new route without an app must decide here what a limited key may do.
    async fn a_key_limited_to_an_app_reaches_no_other_on_any_route(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = server.full_key().await;
        let own = RouteFixture::with_website(&server, &owner).await;
        let other = RouteFixture::with_website(&server, &owner).await;
        let limit = json!({"name": "One app", "permission": "full", "apps": [own.app]});
        let (id, key) = create(&server, &owner, limit).await;
        let missing = RouteFixture { app: "app_01k9z3v7q8e4r9m2x5c6b7n8d0".to_owned(), ..other.clone() };
        // `other.key` is for all apps, so the limited key does not see it.
        for route in ROUTES.iter().filter(|route| needs_private_key(route)) {
            let call = async |fixture: &RouteFixture| {
                let answer = server.call(route.method, &route.path_for(fixture), &key, route.body(fixture)).await;
                let mut body = answer.text.parse::<Value>().unwrap_or_default();
                if let Some(error) = body.get_mut("error") {
                    error["requestId"] = json!(null);
                }
                (answer.status.as_u16(), body)
            };
            let (status, body) = call(&other).await;
            let code = body["error"]["code"].as_str().unwrap_or_default().to_owned();
            match (route.method, route.path) {
                (_, path) if path.contains("{appId}") => {
                    assert_eq!((status, code.as_str()), (404, "app_not_found"), "{route:?}");
                    assert_eq!((status, body), call(&missing).await, "{route:?}");
                }
                ("GET", "/api/v1/apps" | "/api/v1/portfolio") => {
                    let apps = body["data"].as_array().unwrap();
                    assert_eq!(apps.len(), 1, "{body}");
                    assert_eq!(apps[0]["id"], *own.app);
                }
                ("GET", "/api/v1/audit-log") => {
                    let entries = body["data"].as_array().unwrap();
                    assert!(entries.len() > 3 && entries.iter().all(|entry| entry["appId"] == *own.app), "{body}");
                    let filtered = format!("/api/v1/audit-log?appId={}", other.app);
                    assert_eq!(server.get(&filtered, &key).await.expect(200).data(), json!([]));
                }
                ("GET", "/api/v1/keys") => {
                    let keys = body["data"].as_array().unwrap();
                    assert_eq!(keys.len(), 1, "{body}");
                    assert_eq!(keys[0]["id"], *id);
                }
                ("POST", "/api/v1/apps") | ("GET", "/api/v1/audit-log/export") => {
                    assert_eq!((status, code.as_str()), (403, "app_not_allowed"));
                }
                ("POST", "/api/v1/keys") => assert_eq!((status, code.as_str()), (403, "key_exceeds_own")),
                (_, path) if path.contains("{keyId}") => {
                    assert_eq!((status, code.as_str()), (404, "key_not_found"), "{route:?}");
                }
                ("GET", "/api/v1/skan/presets") => assert_eq!(status, 200),
                _ => panic!("decide what a limited key may do: {route:?}"),
            }
        }
        // The key does everything in its own app.
        for route in ROUTES.iter().filter(|route| route.path.contains("{appId}")).filter(|route| needs_private_key(route)) {
            let answer = route.call(&server, &own, &key, route.body(&own)).await;
            assert_eq!(answer.status.as_u16(), route.success, "{route:?}: {answer:?}");
        }
    }

    async fn a_key_limited_to_addresses_works_from_nowhere_else_on_any_route(engine: Engine) {
        let proxy = "127.0.0.1".parse().unwrap();
        let settings = TestServerSettings { proxies: vec![proxy], ..TestServerSettings::default() };
        let server = TestServer::start_with(engine, settings).await;
        let owner = server.full_key().await;
        let fixture = RouteFixture::with_website(&server, &owner).await;
        let limit = json!({"name": "Office", "permission": "full", "addresses": ["192.0.2.0/24", "2001:db8::/48"]});
        let (id, key) = create(&server, &owner, limit).await;
        for route in ROUTES.iter().filter(|route| needs_private_key(route)) {
            let answer = call_from(&server, "198.51.100.7", route, &fixture, &key).await.expect(403);
            assert_eq!(answer.code(), "address_not_allowed", "{route:?}");
        }
        for route in ROUTES.iter().filter(|route| needs_private_key(route)).filter(|route| route.method == "GET") {
            let answer = call_from(&server, "192.0.2.7", route, &fixture, &key).await;
            assert_eq!(answer.status.as_u16(), route.success, "{route:?}: {answer:?}");
        }
        // Only the allowed use is recorded, and as a range.
        let path = format!("/api/v1/keys/{id}");
        for _ in 0..3_000 {
            let shown = server.get(&path, &owner).await.expect(200).data();
            if !shown["lastUsedAt"].is_null() {
                assert_eq!(shown["lastUsedFrom"], "192.0.2.0/24");
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the use was not recorded");
    }

    async fn a_key_cannot_create_a_more_powerful_one(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = server.full_key().await;
        let app = server.app(&owner).await;
        let app = app.rsplit('/').next().unwrap();
        let limit = json!({
            "name": "Limited", "permission": "full", "environment": "test", "apps": [app],
            "addresses": ["127.0.0.0/8"], "expiresAt": "2030-01-01T00:00:00Z",
        });
        let (id, key) = create(&server, &owner, limit.clone()).await;
        let body = json!({"name": "More", "permission": "full"});
        let refused = server.post("/api/v1/keys", &key, body).await.expect(403);
        assert_eq!(refused.code(), "key_exceeds_own");
        assert_eq!(fields(&refused), ["environment", "apps", "addresses", "expiresAt"]);
        create(&server, &key, limit).await;
        for permission in [Permission::ReadOnly, Permission::Analytics] {
            let weak = server.key(server.organization("Other").await, permission, Environment::Live).await;
            let body = json!({"name": "More", "permission": "analytics"});
            let refused = server.post("/api/v1/keys", &weak, body).await.expect(403);
            assert_eq!(refused.code(), "insufficient_permission");
        }
        // Not by rotation either: the successor would outlive the key.
        let longer = json!({"expiresAt": null});
        let rotated = server.post(&format!("/api/v1/keys/{id}/rotate"), &key, longer).await.expect(403);
        assert_eq!((rotated.code().as_str(), fields(&rotated)), ("key_exceeds_own", vec!["expiresAt".to_owned()]));
    }

    async fn invalid_keys_name_every_faulty_field(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = server.full_key().await;
        let body = json!({
            "name": "", "permission": "root", "environment": "prod", "apps": [], "addresses": ["office"],
            "expiresAt": "tomorrow",
        });
        let refused = server.post("/api/v1/keys", &owner, body).await.expect(422);
        assert_eq!(fields(&refused), ["name", "permission", "environment", "apps", "addresses", "expiresAt"]);
        let body = json!({
            "name": "Late", "permission": "full", "apps": ["app_01k9z3v7q8e4r9m2x5c6b7n8d0"],
            "expiresAt": "2001-01-01T00:00:00Z",
        });
        let refused = server.post("/api/v1/keys", &owner, body).await.expect(422);
        assert_eq!(fields(&refused), ["expiresAt", "apps"]);
    }

    async fn a_rotation_overlaps_and_then_ends_the_old_key(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = server.full_key().await;
        let works = async |key: &str| {
            server.get("/api/v1/apps", key).await.status.as_u16() == 200
        };
        let body = json!({"name": "Worker", "permission": "full"});
        let (id, old) = create(&server, &owner, body).await;
        // The key rotates itself.
        let rotate = format!("/api/v1/keys/{id}/rotate");
        let next = server.post(&rotate, &old, json!({})).await.expect(201).data();
        let new = next["key"].as_str().unwrap();
        assert!(works(&old).await && works(new).await);
        let shown = server.get(&format!("/api/v1/keys/{id}"), new).await.expect(200).data();
        assert_eq!(shown["successorId"], next["id"]);
        let day = |value: &Value| value.as_str().unwrap()[..10].to_owned();
        assert!(day(&shown["expiresAt"]) > day(&next["createdAt"]), "{shown}");
        assert_eq!(server.post(&rotate, new, json!({})).await.expect(409).code(), "key_rotated");
        // Without an overlap, the old key ends at once.
        let rotate = format!("/api/v1/keys/{}/rotate", next["id"].as_str().unwrap());
        let last = server.post(&rotate, new, json!({"overlapHours": 0})).await.expect(201).data();
        assert!(!works(new).await && works(last["key"].as_str().unwrap()).await);
        assert_eq!(server.post(&rotate, &owner, json!({})).await.expect(409).code(), "key_ended");
        let path = format!("/api/v1/keys/{}", last["id"].as_str().unwrap());
        let revoked = server.request(Method::DELETE, &path).bearer_auth(last["key"].as_str().unwrap());
        server.send(revoked).await.expect(204);
        assert!(!works(last["key"].as_str().unwrap()).await);
    }

    async fn the_key_is_in_no_other_response(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = server.full_key().await;
        let (id, key) = create(&server, &owner, json!({"name": "Secret", "permission": "read_only"})).await;
        for path in ["/api/v1/keys".to_owned(), format!("/api/v1/keys/{id}"), "/api/v1/audit-log".to_owned()] {
            let answer = server.get(&path, &owner).await.expect(200);
            assert!(answer.text.contains(&id) && !answer.text.contains(&key), "{path}");
        }
    }
}
