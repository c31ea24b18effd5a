//! Errors: every published error code, triggered over HTTP.

use crate::routes::RouteFixture;
use crate::website::{SHOP, Website, with};
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tributary_api::{Code, RateSettings, Timeouts};
use tributary_domain::access::key_management::KEYS_MAX;
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{TestResponse, TestServer, TestServerSettings, on_both_engines};

/// Checks the error envelope and returns the code.
fn code_of(answer: &TestResponse) -> String {
    let body = answer.json();
    let error = &body["error"];
    let code = error["code"].as_str().unwrap();
    let published = Code::ALL
        .iter()
        .find(|published| published.as_str() == code)
        .expect("the code is published");
    assert_eq!(
        answer.status.as_u16(),
        published.status().as_u16(),
        "{answer:?}"
    );
    assert_eq!(error["retryable"], published.is_retryable(), "{answer:?}");
    assert_eq!(
        error["requestId"].as_str(),
        answer.header("x-request-id"),
        "{answer:?}"
    );
    assert!(
        error["message"].as_str().unwrap().ends_with('.'),
        "{answer:?}"
    );
    assert_eq!(answer.header("content-type"), Some("application/json"));
    code.to_owned()
}

/// Sends a request with an incomplete body over a raw socket and returns the response.
async fn stalled_body(server: &TestServer, key: &str) -> String {
    let mut socket = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let head = format!(
        "POST /api/v1/apps HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(Duration::from_secs(20), socket.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    answer
}

/// Returns a refusal for each code that only the endpoints of keys and limited keys return.
async fn refused_key_requests(
    server: &TestServer,
    full: &str,
) -> Vec<(&'static str, TestResponse)> {
    let keys = "/api/v1/keys";
    let create = async |limits: serde_json::Value| {
        let mut body = json!({"name": "Limited", "permission": "full"});
        body.as_object_mut()
            .unwrap()
            .extend(limits.as_object().unwrap().clone());
        let created = server.post(keys, full, body).await.expect(201).data();
        ["id", "key"].map(|name| created[name].as_str().unwrap().to_owned())
    };
    let app = server.app(full).await;
    let [id, limited] = create(json!({"apps": [app.rsplit('/').next().unwrap()]})).await;
    let [_, elsewhere] = create(json!({"addresses": ["192.0.2.0/24"]})).await;
    let named = json!({"name": "A", "permission": "full"});
    let rotate = format!("{keys}/{id}/rotate");
    let mut refused = vec![
        (
            "app_not_allowed",
            server
                .post("/api/v1/apps", &limited, json!({"name": "A"}))
                .await,
        ),
        (
            "key_exceeds_own",
            server.post(keys, &limited, named.clone()).await,
        ),
        ("address_not_allowed", server.get(keys, &elsewhere).await),
        (
            "key_not_found",
            server
                .get(&format!("{keys}/key_01k9z3v7q8e4r9m2x5c6b7n8d0"), full)
                .await,
        ),
    ];
    server.post(&rotate, full, json!({})).await.expect(201);
    refused.push(("key_rotated", server.post(&rotate, full, json!({})).await));
    let rotate = format!("{app}/alert-webhook/rotate");
    server.post(&rotate, full, json!({})).await.expect(201);
    refused.push((
        "secret_rotated",
        server.post(&rotate, full, json!({})).await,
    ));
    let [revoked, _] = create(json!({})).await;
    let revoke = format!("{keys}/{revoked}");
    server.call("DELETE", &revoke, full, None).await.expect(204);
    let rotate = format!("{revoke}/rotate");
    refused.push(("key_ended", server.post(&rotate, full, json!({})).await));
    let crowded = server.organization("Crowded").await;
    let mut last = String::new();
    for _ in 0..KEYS_MAX {
        last = server
            .key(crowded, Permission::Full, Environment::Live)
            .await;
    }
    refused.push(("too_many_keys", server.post(keys, &last, named).await));
    refused
}

/// Sends a web event for each code that only web events return.
async fn refused_web_events(server: &TestServer, key: &str) -> Vec<(&'static str, TestResponse)> {
    let site = Website::open_at(&format!("http://{}", server.address), key).await;
    let organic = site.tap(&site.link, "").await;
    let test_link = serde_json::json!({"name": "T", "type": "web_funnel", "test": true, "destinationUrl": SHOP});
    let test_link = site.create_link(test_link).await;
    let on_test_link = site.tap(&test_link, "fbclid=f1").await;
    site.send_accepted(&site.purchase("paid", "10")).await;
    site.send_accepted(&site.event("signed-up", "sign_up"))
        .await;
    let order = site.purchase("order", "1");
    let refund = site.refund("refund", "-1", "paid");
    let mut answers = Vec::new();
    for (code, event) in [
        ("event_id_conflict", site.purchase("paid", "11")),
        (
            "click_not_verified",
            with(&order, "arClickId", "clk_forged"),
        ),
        ("test_click", with(&order, "arClickId", on_test_link)),
        (
            "click_network_unsupported",
            with(&order, "arClickId", organic),
        ),
        (
            "origin_mismatch",
            with(&order, "sourceUrl", "https://evil.test/"),
        ),
        (
            "original_transaction_unavailable",
            with(&refund, "originalTransactionId", "nothing"),
        ),
        (
            "original_transaction_invalid",
            with(&refund, "originalTransactionId", "signed-up"),
        ),
        ("refund_exceeds_payment", with(&refund, "revenue", "-11")),
        ("currency_mismatch", with(&refund, "currency", "EUR")),
    ] {
        answers.push((code, site.send(&event).await));
    }
    site.set_web_events(false).await;
    answers.push(("web_events_disabled", site.send(&order).await));
    let archived = server.patch(&site.app, key, serde_json::json!({"archived": true}));
    archived.await.expect(200);
    answers.push(("app_archived", site.send(&order).await));
    answers
}

/// Retries a delivery twice; the second request comes before the first retry was sent.
async fn retry_twice(server: &TestServer, key: &str) -> TestResponse {
    let fixture = RouteFixture::with_website(server, key).await;
    let delivery = format!(
        "/api/v1/apps/{}/deliveries/{}",
        fixture.app, fixture.delivery
    );
    let retry = format!("{delivery}/retry");
    server.call("POST", &retry, key, None).await.expect(200);
    server.call("POST", &retry, key, None).await
}

on_both_engines! {
    async fn triggers_every_error_code(engine: Engine) {
        let settings = TestServerSettings {
            rates: RateSettings { per_key: 0, per_address: 0, failures_per_minute: 50 },
            timeouts: Timeouts {
                body: Duration::from_secs(3),
                request: Duration::from_secs(30),
                export_idle: Duration::from_secs(30),
            },
            ..TestServerSettings::default()
        };
        let mut server = TestServer::start_with(engine, settings).await;
        let organization = server.organization("Example").await;
        let full = server.key(organization, Permission::Full, Environment::Live).await;
        let test = server.key(organization, Permission::Full, Environment::Test).await;
        let analytics = server.key(organization, Permission::Analytics, Environment::Live).await;
        let fixture = RouteFixture::new(&server, &full).await;
        let app = format!("/api/v1/apps/{}", fixture.app);
        let link = format!("{app}/links/{}", fixture.link);
        let other = server.app(&full).await;
        let sdk_key = server.get(&app, &full).await.data()["sdk"]["liveKey"].as_str().unwrap().to_owned();
        let mut triggered = BTreeSet::new();
        let mut record = |answer: TestResponse, code: &str| {
            assert_eq!(code_of(&answer), code, "{answer:?}");
            triggered.insert(code.to_owned());
        };
        let raw = async |method: Method, path: &str, content_type: &str, body: Vec<u8>| {
            let request = server.request(method, path).bearer_auth(&full);
            server.send(request.header("content-type", content_type).body(body)).await
        };

        record(raw(Method::POST, "/api/v1/apps", "application/json", b"{".to_vec()).await, "malformed_json");
        record(raw(Method::POST, "/.well-known/skadnetwork/report-attribution/", "text/plain", b"{}".to_vec()).await, "malformed_postback");
        let webhook = format!("/api/webhook/revenuecat/{}", fixture.app);
        let secret = "a secret of sixteen and more";
        record(server.send(server.request(Method::POST, &webhook).body("{}")).await, "webhook_unauthorized");
        server.patch(&app, &full, json!({"billing": {"revenuecat": {"secret": secret}}})).await.expect(200);
        let empty = server.request(Method::POST, &webhook).header("authorization", secret).body("{}");
        record(server.send(empty).await, "malformed_notification");
        record(server.send(server.request(Method::GET, &app)).await, "missing_api_key");
        record(server.get(&app, "nonsense").await, "invalid_api_key");
        record(server.get(&app, &analytics).await, "insufficient_permission");
        record(server.get(&app, &sdk_key).await, "private_key_required");
        record(server.patch(&app, &test, json!({"archived": true})).await, "production_only");
        record(server.get("/api/v1/apps/app_x", &full).await, "app_not_found");
        record(server.get(&format!("{app}/links/lnk_x"), &full).await, "link_not_found");
        record(server.get(&format!("{app}/notices/ntc_x"), &full).await, "notice_not_found");
        let notice = json!({"name": "A", "channel": "email", "recipients": ["a@example.com"], "topic": "traffic_anomaly"});
        let mut another = server.post(&format!("{app}/notices"), &full, notice.clone()).await;
        for _ in 0..50 {
            another = server.post(&format!("{app}/notices"), &full, notice.clone()).await;
        }
        record(another, "too_many_notices");
        record(server.get(&format!("{app}/integrations/network_x"), &full).await, "network_not_found");
        record(server.get(&format!("{app}/devices/unknown"), &full).await, "device_not_found");
        record(server.get(&format!("{app}/users/unknown/data"), &full).await, "user_not_found");
        record(server.get(&format!("{app}/deliveries/{}", fixture.delivery), &full).await, "delivery_not_found");
        record(retry_twice(&server, &full).await, "delivery_not_retryable");
        let plain = server.request(Method::POST, "/api/track/configure").header("x-tributary-key", &sdk_key);
        let plain = plain.header("content-type", "application/json").body(json!({"deviceId": "plain", "platform": "ios"}).to_string());
        server.send(plain).await.expect(200);
        let erase = server.request(Method::POST, "/api/track/erase").header("x-tributary-key", &sdk_key);
        let erase = erase.header("content-type", "application/json").body(json!({"deviceId": "plain", "eraseToken": "A".repeat(43)}).to_string());
        record(server.send(erase).await, "invalid_erase_token");
        let release = json!({"decision": "release"});
        record(server.post(&format!("{app}/held/plain/decision"), &full, release).await, "install_not_held");
        record(crate::spec::held::reject_forwarded(&server).await, "install_forwarded");
        let stopped = server.patch(&other, &full, json!({"sdk": {"enabled": false}})).await.expect(200).data();
        let stopped = server.request(Method::GET, "/api/track/skan").header("x-tributary-key", stopped["sdk"]["liveKey"].as_str().unwrap());
        record(server.send(stopped).await, "sdk_disabled");
        record(server.get("/api/v1/nothing", &full).await, "not_found");
        let answer = server.call("PUT", &app, &full, Some(json!({}))).await;
        assert_eq!(answer.header("allow"), Some("GET,HEAD,PATCH"), "{answer:?}");
        record(answer, "method_not_allowed");
        server.patch(&link, &full, json!({"slug": "spring"})).await.expect(200);
        let taken = json!({"name": "B", "slug": "spring"});
        record(server.post(&format!("{other}/links"), &full, taken).await, "slug_taken");
        server.patch(&app, &full, json!({"ios": {"appStoreId": "42"}})).await.expect(200);
        server.link_domain(&app, &full, "a.example.com").await;
        record(server.patch(&other, &full, json!({"ios": {"appStoreId": "42"}})).await, "store_id_taken");
        for (domain, value, code) in [("b", "x", "domain_not_verified"), ("b", "", "dns_unavailable"), ("a", "", "domain_taken")] {
            let domain = format!("{domain}.example.com");
            server.patch(&other, &full, json!({"linkDomain": domain})).await.expect(200);
            match code {
                "domain_taken" => server.publish_record(&other, &full).await,
                _ => server.dns.publish(&format!("_tributary.{domain}"), value),
            }
            record(server.call("POST", &format!("{other}/link-domain/verify"), &full, None).await, code);
        }
        let stale = server.request(Method::DELETE, &link).bearer_auth(&full).header("if-match", "\"99\"");
        record(server.send(stale).await, "version_conflict");
        let huge = vec![b' '; tributary_api::BODY_BYTES_MAX + 1];
        record(raw(Method::POST, "/api/v1/apps", "application/json", huge).await, "payload_too_large");
        record(raw(Method::POST, "/api/v1/apps", "text/plain", b"{}".to_vec()).await, "unsupported_media_type");
        record(server.post("/api/v1/apps", &full, json!({"name": 5})).await, "validation_failed");
        record(server.post("/api/v1/apps", &full, json!({"name": "A", "x": 5})).await, "unknown_field");
        record(server.get("/api/v1/apps?cursor=x", &full).await, "invalid_cursor");
        for (code, event) in refused_web_events(&server, &full).await {
            record(event, code);
        }
        for (code, answer) in refused_key_requests(&server, &full).await {
            record(answer, code);
        }

        let timed_out = stalled_body(&server, &full).await;
        assert!(timed_out.starts_with("HTTP/1.1 408 ") && timed_out.contains("\"request_timeout\""), "{timed_out}");

        for _ in 0..60 {
            let answer = server.get(&app, "nonsense").await;
            if answer.status.as_u16() == 429 {
                assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
                assert!(answer.header("ratelimit").unwrap().starts_with("\"failures\";r=0;t="));
                assert_eq!(answer.header("ratelimit-policy"), Some("\"failures\";q=50;w=60"));
                record(answer, "rate_limited");
                break;
            }
        }

        server.store.close().await;
        let answer = server.get(&app, &full).await;
        assert_eq!(answer.header("retry-after"), Some("1"));
        record(answer, "unavailable");
        record(server.send(server.request(Method::GET, "/readyz")).await, "unavailable");
        server.send(server.request(Method::GET, "/healthz")).await.expect(200);
        server.stop().await;

        // Checked over the raw socket above.
        triggered.insert("request_timeout".to_owned());
        // A panic cannot be triggered from outside. The api crate tests its response in
        // `a_panic_returns_the_standard_error_body`.
        triggered.insert("internal".to_owned());
        let all: BTreeSet<String> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
        assert_eq!(triggered, all);
    }

    async fn the_order_of_checks_is_key_permission_environment_body_app(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let full = server.key(organization, Permission::Full, Environment::Live).await;
        let test = server.key(organization, Permission::Full, Environment::Test).await;
        let test_analytics = server.key(organization, Permission::Analytics, Environment::Test).await;
        let path = "/api/v1/apps/app_nowhere";
        let faulty = json!({"archived": "yes"});
        let code = async |key: &str, body: &serde_json::Value| {
            server.patch(path, key, body.clone()).await.code()
        };
        assert_eq!(code("nonsense", &faulty).await, "invalid_api_key");
        assert_eq!(code(&test_analytics, &faulty).await, "insufficient_permission");
        assert_eq!(code(&test, &faulty).await, "production_only");
        assert_eq!(code(&full, &faulty).await, "validation_failed");
        assert_eq!(code(&full, &json!({"archived": true})).await, "app_not_found");
    }

    async fn every_response_has_a_request_id_and_security_headers(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let mut ids = BTreeSet::new();
        for path in ["/api/v1/apps", "/api/v1/nothing", "/healthz", "/openapi.yaml", "/api/v1/docs", "/"] {
            let answer = server.get(path, &key).await;
            assert!(ids.insert(answer.header("x-request-id").unwrap().to_owned()));
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
            let policy = answer.header("referrer-policy").unwrap();
            assert!(["no-referrer", "strict-origin-when-cross-origin"].contains(&policy), "{path}: {policy}");
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
            assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
            assert_eq!(answer.header("strict-transport-security"), Some("max-age=31536000"), "{path}");
        }
        for method in ["OPTIONS", "TRACE", "BREW"] {
            let answer = server.call(method, "/api/v1/apps", &key, None).await;
            assert_eq!(code_of(&answer), "method_not_allowed", "{method}");
            assert_eq!(answer.header("allow"), Some("GET,HEAD,POST"));
        }
        for path in ["/api/v1/docs/%ff", "/api/v1/docs/nothing.js", "/api/v1/%ff", "/%00"] {
            assert_eq!(code_of(&server.get(path, &key).await), "not_found", "{path}");
        }
        let head = server.call("HEAD", "/api/v1/apps", &key, None).await.expect(200);
        assert_eq!(head.text, "");
    }
}
