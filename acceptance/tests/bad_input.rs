//! Bad input always gets a clear error, never a 500, and leaves no partial writes.

use crate::routes::{Needs, ROUTES, RouteFixture};
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::{Duration, Instant};
use tributary_testkit::{TestResponse, TestServer, on_both_engines};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns bodies that every route rejects, with the error codes that are acceptable.
fn hostile_bodies() -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    const MALFORMED: &[&str] = &["malformed_json"];
    const FAULTY: &[&str] = &["validation_failed", "unknown_field"];
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("empty", Vec::new(), MALFORMED),
        ("broken", text("{\"name\": "), MALFORMED),
        ("trailing comma", text("{\"name\": \"x\",}"), MALFORMED),
        ("two values", text("{} {}"), MALFORMED),
        ("single quotes", text("{'name': 'x'}"), MALFORMED),
        ("not a number", text("{\"name\": NaN}"), MALFORMED),
        (
            "invalid UTF-8",
            b"{\"name\": \"\xff\xfe\"}".to_vec(),
            MALFORMED,
        ),
        ("UTF-16", b"\xff\xfe{\0}\0".to_vec(), MALFORMED),
        (
            "half a surrogate",
            text("{\"name\": \"\\ud800\"}"),
            MALFORMED,
        ),
        ("deep nesting", "[".repeat(100_000).into_bytes(), MALFORMED),
        (
            "deep and closed",
            [vec![b'['; 5_000], vec![b']'; 5_000]].concat(),
            MALFORMED,
        ),
        (
            "deep objects",
            [b"{\"a\":".repeat(5_000), b"1".to_vec(), vec![b'}'; 5_000]].concat(),
            MALFORMED,
        ),
        ("a list", text("[]"), FAULTY),
        ("a string", text("\"name\""), FAULTY),
        ("a number", text("5"), FAULTY),
        ("null", text("null"), FAULTY),
        ("NUL in a name", text("{\"\\u0000\": 1}"), FAULTY),
        (
            "NUL in a text",
            text("{\"name\": \"a\\u0000b\", \"enabled\": \"\\u0000\"}"),
            FAULTY,
        ),
        ("unknown field", text("{\"nmae\": 1}"), FAULTY),
        (
            "a field twice",
            text("{\"name\": \"a\", \"name\": \"b\", \"enabled\": true, \"enabled\": false}"),
            FAULTY,
        ),
        (
            "absurd number",
            text("{\"name\": 1e999999, \"enabled\": 99999999999999999999999}"),
            FAULTY,
        ),
        (
            "prototype",
            text("{\"__proto__\": {\"admin\": true}}"),
            FAULTY,
        ),
        ("many fields", many_fields(), FAULTY),
        ("many duplicate fields", many_duplicate_fields(), FAULTY),
    ]
}

fn many_fields() -> Vec<u8> {
    let fields: Vec<String> = (0..85_000)
        .map(|number| format!("\"f{number}\":1"))
        .collect();
    format!("{{{}}}", fields.join(",")).into_bytes()
}

/// Makes a quadratic search for duplicate fields slow.
fn many_duplicate_fields() -> Vec<u8> {
    let known = "\"name\":0,\"enabled\":0,".repeat(40_000);
    format!("{{{}{known}\"x\":0}}", "\"\":0,".repeat(40_000)).into_bytes()
}

/// Reads everything that a write could have changed.
async fn read_everything(server: &TestServer, key: &str, fixture: &RouteFixture) -> Vec<Value> {
    let app = format!("/api/v1/apps/{}", fixture.app);
    let mut seen = Vec::new();
    for path in [
        "",
        "/links?limit=500",
        "/integrations",
        "/skan",
        "/events?limit=500",
    ] {
        seen.push(
            server
                .get(&format!("{app}{path}"), key)
                .await
                .expect(200)
                .json(),
        );
    }
    seen.push(
        server
            .get("/api/v1/apps?limit=500", key)
            .await
            .expect(200)
            .json(),
    );
    seen.push(
        server
            .get("/api/v1/audit-log?limit=500", key)
            .await
            .expect(200)
            .json(),
    );
    seen
}

on_both_engines! {
    async fn every_route_rejects_hostile_bodies_without_changing_anything(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &key).await;
        let before = read_everything(&server, &key, &fixture).await;
        for route in ROUTES.iter().filter(|route| route.body(&fixture).is_some()) {
            for (name, body, codes) in hostile_bodies() {
                // The SDK endpoints ignore unknown fields without validating them.
                let codes = if route.needs == Needs::SdkKey { &["malformed_json", "validation_failed"] } else { codes };
                let request = route.request(&server, &fixture, route.key(&fixture, &key));
                let request = request.header("content-type", "application/json").body(body);
                let begun = Instant::now();
                let answer = server.send(request).await;
                assert!(begun.elapsed() < Duration::from_secs(25), "{name} at {route:?} takes too long");
                assert!(codes.contains(&answer.code().as_str()), "{name} at {route:?}: {answer:?}");
                assert!(answer.text.len() < 100_000, "error responses have a size limit");
            }
        }
        assert_eq!(read_everything(&server, &key, &fixture).await, before, "nothing was written");
    }

    async fn any_value_in_any_field_gets_a_valid_response(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &key).await;
        let odd = [
            json!(null), json!(true), json!(0), json!(-1), json!(1.5), json!(1e300), json!(""), json!("\u{0}"),
            json!("\u{202e}<script>alert(1)</script>'; drop table apps; --"), json!("é".repeat(5_000)),
            json!([]), json!([null]), json!([[]]), json!({}), json!({"": ""}), json!(i64::MAX), json!(u64::MAX),
        ];
        let fields = [
            "name", "timezone", "archived", "ios", "android", "webEvents", "linkDomain", "sdk", "attribution",
            "qualifiedTrial", "skanTestSignals", "alertWebhookUrl", "billing", "slug", "type", "network", "active",
            "iosUrl", "destinationUrl", "passParams", "deepLink", "customData", "campaign", "enabled", "scope",
            "settings", "credentials", "eventMapping", "currency", "acceptTestSignals", "windows",
        ];
        for route in ROUTES.iter().filter(|route| route.needs == Needs::AppsWrite && route.body(&fixture).is_some()) {
            for field in fields {
                for value in &odd {
                    let mut body = json!({"name": "Odd"});
                    body[field] = value.clone();
                    let answer = server.call(route.method, &route.path_for(&fixture), &key, Some(body)).await;
                    let status = answer.status.as_u16();
                    assert!(matches!(status, 200 | 201 | 409 | 422), "{field}={value} at {route:?}: {answer:?}");
                    assert!(!answer.text.contains("drop table") || status < 300, "an error does not echo the value");
                }
            }
        }
    }

    async fn compressed_bodies_are_accepted_up_to_the_limit(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let post = async |encoding: &str, body: Vec<u8>| -> TestResponse {
            let request = server.request(Method::POST, "/api/v1/apps").bearer_auth(&key);
            let request = request.header("content-type", "application/json").header("content-encoding", encoding);
            server.send(request.body(body)).await
        };
        post("gzip", gzip(b"{\"name\": \"Compressed\"}")).await.expect(201);
        post("identity", b"{\"name\": \"Plain\"}".to_vec()).await.expect(201);
        let members = [gzip(b"{\"name\": "), gzip(b"\"Two\"}")].concat();
        post("gzip", members).await.expect(201);
        let trailing = [gzip(b"{\"name\": \"one\"}"), b"garbage".to_vec()].concat();
        assert_eq!(post("gzip", trailing).await.expect(400).code(), "malformed_json");
        let bomb = gzip(&vec![b' '; 50 * 1024 * 1024]);
        assert_eq!(post("gzip", bomb).await.expect(413).code(), "payload_too_large");
        assert_eq!(post("gzip", b"not gzip".to_vec()).await.expect(400).code(), "malformed_json");
        assert_eq!(post("gzip", gzip(b"{\"name\": \"cut")[..15].to_vec()).await.expect(400).code(), "malformed_json");
        assert_eq!(post("br", b"x".to_vec()).await.expect(415).code(), "unsupported_media_type");
    }

    async fn a_body_of_the_maximum_size_is_accepted_and_a_larger_one_is_rejected(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let post = async |bytes: usize| {
            let mut body = b"{\"name\": \"Large\"}".to_vec();
            body.resize(bytes, b' ');
            let request = server.request(Method::POST, "/api/v1/apps").bearer_auth(&key);
            server.send(request.header("content-type", "application/json").body(body)).await
        };
        post(tributary_api::BODY_BYTES_MAX).await.expect(201);
        assert_eq!(post(tributary_api::BODY_BYTES_MAX + 1).await.expect(413).code(), "payload_too_large");
    }

    async fn texts_are_returned_as_they_were_sent(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        for name in ["Läufer 走る ✓", "<b>bold</b> & \"quoted\" 'single'", "a\\b/c", "\u{202e}right to left", "%00%s{}"] {
            let app = server.post("/api/v1/apps", &key, json!({"name": name})).await.expect(201).data();
            assert_eq!(app["name"], name);
            let path = format!("/api/v1/apps/{}", app["id"].as_str().unwrap());
            assert_eq!(server.get(&path, &key).await.data()["name"], name);
        }
    }

    async fn invalid_query_parameters_are_rejected(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        for query in ["limti=5", "limit=5&limit=6", "limit=%FF", "x", "cursor=%00", "=", "appId=1"] {
            let answer = server.get(&format!("/api/v1/apps?{query}"), &key).await;
            assert_eq!(answer.status.as_u16(), 422, "{query}: {answer:?}");
        }
        server.get("/api/v1/apps?", &key).await.expect(200);
    }
}
