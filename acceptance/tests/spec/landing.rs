//! The landing page `/g/{idOrSlug}`, the hints that its script posts, and the files that let apps
//! open links.

use super::clicks::{ANDROID, COMPUTER, IPHONE, LinkFixture};
use reqwest::Method;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;
use tributary_testkit::{TestResponse, TestServer, TestServerSettings, on_both_engines};

/// Returns the text between two markers.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before} in {text}"))
        .1;
    rest.split_once(after).unwrap().0
}

async fn post_hints(fixture: &LinkFixture, path: &str, body: &Value) -> TestResponse {
    let request = fixture.server.request(Method::POST, path);
    let request = request
        .header("content-type", "application/json")
        .header("user-agent", IPHONE);
    fixture.server.send(request.body(body.to_string())).await
}

fn hints(app: &str) -> Value {
    let screen = json!({"width": 390, "height": 844, "scaleHundredths": 300});
    json!({"app": app, "timezone": "Europe/Berlin", "screen": screen})
}

async fn association_file(
    server: &TestServer,
    name: &str,
    headers: &[(&str, &str)],
) -> TestResponse {
    let request = server.request(Method::GET, &format!("/.well-known/{name}"));
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    server.send(request).await
}

const APPLE: &str = "apple-app-site-association";
const GOOGLE: &str = "assetlinks.json";

on_both_engines! {
    async fn the_page_shows_both_stores_and_a_qr_code(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        let name = json!({"name": "<b>Run & \"Fun\"</b>"});
        fixture.server.patch(&fixture.app, &fixture.key, name).await.expect(200);
        fixture.link("spring", json!({"fallbackUrl": "https://example.com/?a=1&b=2"})).await;
        for user_agent in [IPHONE, ANDROID, COMPUTER] {
            let answer = fixture.tap("/g/spring?gclid=x\"><script>alert(1)</script>", user_agent).await.expect(200);
            let page = &answer.text;
            assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            assert!(answer.header("accept-ch").is_some() && answer.header("set-cookie").is_none());
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
            assert!(page.contains("<h1>&#60;b&#62;Run &#38; &#34;Fun&#34;&#60;/b&#62;</h1>"), "{page}");
            assert!(page.contains("href=\"https://apps.apple.com/app/id123456789\""), "{page}");
            assert!(page.contains("referrer=ar_click_id%3Dclk_"), "{page}");
            assert!(page.contains("href=\"https://example.com/?a=1&#38;b=2\""), "{page}");
            assert!(page.contains("<svg viewBox="), "{page}");
            assert!(!page.contains("alert(1)") && page.matches("<script").count() == 1, "{page}");
            for path in ["/g/page.css", "/g/page.js"] {
                let path = format!("{path}{}", between(page, path, "\""));
                let file = fixture.tap(&path, user_agent).await.expect(200);
                assert!(file.header("cache-control").unwrap().contains("immutable"));
            }
        }
        let first = |page: &str| between(page, "button-first\" href=\"https://", ".").to_owned();
        assert_eq!(first(&fixture.tap("/g/spring", IPHONE).await.text), "apps");
        assert_eq!(first(&fixture.tap("/g/spring", ANDROID).await.text), "play");
        assert_eq!(fixture.clicks("network").await, ["network_b", "network_b", "network_b", "", ""]);
    }

    async fn a_link_without_a_store_or_fallback_shows_the_page(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.link("spring", json!({})).await;
        let answer = fixture.tap("/c/spring", COMPUTER).await.expect(200);
        assert!(answer.text.contains("apps.apple.com") && answer.text.contains("play.google.com"));
        let none = json!({"ios": {"appStoreId": null}, "android": {"packageName": null}});
        fixture.server.patch(&fixture.app, &fixture.key, none).await.expect(200);
        let answer = fixture.tap("/c/spring", IPHONE).await.expect(200);
        assert!(answer.text.contains("isn’t available yet"), "{}", answer.text);
    }

    async fn the_page_adds_time_zone_and_screen_to_its_click(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.link("spring", json!({})).await;
        let page = fixture.tap("/g/spring", IPHONE).await.expect(200).text;
        let (path, app) = (between(&page, "data-hints=\"", "\""), between(&page, "data-app=\"", "\""));
        assert_eq!(post_hints(&fixture, path, &hints(app)).await.expect(204).text, "");
        assert_eq!(fixture.clicks("timezone").await, ["Europe/Berlin"]);
        assert_eq!(fixture.clicks("screen").await, ["844,390,300"]);
        let nonsense = json!({"app": app, "timezone": "<script>", "screen": {"width": -1}, "more": [1]});
        post_hints(&fixture, path, &nonsense).await.expect(204);
        assert_eq!(fixture.clicks("timezone").await, ["Europe/Berlin"], "known values are not overwritten");
    }

    async fn hints_are_accepted_for_ten_minutes_and_only_from_the_page(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.link("spring", json!({})).await;
        let other = fixture.server.app(&fixture.key).await;
        let other = other.rsplit('/').next().unwrap();
        let page = fixture.tap("/g/spring", IPHONE).await.expect(200).text;
        let (path, app) = (between(&page, "data-hints=\"", "\""), between(&page, "data-app=\"", "\""));
        let last = if path.contains("0/hints") { "1/hints" } else { "0/hints" };
        let forged = format!("{}{last}", &path[..path.len() - "0/hints".len()]);
        assert_eq!(post_hints(&fixture, &forged, &hints(app)).await.expect(404).code(), "not_found");
        post_hints(&fixture, "/g/spring/hints", &hints(app)).await.expect(404);
        post_hints(&fixture, path, &hints(other)).await.expect(404);
        post_hints(&fixture, path, &json!({})).await.expect(404);
        post_hints(&fixture, path, &json!({"app": "x".repeat(1_100)})).await.expect(413);
        let plain = fixture.server.request(Method::POST, path).body(hints(app).to_string());
        fixture.server.send(plain).await.expect(415);
        let broken = fixture.server.request(Method::POST, path).header("content-type", "application/json");
        fixture.server.send(broken.body("{")).await.expect(400);
        fixture.tap(path, IPHONE).await.expect(405);
        fixture.server.clock.advance(Duration::from_mins(11));
        post_hints(&fixture, path, &hints(app)).await.expect(404);
        assert_eq!(fixture.clicks("timezone").await, [""]);
    }

    async fn a_bot_gets_the_page_without_hint_data(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.link("spring", json!({})).await;
        let answer = fixture.tap("/g/spring", "Twitterbot/1.0").await.expect(200);
        assert!(!answer.text.contains("data-hints"), "{}", answer.text);
        assert_eq!(fixture.clicks("bot").await, ["known_agent"]);
    }

    async fn serves_the_page_when_the_database_cannot_commit(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.link("spring", json!({})).await;
        let connection = fixture.direct_connection().await;
        connection.lock_clicks().await;
        let page = fixture.tap("/g/spring", ANDROID).await.expect(200).text;
        assert!(page.contains("details?id=com.example.runner\""), "{page}");
        assert!(!page.contains("data-hints") && !page.contains("clk_"), "{page}");
        connection.unlock_clicks().await;
    }

    async fn each_host_has_its_own_association_files(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let ids = |name: &str, domain: Option<&str>| json!({
            "ios": {"teamId": "ABCDE12345", "bundleId": format!("com.example.{name}")},
            "android": {"packageName": format!("com.example.{name}"), "sha256CertFingerprints": ["ab".repeat(32)]},
            "linkDomain": domain,
        });
        let service = [("host", "t.example.com")];
        for name in [APPLE, GOOGLE] {
            association_file(&server, name, &service).await.expect(404);
        }
        for (name, domain) in [("one", None), ("two", None), ("own", Some("go.example.com"))] {
            let app = server.app(&key).await;
            server.patch(&app, &key, ids(name, domain)).await.expect(200);
            if let Some(domain) = domain {
                server.link_domain(&app, &key, domain).await;
            }
        }
        // Apps without ids, or with only some of them, are not listed.
        server.app(&key).await;
        let half = server.app(&key).await;
        let ids = json!({"ios": {"bundleId": "com.example.half"}, "android": {"packageName": "com.example.half"}});
        server.patch(&half, &key, ids).await.expect(200);

        let components = json!([{"/": "/g/*", "exclude": true}, {"/": "/w/*", "exclude": true}, {"/": "/c/*"}]);
        let apple = |ids: Value| json!({"applinks": {"details": [{"appIDs": ids, "components": components}]}});
        let answer = association_file(&server, APPLE, &service).await.expect(200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.json(), apple(json!(["ABCDE12345.com.example.one", "ABCDE12345.com.example.two"])));
        let link_domain = [("host", "GO.example.com:443")];
        let answer = association_file(&server, APPLE, &link_domain).await.expect(200);
        assert_eq!(answer.json(), apple(json!(["ABCDE12345.com.example.own"])));

        let fingerprint = ["AB"; 32].join(":");
        let packages = |answer: TestResponse| -> Vec<String> {
            assert_eq!(answer.header("content-type"), Some("application/json"));
            let statements = answer.json();
            let package = |statement: &Value| {
                assert_eq!(statement["relation"], json!(["delegate_permission/common.handle_all_urls"]));
                assert_eq!(statement["target"]["namespace"], "android_app");
                assert_eq!(statement["target"]["sha256_cert_fingerprints"], json!([fingerprint]));
                statement["target"]["package_name"].as_str().unwrap().to_owned()
            };
            statements.as_array().unwrap().iter().map(package).collect()
        };
        let answer = association_file(&server, GOOGLE, &service).await.expect(200);
        assert_eq!(packages(answer), ["com.example.one", "com.example.two"]);
        assert_eq!(packages(association_file(&server, GOOGLE, &link_domain).await.expect(200)), ["com.example.own"]);
        for host in ["elsewhere.example.com", "192.0.2.1", "localhost", "<script>"] {
            for name in [APPLE, GOOGLE] {
                association_file(&server, name, &[("host", host)]).await.expect(404);
            }
        }
        let spoofed = [("host", "t.example.com"), ("x-forwarded-host", "go.example.com")];
        assert_eq!(packages(association_file(&server, GOOGLE, &spoofed).await).len(), 2, "the client is not a trusted proxy");
    }

    async fn behind_a_proxy_the_forwarded_host_counts(engine: Engine) {
        let settings = TestServerSettings { proxies: vec![IpAddr::from([127, 0, 0, 1])], ..TestServerSettings::default() };
        let server = TestServer::start_with(engine, settings).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let ids = json!({
            "ios": {"teamId": "ABCDE12345", "bundleId": "com.example.own"}, "linkDomain": "go.example.com",
        });
        server.patch(&app, &key, ids).await.expect(200);
        server.link_domain(&app, &key, "go.example.com").await;
        let forwarded = [("host", "t.example.com"), ("x-forwarded-host", "go.example.com")];
        association_file(&server, APPLE, &forwarded).await.expect(200);
        association_file(&server, APPLE, &forwarded[..1]).await.expect(404);
    }
}
