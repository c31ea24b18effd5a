//! Web events, `POST /api/v1/apps/{appId}/web-events`: preconditions, response and order of checks.
//! Fields by type are in `web_events_fields.rs`, duplicates and refunds in `web_events_ledger.rs`,
//! revenue and reports in `web_events_money.rs`, concurrent clients in `web_events_concurrency.rs`.

use crate::website::{BROWSER, SHOP, START, Website, with};
use serde_json::{Value, json};
use tributary_domain::access::{Environment, Permission};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::keyring::Keyring;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_testkit::{TestServer, on_both_engines};

fn refusal(status: u16, code: &str) -> (u16, String, bool) {
    (status, code.to_owned(), false)
}

on_both_engines! {
    async fn returns_202_once_the_event_is_stored(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let answer = site.send(&site.purchase("order-1", "49.99")).await.expect(202);
        let body = answer.json();
        let received = body["data"]["receivedAt"].as_str().unwrap();
        assert!(received.starts_with("2026-01-01T00:00:00.") && received.ends_with('Z'), "{received}");
        assert_eq!(body, json!({
            "data": {"eventId": "order-1", "status": "accepted", "duplicate": false, "receivedAt": received},
        }));
        let event = site.logged_event("order-1").await;
        assert_eq!(event, json!({
            "id": event["id"], "eventId": "order-1", "name": "purchase", "source": "web", "environment": "live",
            "timestampMs": START, "receivedAt": received, "deviceId": "visitor-1", "userId": null,
            "revenue": {
                "amount": 49.99, "currency": "USD", "usd": 49.99, "rateDate": "2026-01-01", "counted": true,
                "reason": null,
            },
            "deliveries": [{
                "id": null, "network": "network_a", "networkEvent": null, "status": "skipped",
                "reason": "integration_disabled", "attemptsMade": 0, "nextAttemptAt": null, "settledAt": null,
            }],
            "duplicateOf": null, "originalTransactionId": null, "sourceUrl": site.purchase("order-1", "49.99")["sourceUrl"],
            "params": null,
            "attribution": {
                "network": "network_a", "matchType": "click_id", "linkId": site.link, "clickId": site.click,
                "hold": null,
                "campaign": {
                    "id": "238", "name": null, "adsetId": null, "adsetName": null, "adId": null, "adName": null,
                },
            },
        }));
    }

    async fn a_refund_names_its_payment_in_the_log_and_in_exports(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        site.send_accepted(&site.purchase("order-1", "49.99")).await;
        let refund = site.refund("refund-1", "-9.99", "order-1");
        site.send_accepted(&refund).await;
        let logged = site.logged_event("refund-1").await;
        assert_eq!(logged["originalTransactionId"], "order-1");
        assert_eq!(logged["sourceUrl"], refund["sourceUrl"]);
        let path = format!("{}/export", site.app);
        let csv = server.get(&path, &site.key).await.expect(200).text;
        assert!(csv.lines().next().unwrap().ends_with(",originalTransactionId,sourceUrl,hold"), "{csv}");
        let end = format!(",order-1,{},", refund["sourceUrl"].as_str().unwrap());
        assert!(csv.lines().any(|line| line.contains("refund-1") && line.ends_with(&end)), "{csv}");
    }

    // 1. The key is a private organization API key carrying apps:write.
    async fn requires_a_private_key_with_apps_write(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let full = server.key(organization, Permission::Full, Environment::Live).await;
        let app = server.app(&full).await;
        let site = Website::for_app(format!("http://{}", server.address), full, app).await;
        let event = site.purchase("order-1", "1");
        for permission in [Permission::ReadOnly, Permission::Analytics] {
            let key = server.key(organization, permission, Environment::Live).await;
            let other = Website { key, ..site.clone() };
            assert_eq!(other.send_refused(&event).await, refusal(403, "insufficient_permission"));
        }
        let sdk = site.call("GET", "", Value::Null).await.expect(200).data()["sdk"].clone();
        for name in ["liveKey", "testKey"] {
            let other = Website { key: sdk[name].as_str().unwrap().to_owned(), ..site.clone() };
            assert_eq!(other.send_refused(&event).await, refusal(403, "private_key_required"));
        }
        let unknown_key = Website { key: "ak_live_unknown".to_owned(), ..site.clone() };
        assert_eq!(unknown_key.send_refused(&event).await, refusal(401, "invalid_api_key"));
        let other_organization = Website { key: server.full_key().await, ..site.clone() };
        assert_eq!(other_organization.send_refused(&event).await, refusal(404, "app_not_found"));
        assert_eq!(site.log().await, Vec::<Value>::new(), "rejected events are not stored");
        site.send_accepted(&event).await;
    }

    // 2. webEvents.enabled is true for the app. Default is disabled.
    async fn requires_web_events_to_be_enabled_for_the_app(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let fresh = server.app(&site.key).await;
        let fresh = Website { app: fresh, ..site.clone() };
        assert_eq!(fresh.send_refused(&site.purchase("order-1", "1")).await, refusal(403, "web_events_disabled"));
        site.send_accepted(&site.purchase("order-1", "1")).await;
        site.set_web_events(false).await;
        for id in ["order-1", "order-2"] {
            let refused = site.send_refused(&site.purchase(id, "1")).await;
            assert_eq!(refused, refusal(403, "web_events_disabled"), "both repeated and new events");
        }
        site.set_web_events(true).await;
        site.send_accepted(&site.purchase("order-2", "1")).await;
    }

    // 3. The environment is production. The endpoint is production-only.
    async fn the_endpoint_is_production_only(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let live = server.key(organization, Permission::Full, Environment::Live).await;
        let test = server.key(organization, Permission::Full, Environment::Test).await;
        let app = server.app(&live).await;
        let site = Website::for_app(format!("http://{}", server.address), live, app).await;
        let sandbox = Website { key: test, ..site.clone() };
        assert_eq!(sandbox.send_refused(&site.purchase("order-1", "1")).await, refusal(403, "production_only"));
        site.send_accepted(&site.purchase("order-1", "1")).await;
        assert_eq!(sandbox.log().await, Vec::<Value>::new(), "test keys do not see live events");
    }

    // 4. The click arClickId is verified, belongs to the same app …
    async fn requires_a_verified_click_of_the_same_app(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let other = Website::open_at(&site.base, &site.key).await;
        let last = site.click.chars().last().unwrap();
        let forged = format!("{}{}", &site.click[..site.click.len() - 1], if last == '0' { '2' } else { '0' });
        let app = AppId::parse(site.app.rsplit('/').next().unwrap()).unwrap();
        let tokens = ClickTokens::new(&Keyring::new([7; 32]));
        let unknown_click = tokens.sign(app, ClickId::from_bytes([9; 16]));
        let other_keyring = ClickTokens::new(&Keyring::new([8; 32])).sign(app, tokens.verify(&site.click).unwrap().click);
        let bot = site.tap_as(&site.link, "fbclid=f2", "facebookexternalhit/1.1").await;
        let plain = AppId::to_string(&app);
        let clicks: [&str; 8] = [
            "nonsense", &forged, &unknown_click, &other_keyring, &bot, &other.click, &plain, &site.click[4..],
        ];
        for (number, click) in clicks.into_iter().enumerate() {
            let event = with(&site.purchase(&format!("order-{number}"), "1"), "arClickId", click);
            assert_eq!(site.send_refused(&event).await, refusal(422, "click_not_verified"), "{number}: {click}");
        }
        assert_eq!(site.log().await, Vec::<Value>::new());
    }

    // 4. … and originates from network_a, network_b, network_c or network_d.
    // Organic (non-click) traffic is not supported by this endpoint.
    async fn requires_a_click_from_one_of_the_four_networks(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let queries = [
            ("network_a", "fbclid=x"), ("network_b", "gclid=x"), ("network_c", "ttclid=x"), ("network_d", "oppref=x"),
        ];
        for (network, query) in queries {
            let click = site.tap(&site.link, query).await;
            site.send_accepted(&with(&site.purchase(network, "1"), "arClickId", click.as_str())).await;
            let credit = site.logged_event(network).await["attribution"].clone();
            assert_eq!((&credit["network"], &credit["clickId"]), (&json!(network), &json!(click)));
        }
        for query in ["", "utm_source=newsletter"] {
            let click = site.tap(&site.link, query).await;
            let event = with(&site.purchase("order-1", "1"), "arClickId", click);
            assert_eq!(site.send_refused(&event).await, refusal(422, "click_network_unsupported"), "{query}");
        }
        let with_network = json!({"name": "L", "type": "web_funnel", "network": "network_c", "destinationUrl": SHOP});
        let click = site.tap(&site.create_link(with_network).await, "").await;
        site.send_accepted(&with(&site.purchase("order-1", "1"), "arClickId", click)).await;
    }

    // 5. A web_funnel link exists whose destination origin matches the origin of sourceUrl.
    async fn the_origin_of_source_url_must_be_the_destination_origin_of_the_clicked_link(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        // Another link to that origin does not help: only the clicked link counts.
        site.create_funnel_link("https://other.example.com/").await;
        for (number, url) in [
            "https://other.example.com/paid", "https://shop.example.com:8443/", "https://example.com/",
            "https://shop.example.com.evil.test/", "https://www.shop.example.com/", "https://192.0.2.1/",
        ].into_iter().enumerate() {
            let event = with(&site.purchase(&format!("order-{number}"), "1"), "sourceUrl", url);
            assert_eq!(site.send_refused(&event).await, refusal(422, "origin_mismatch"), "{url}");
        }
        assert_eq!(site.log().await, Vec::<Value>::new());
    }

    async fn origins_are_compared_by_scheme_host_and_port_in_their_canonical_form(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for (number, (destination, source)) in [
            ("https://shop.example.com/start?x=1", "https://SHOP.example.com:443/any/where"),
            ("https://shop.example.com:8443/", "https://shop.example.com:8443/paid"),
            ("https://b\u{fc}cher.example/", "https://xn--bcher-kva.example/paid"),
            ("https://xn--bcher-kva.example/", "https://B\u{dc}CHER.example/"),
            ("https://shop.example.com", "https://shop.example.com"),
        ].into_iter().enumerate() {
            let link = site.create_funnel_link(destination).await;
            let click = site.tap(&link, "gclid=x").await;
            let event = with(&site.purchase(&format!("order-{number}"), "1"), "arClickId", click);
            site.send_accepted(&with(&event, "sourceUrl", source)).await;
        }
    }

    async fn accepts_the_origin_stored_with_the_click_and_the_current_one_of_the_link(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let moved = json!({"destinationUrl": "https://new.example.com/"});
        site.call("PATCH", &format!("/links/{}", site.link), moved).await.expect(200);
        site.send_accepted(&site.purchase("order-1", "1")).await;
        let new = with(&site.purchase("order-2", "1"), "sourceUrl", "https://new.example.com/paid");
        site.send_accepted(&new).await;
        let neither = with(&site.purchase("order-3", "1"), "sourceUrl", "https://newer.example.com/");
        assert_eq!(site.send_refused(&neither).await, refusal(422, "origin_mismatch"));
        // A click after the change never led to the old origin.
        let late = site.tap(&site.link, "fbclid=f2").await;
        let event = with(&site.purchase("order-4", "1"), "arClickId", late);
        assert_eq!(site.send_refused(&event).await, refusal(422, "origin_mismatch"));
    }

    async fn rejects_clicks_of_app_install_links(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        site.call("PATCH", "", json!({"android": {"packageName": "com.example.runner"}})).await.expect(200);
        let link = site.create_link(json!({"name": "App", "fallbackUrl": SHOP, "network": "network_a"})).await;
        let phone = BROWSER.replace("iPhone; CPU iPhone OS 18_6 like Mac OS X", "Linux; Android 14; Pixel 8");
        let request = server.request(reqwest::Method::GET, &format!("/c/{link}?fbclid=x")).header("user-agent", phone);
        let answer = server.send(request).await.expect(302);
        let store = answer.header("location").unwrap();
        let (_, click) = store.split_once("referrer=ar_click_id%3D").unwrap_or_else(|| panic!("{store}"));
        let event = with(&site.purchase("order-1", "1"), "arClickId", click);
        assert_eq!(site.send_refused(&event).await, refusal(422, "origin_mismatch"));
    }

    // Key, permission, environment, body, app, webEvents.enabled, idempotency, click, origin,
    // parent, refund limit.
    async fn checks_run_in_the_documented_order(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let key = async |permission, environment| server.key(organization, permission, environment).await;
        let full = key(Permission::Full, Environment::Live).await;
        let app = server.app(&full).await;
        let site = Website::for_app(format!("http://{}", server.address), full.clone(), app).await;
        site.send_accepted(&site.purchase("order-1", "10")).await;
        site.set_web_events(false).await;
        // This event fails every check. Each fix reveals the error of the next check.
        let mut event = with(&site.refund("order-1", "-11", "nothing"), "arClickId", "clk_forged");
        event["sourceUrl"] = json!("https://evil.test/");
        event["revenue"] = json!("11");
        let mut caller = Website { key: "x".to_owned(), app: "/api/v1/apps/app_x".to_owned(), ..site.clone() };
        let mut seen = Vec::new();
        let mut record = async |caller: &Website, event: &Value| seen.push(caller.send_refused(event).await.1);
        record(&caller, &event).await;
        caller.key = key(Permission::ReadOnly, Environment::Test).await;
        record(&caller, &event).await;
        caller.key = key(Permission::Full, Environment::Test).await;
        record(&caller, &event).await;
        caller.key = full;
        record(&caller, &event).await;
        event["revenue"] = json!("-11");
        record(&caller, &event).await;
        caller.app.clone_from(&site.app);
        record(&caller, &event).await;
        site.set_web_events(true).await;
        record(&caller, &event).await;
        event["eventId"] = json!("refund-1");
        record(&caller, &event).await;
        event["arClickId"] = json!(site.click);
        record(&caller, &event).await;
        event["sourceUrl"] = json!(SHOP);
        record(&caller, &event).await;
        event["originalTransactionId"] = json!("order-1");
        record(&caller, &event).await;
        assert_eq!(seen, [
            "invalid_api_key", "insufficient_permission", "production_only", "validation_failed", "app_not_found",
            "web_events_disabled", "event_id_conflict", "click_not_verified", "origin_mismatch",
            "original_transaction_unavailable", "refund_exceeds_payment",
        ]);
        event["revenue"] = json!("-10");
        site.send_accepted(&event).await;
    }
}
