//! Taps on links: `/c/{idOrSlug}` and `/w/{idOrSlug}`.

use reqwest::Method;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::keyring::Keyring;
use tributary_domain::vocabulary::digest::hex;
use tributary_domain::vocabulary::id::AppId;
use tributary_testkit::{
    DirectConnection, TestResponse, TestServer, TestServerSettings, on_both_engines,
};

pub(crate) const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) \
     AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1";
pub(crate) const ANDROID: &str = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/126.0.0.0 Mobile Safari/537.36";
pub(crate) const COMPUTER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 \
     (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36";

/// A server with an app that has ids in both stores.
pub(crate) struct LinkFixture {
    pub(crate) server: TestServer,
    pub(crate) key: String,
    pub(crate) app: String,
}

impl LinkFixture {
    pub(crate) async fn new(server: TestServer) -> Self {
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let ids = json!({
            "ios": {"appStoreId": "123456789"}, "android": {"packageName": "com.example.runner"},
        });
        server.patch(&app, &key, ids).await.expect(200);
        Self { server, key, app }
    }

    /// Creates a link with this slug.
    pub(crate) async fn link(&self, slug: &str, mut fields: Value) -> Value {
        fields["name"] = json!("Spring");
        fields["slug"] = json!(slug);
        let path = format!("{}/links", self.app);
        self.server
            .post(&path, &self.key, fields)
            .await
            .expect(201)
            .data()
    }

    /// Creates a `web_funnel` link with this slug.
    pub(crate) async fn funnel(&self, slug: &str, destination: &str) -> Value {
        self.link(
            slug,
            json!({"type": "web_funnel", "destinationUrl": destination}),
        )
        .await
    }

    /// Opens a path with this user agent.
    pub(crate) async fn tap(&self, path: &str, user_agent: &str) -> TestResponse {
        self.tap_with(path, &[("user-agent", user_agent)]).await
    }

    pub(crate) async fn tap_with(&self, path: &str, headers: &[(&str, &str)]) -> TestResponse {
        let request = self.server.request(Method::GET, path);
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        self.server.send(request).await
    }

    pub(crate) fn app_id(&self) -> AppId {
        AppId::parse(self.app.rsplit('/').next().unwrap()).unwrap()
    }

    pub(crate) async fn direct_connection(&self) -> DirectConnection {
        self.server.database.direct_connection().await
    }

    /// Reads one column of every click, oldest first.
    pub(crate) async fn clicks(&self, column: &str) -> Vec<String> {
        let sql = format!("select {column} from clicks order by clicked_at");
        let rows = self.direct_connection().await.rows(&sql).await;
        rows.into_iter()
            .map(|row| row[0].clone().unwrap_or_default())
            .collect()
    }
}

pub(crate) fn location(answer: &TestResponse) -> &str {
    answer.header("location").unwrap_or_default()
}

/// Extracts the click id from a URL, verifies it and returns it in hex.
fn verified_click_id(fixture: &LinkFixture, text: &str) -> String {
    let token: String = text
        .split_once("clk_")
        .map(|(_, rest)| {
            rest.chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect()
        })
        .unwrap_or_default();
    let verified = ClickTokens::new(&Keyring::new([7; 32]))
        .verify(&format!("clk_{token}"))
        .unwrap();
    assert!(verified.belongs_to(fixture.app_id()));
    hex(verified.click.as_bytes())
}

on_both_engines! {
    async fn an_install_link_redirects_to_the_store_of_the_device(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        let link = fixture.link("spring", json!({"fallbackUrl": "https://example.com/x?y=z"})).await;
        let by_id = format!("/c/{}", link["id"].as_str().unwrap());
        for path in ["/c/spring", by_id.as_str()] {
            let answer = fixture.tap(path, IPHONE).await.expect(302);
            assert_eq!(location(&answer), "https://apps.apple.com/app/id123456789");
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            assert!(answer.header("accept-ch").unwrap().contains("Sec-CH-UA-Model"));
            assert_eq!((answer.text.as_str(), answer.header("set-cookie")), ("", None));
        }
        let play = fixture.tap("/c/spring?fbclid=x", ANDROID).await.expect(302);
        let prefix = "https://play.google.com/store/apps/details?id=com.example.runner&referrer=ar_click_id%3Dclk_";
        assert!(location(&play).starts_with(prefix), "{play:?}");
        let fallback = fixture.tap("/c/spring?fbclid=x", COMPUTER).await.expect(302);
        assert_eq!(location(&fallback), "https://example.com/x?y=z");
        let ids = fixture.clicks("click_id").await;
        let id = verified_click_id(&fixture, location(&play));
        let same = |stored: &String| stored.replace(['-', '\\', 'x'], "").contains(&id);
        assert_eq!(ids.iter().filter(|stored| same(stored)).count(), 1, "{ids:?} {id}");
        assert_eq!(fixture.clicks("platform").await, ["ios", "ios", "android", "web"]);
        assert_eq!(fixture.clicks("os_version").await, ["26.1", "26.1", "", ""]);
    }

    async fn records_a_click_with_data_from_its_url_and_headers(engine: Engine) {
        let settings = TestServerSettings { proxies: vec![IpAddr::from([127, 0, 0, 1])], ..TestServerSettings::default() };
        let fixture = LinkFixture::new(TestServer::start_with(engine, settings).await).await;
        let link_fields = json!({"network": "network_a", "campaign": {"id": "7", "name": "Spring"}});
        fixture.link("spring", link_fields).await;
        let query = "fbclid={{fbclid}}&campaign_name=__CAMPAIGN_NAME__&adgroup_id=5&ttclid=E.C.P.x%2By&utm_source=fb\
                     &fbclid=IwAR+AbC&invite=a+b&idfa=6F9619FF-8B86-4011-B42D-00C04FC964FF";
        let headers = [
            ("user-agent", ANDROID),
            ("accept-language", "de-AT,de;q=0.9"),
            ("referer", "https://l.example.com/page?secret=1"),
            ("x-forwarded-for", "203.0.113.9"),
            ("sec-ch-ua-model", "\"Pixel 8\""),
            ("sec-ch-ua-platform-version", "\"14.0.0\""),
        ];
        fixture.tap_with(&format!("/c/spring?{query}"), &headers).await.expect(302);
        let columns = "network, network_by, bot, language, referer, address, model, os_version, user_agent";
        let rows = fixture.direct_connection().await.rows(&format!("select {columns} from clicks")).await;
        let row: Vec<&str> = rows[0].iter().map(|value| value.as_deref().unwrap_or("-")).collect();
        let expected = [
            "network_a", "click_id", "-", "de", "https://l.example.com", "203.0.113.9", "Pixel 8", "14", ANDROID,
        ];
        assert_eq!(row, expected);
        let captured: Value = serde_json::from_str(&fixture.clicks("captured").await[0]).unwrap();
        assert_eq!(captured["campaign"], json!({"id": "7", "name": "Spring", "adset_id": "5"}));
        assert_eq!(captured["query_params"], json!({"invite": "a b"}));
        let text = captured.to_string();
        assert!(text.contains("IwAR+AbC") && text.contains("E.C.P.x+y"), "{text}");
        assert!(!text.to_lowercase().contains("6f9619ff"), "only the hash of an advertising id is stored: {text}");
        let hashed = fixture.clicks("case when advertising_hash is null or address_hash is null then 0 else 1 end").await;
        assert_eq!(hashed, ["1"]);
    }

    async fn a_funnel_passes_only_allowed_parameters(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        let link = fixture.funnel("funnel", "https://example.com/a?b=c%20d#e").await;
        let query = "offer=trial&gclid=G%2Bx&UTM_Source=a+b&campaign_id=9&x=1&ttclid=__CLICKID__&ar_link_id=forged";
        let answer = fixture.tap(&format!("/w/funnel?{query}"), IPHONE).await.expect(302);
        let id = link["id"].as_str().unwrap();
        let prefix = format!("https://example.com/a?b=c%20d&ar_link_id={id}&ar_click_id=clk_");
        assert!(location(&answer).starts_with(&prefix), "{answer:?}");
        let suffix = "&offer=trial&gclid=G%2Bx&utm_source=a%20b#e";
        assert!(location(&answer).ends_with(suffix), "{answer:?}");
        verified_click_id(&fixture, location(&answer));
        assert_eq!(fixture.clicks("destination_origin").await, ["https://example.com"]);
        for other in ["offer=Trial", "offer=trial2", "offer=", "offer={offer}", "offer=control%20x", "offer=trial%20", "offer=+trial"] {
            let answer = fixture.tap(&format!("/w/funnel?{other}"), IPHONE).await.expect(302);
            assert!(!location(&answer).contains("offer"), "{other}: {answer:?}");
        }
        let answer = fixture.tap("/w/funnel?offer=control", COMPUTER).await.expect(302);
        assert!(location(&answer).contains("&offer=control#e"), "{answer:?}");
    }

    async fn a_request_cannot_change_the_destination(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.link("spring", json!({"fallbackUrl": "https://example.com/x"})).await;
        fixture.funnel("funnel", "https://example.com/x").await;
        let evil = [
            "url=https://evil.test", "destinationUrl=https://evil.test", "fallbackUrl=//evil.test",
            "redirect=https%3A%2F%2Fevil.test", "next=%2F%2Fevil.test", "utm_source=https%253A%252F%252Fevil.test",
            "utm_source=%5C%5Cevil.test", "utm_source=x%0D%0ALocation:%20https://evil.test",
            "utm_source=@evil.test", "utm_source=%23@evil.test", "gclid=https://%D0%B5vil.test",
            "url=https://example.com&url=https://evil.test", "?url=https://evil.test", "utm_%0d%0a=1",
        ];
        let headers = [
            ("user-agent", COMPUTER), ("x-forwarded-host", "evil.test"), ("x-forwarded-proto", "javascript"),
            ("forwarded", "host=evil.test"), ("x-original-url", "https://evil.test"),
            ("x-rewrite-url", "//evil.test"), ("referer", "https://evil.test/"), ("origin", "https://evil.test"),
        ];
        for query in evil {
            let answer = fixture.tap_with(&format!("/c/spring?{query}"), &headers).await.expect(302);
            assert_eq!(location(&answer), "https://example.com/x", "{query}");
            let answer = fixture.tap_with(&format!("/w/funnel?{query}"), &headers).await.expect(302);
            assert!(location(&answer).starts_with("https://example.com/x?ar_link_id=lnk_"), "{query}: {answer:?}");
            assert_eq!(answer.headers.get_all("location").iter().count(), 1);
        }
        for name in [
            "https:%2F%2Fevil.test", "%2F%2Fevil.test", "%5C%5Cevil.test", "spring%0d%0aLocation:%20https://evil.test",
            "spring@evil.test", "spring%00", "%ff", "spr%C3%ADng", "..%2f..%2fetc", "SPRING", "lnk_", "a", "%20spring",
        ] {
            let answer = fixture.tap(&format!("/c/{name}"), COMPUTER).await.expect(404);
            assert_eq!(answer.header("location"), None, "{name}");
        }
    }

    async fn bots_and_previews_are_redirected_and_flagged(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.link("spring", json!({"fallbackUrl": "https://example.com/"})).await;
        fixture.funnel("funnel", "https://example.com/").await;
        let requests: [(&str, &[(&str, &str)]); 8] = [
            ("known_agent", &[("user-agent", "facebookexternalhit/1.1")]),
            ("known_agent", &[("user-agent", "WhatsApp/2.23.20.0")]),
            ("known_agent", &[("user-agent", "curl/8.5.0")]),
            ("prefetch", &[("user-agent", IPHONE), ("sec-purpose", "prefetch;prerender")]),
            ("prefetch", &[("user-agent", IPHONE), ("x-moz", "prefetch")]),
            ("prefetch", &[("user-agent", IPHONE), ("x-purpose", "preview")]),
            ("no_user_agent", &[]),
            ("", &[("user-agent", IPHONE)]),
        ];
        for (_, headers) in requests {
            fixture.tap_with("/w/funnel", headers).await.expect(302);
        }
        let head = fixture.server.request(Method::HEAD, "/c/spring").header("user-agent", IPHONE);
        let answer = fixture.server.send(head).await.expect(302);
        assert_eq!(location(&answer), "https://apps.apple.com/app/id123456789");
        let mut expected: Vec<&str> = requests.iter().map(|(reason, _)| *reason).collect();
        expected.push("head");
        assert_eq!(fixture.clicks("bot").await, expected);
    }

    async fn a_missing_link_shows_a_page_and_records_no_click(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.link("spring", json!({})).await;
        fixture.funnel("funnel", "https://example.com/").await;
        fixture.link("inactive", json!({"active": false})).await;
        let deleted = fixture.link("deleted", json!({})).await;
        let path = format!("{}/links/{}", fixture.app, deleted["id"].as_str().unwrap());
        fixture.server.call("DELETE", &path, &fixture.key, None).await.expect(204);
        for path in [
            "/c/unknown", "/c/funnel", "/w/spring", "/g/funnel", "/c/inactive", "/g/inactive", "/c/deleted",
            "/c/lnk_00000000000000000000000000",
        ] {
            let answer = fixture.tap(path, IPHONE).await.expect(404);
            assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.contains("default-src 'none'") && !policy.contains("script-src"), "{policy}");
            assert!(!answer.text.contains("<script") && answer.text.contains("Link not found"), "{path}");
        }
        assert_eq!(fixture.clicks("bot").await, Vec::<String>::new());
        let post = fixture.server.request(Method::POST, "/c/spring");
        fixture.server.send(post).await.expect(405);
    }

    async fn ignores_a_trailing_slash(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.link("spring", json!({})).await;
        fixture.funnel("funnel", "https://example.com/").await;
        let answer = fixture.tap("/c/spring/?fbclid=x", IPHONE).await.expect(302);
        assert_eq!(location(&answer), "https://apps.apple.com/app/id123456789");
        let answer = fixture.tap("/w/funnel/?gclid=x", IPHONE).await.expect(302);
        assert!(location(&answer).ends_with("&gclid=x"), "{answer:?}");
        fixture.tap("/g/spring/", IPHONE).await.expect(200);
        assert_eq!(fixture.clicks("platform").await, ["ios", "ios", "ios"]);
        for path in ["/c/unknown/", "/w/unknown/", "/g/unknown/"] {
            let answer = fixture.tap(path, IPHONE).await.expect(404);
            assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
            assert!(answer.text.contains("Link not found"), "{path}");
        }
    }

    async fn a_former_slug_still_redirects(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        let link = fixture.link("spring", json!({})).await;
        let path = format!("{}/links/{}", fixture.app, link["id"].as_str().unwrap());
        fixture.server.patch(&path, &fixture.key, json!({"slug": "summer"})).await.expect(200);
        for slug in ["spring", "summer"] {
            fixture.tap(&format!("/c/{slug}"), IPHONE).await.expect(302);
        }
    }

    async fn a_link_works_on_every_host_but_other_link_domains(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.server.link_domain(&fixture.app, &fixture.key, "go.example.com").await;
        fixture.link("spring", json!({})).await;
        let other = fixture.server.app(&fixture.key).await;
        fixture.server.link_domain(&other, &fixture.key, "go.other.test").await;
        for (host, status) in [
            ("t.example.com", 302), ("go.example.com", 302), ("go.example.com:8443", 302), ("192.0.2.1", 302),
            ("alias.example.com", 302), ("go.other.test", 404),
        ] {
            let answer = fixture.tap_with("/c/spring", &[("user-agent", IPHONE), ("host", host)]).await;
            assert_eq!(answer.status.as_u16(), status, "{host}");
        }
    }

    async fn redirects_without_a_click_record_when_the_database_cannot_commit(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        let link = fixture.funnel("funnel", "https://example.com/?ar_click_id=old").await;
        fixture.link("spring", json!({})).await;
        let connection = fixture.direct_connection().await;
        connection.lock_clicks().await;
        // The server gives up after two seconds; waiting for the lock would take five.
        let assert_in_time = |started: Instant| assert!(started.elapsed() < Duration::from_millis(4_500), "{:?}", started.elapsed());
        let started = Instant::now();
        let answer = fixture.tap("/w/funnel?gclid=x", ANDROID).await.expect(302);
        assert_in_time(started);
        let id = link["id"].as_str().unwrap();
        assert_eq!(location(&answer), format!("https://example.com/?ar_link_id={id}&gclid=x"));
        let started = Instant::now();
        let answer = fixture.tap("/c/spring", ANDROID).await.expect(302);
        assert_in_time(started);
        assert_eq!(location(&answer), "https://play.google.com/store/apps/details?id=com.example.runner");
        connection.unlock_clicks().await;
        let mut answer = fixture.tap("/w/funnel", ANDROID).await.expect(302);
        for _ in 0..20 {
            // Requests that waited for the lock are served first.
            if location(&answer).contains("ar_click_id=clk_") {
                break;
            }
            answer = fixture.tap("/w/funnel", ANDROID).await.expect(302);
        }
        verified_click_id(&fixture, location(&answer));
    }

    async fn serves_cached_links_while_the_database_cannot_be_read(engine: Engine) {
        let fixture = LinkFixture::new(TestServer::start(engine).await).await;
        fixture.link("spring", json!({})).await;
        fixture.link("summer", json!({})).await;
        fixture.tap("/c/spring", IPHONE).await.expect(302);
        fixture.direct_connection().await.run("alter table links rename to links_away").await;
        let answer = fixture.tap("/c/spring", IPHONE).await.expect(302);
        assert_eq!(location(&answer), "https://apps.apple.com/app/id123456789");
        let answer = fixture.tap("/c/summer", IPHONE).await.expect(503);
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(answer.header("retry-after").is_some());
        fixture.direct_connection().await.run("alter table links_away rename to links").await;
        fixture.tap("/c/summer", IPHONE).await.expect(302);
    }
}
