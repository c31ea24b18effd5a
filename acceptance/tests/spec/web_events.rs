//! Verified website events, `POST /api/v1/apps/{appId}/web-events`: the preconditions, the answer, and the order of
//! checks. The fields by type are in `web_events_fields.rs`, repeats and the ledger in `web_events_ledger.rs`, money
//! and reporting in `web_events_money.rs`, clients at the same moment in `web_events_at_once.rs`.

use crate::website::{PERSON, SHOP, START, Website, with};
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
    async fn an_event_durably_accepted_is_answered_202(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let answer = site.send(&site.purchase("order-1", "49.99")).await.expect(202);
        let body = answer.json();
        let received = body["data"]["receivedAt"].as_str().unwrap();
        assert!(received.starts_with("2026-01-01T00:00:00.") && received.ends_with('Z'), "{received}");
        assert_eq!(body, json!({
            "data": {"eventId": "order-1", "status": "accepted", "duplicate": false, "receivedAt": received},
        }));
        let event = site.logged("order-1").await;
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
                "campaign": {
                    "id": "238", "name": null, "adsetId": null, "adsetName": null, "adId": null, "adName": null,
                },
            },
        }));
    }

    async fn a_refund_names_its_payment_in_the_log_and_in_exports(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        site.accepted(&site.purchase("order-1", "49.99")).await;
        let refund = site.refund("refund-1", "-9.99", "order-1");
        site.accepted(&refund).await;
        let logged = site.logged("refund-1").await;
        assert_eq!(logged["originalTransactionId"], "order-1");
        assert_eq!(logged["sourceUrl"], refund["sourceUrl"]);
        let path = format!("{}/export", site.app);
        let csv = server.get(&path, &site.key).await.expect(200).text;
        assert!(csv.lines().next().unwrap().ends_with(",originalTransactionId,sourceUrl"), "{csv}");
        let end = format!(",order-1,{}", refund["sourceUrl"].as_str().unwrap());
        assert!(csv.lines().any(|line| line.contains("refund-1") && line.ends_with(&end)), "{csv}");
    }

    // 1. The key is a private organization API key carrying apps:write.
    async fn the_key_is_a_private_organization_api_key_carrying_apps_write(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let full = server.key(organization, Permission::Full, Environment::Live).await;
        let app = server.app(&full).await;
        let site = Website::of(format!("http://{}", server.address), full, app).await;
        let event = site.purchase("order-1", "1");
        for permission in [Permission::ReadOnly, Permission::Analytics] {
            let key = server.key(organization, permission, Environment::Live).await;
            let other = Website { key, ..site.clone() };
            assert_eq!(other.refused(&event).await, refusal(403, "insufficient_permission"));
        }
        let sdk = site.call("GET", "", Value::Null).await.expect(200).data()["sdk"].clone();
        for name in ["liveKey", "testKey"] {
            let other = Website { key: sdk[name].as_str().unwrap().to_owned(), ..site.clone() };
            assert_eq!(other.refused(&event).await, refusal(403, "private_key_required"));
        }
        let nobody = Website { key: "ak_live_nobody".to_owned(), ..site.clone() };
        assert_eq!(nobody.refused(&event).await, refusal(401, "invalid_api_key"));
        let stranger = Website { key: server.full_key().await, ..site.clone() };
        assert_eq!(stranger.refused(&event).await, refusal(404, "app_not_found"));
        assert_eq!(site.log().await, Vec::<Value>::new(), "what is refused leaves nothing");
        site.accepted(&event).await;
    }

    // 2. webEvents.enabled is true for the app. Default is disabled.
    async fn web_events_are_enabled_for_the_app(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let fresh = server.app(&site.key).await;
        let fresh = Website { app: fresh, ..site.clone() };
        assert_eq!(fresh.refused(&site.purchase("order-1", "1")).await, refusal(403, "web_events_disabled"));
        site.accepted(&site.purchase("order-1", "1")).await;
        site.switch(false).await;
        for id in ["order-1", "order-2"] {
            let refused = site.refused(&site.purchase(id, "1")).await;
            assert_eq!(refused, refusal(403, "web_events_disabled"), "new or not");
        }
        site.switch(true).await;
        site.accepted(&site.purchase("order-2", "1")).await;
    }

    // 3. The environment is production. The endpoint is production-only.
    async fn the_endpoint_is_production_only(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let live = server.key(organization, Permission::Full, Environment::Live).await;
        let test = server.key(organization, Permission::Full, Environment::Test).await;
        let app = server.app(&live).await;
        let site = Website::of(format!("http://{}", server.address), live, app).await;
        let sandbox = Website { key: test, ..site.clone() };
        assert_eq!(sandbox.refused(&site.purchase("order-1", "1")).await, refusal(403, "production_only"));
        site.accepted(&site.purchase("order-1", "1")).await;
        assert_eq!(sandbox.log().await, Vec::<Value>::new(), "and what is recorded is production's");
    }

    // 4. The click arClickId is verified, belongs to the same app …
    async fn the_click_is_verified_and_belongs_to_the_same_app(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let other = Website::open_at(&site.base, &site.key).await;
        let last = site.click.chars().last().unwrap();
        let forged = format!("{}{}", &site.click[..site.click.len() - 1], if last == '0' { '2' } else { '0' });
        let app = AppId::parse(site.app.rsplit('/').next().unwrap()).unwrap();
        let tokens = ClickTokens::new(&Keyring::new([7; 32]));
        let well_made = tokens.sign(app, ClickId::from_bytes([9; 16]));
        let elsewhere = ClickTokens::new(&Keyring::new([8; 32])).sign(app, tokens.verify(&site.click).unwrap().click);
        let robot = site.tap_as(&site.link, "fbclid=f2", "facebookexternalhit/1.1").await;
        let plain = AppId::to_string(&app);
        let clicks: [&str; 8] = [
            "nonsense", &forged, &well_made, &elsewhere, &robot, &other.click, &plain, &site.click[4..],
        ];
        for (number, click) in clicks.into_iter().enumerate() {
            let event = with(&site.purchase(&format!("order-{number}"), "1"), "arClickId", click);
            assert_eq!(site.refused(&event).await, refusal(422, "click_not_verified"), "{number}: {click}");
        }
        assert_eq!(site.log().await, Vec::<Value>::new());
    }

    // 4. … and originates from network_a, network_b, network_c or network_d.
    // Organic (non-click) traffic is not supported by this endpoint.
    async fn the_click_originates_from_one_of_the_four_networks(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let queries = [
            ("network_a", "fbclid=x"), ("network_b", "gclid=x"), ("network_c", "ttclid=x"), ("network_d", "oppref=x"),
        ];
        for (network, query) in queries {
            let click = site.tap(&site.link, query).await;
            site.accepted(&with(&site.purchase(network, "1"), "arClickId", click.as_str())).await;
            let credit = site.logged(network).await["attribution"].clone();
            assert_eq!((&credit["network"], &credit["clickId"]), (&json!(network), &json!(click)));
        }
        for query in ["", "utm_source=newsletter"] {
            let click = site.tap(&site.link, query).await;
            let event = with(&site.purchase("order-1", "1"), "arClickId", click);
            assert_eq!(site.refused(&event).await, refusal(422, "click_network_unsupported"), "{query}");
        }
        let own = json!({"name": "L", "type": "web_funnel", "network": "network_c", "destinationUrl": SHOP});
        let click = site.tap(&site.make_link(own).await, "").await;
        site.accepted(&with(&site.purchase("order-1", "1"), "arClickId", click)).await;
    }

    // 5. A web_funnel link exists whose destination origin matches the origin of sourceUrl.
    async fn the_origin_of_source_url_is_the_destination_origin_of_the_clicks_web_funnel_link(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        // Another link that leads there does not help: it is the click's own that counts.
        site.funnel("https://other.example.com/").await;
        for (number, url) in [
            "https://other.example.com/paid", "https://shop.example.com:8443/", "https://example.com/",
            "https://shop.example.com.evil.test/", "https://www.shop.example.com/", "https://192.0.2.1/",
        ].into_iter().enumerate() {
            let event = with(&site.purchase(&format!("order-{number}"), "1"), "sourceUrl", url);
            assert_eq!(site.refused(&event).await, refusal(422, "origin_mismatch"), "{url}");
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
            let link = site.funnel(destination).await;
            let click = site.tap(&link, "gclid=x").await;
            let event = with(&site.purchase(&format!("order-{number}"), "1"), "arClickId", click);
            site.accepted(&with(&event, "sourceUrl", source)).await;
        }
    }

    async fn the_origin_kept_on_the_click_counts_and_so_does_the_links_present_one(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let moved = json!({"destinationUrl": "https://new.example.com/"});
        site.call("PATCH", &format!("/links/{}", site.link), moved).await.expect(200);
        site.accepted(&site.purchase("order-1", "1")).await;
        let new = with(&site.purchase("order-2", "1"), "sourceUrl", "https://new.example.com/paid");
        site.accepted(&new).await;
        let neither = with(&site.purchase("order-3", "1"), "sourceUrl", "https://newer.example.com/");
        assert_eq!(site.refused(&neither).await, refusal(422, "origin_mismatch"));
        // A click that came after the move was never sent to the old place.
        let late = site.tap(&site.link, "fbclid=f2").await;
        let event = with(&site.purchase("order-4", "1"), "arClickId", late);
        assert_eq!(site.refused(&event).await, refusal(422, "origin_mismatch"));
    }

    async fn a_click_of_an_app_install_link_carries_no_website_event(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        site.call("PATCH", "", json!({"android": {"packageName": "com.example.runner"}})).await.expect(200);
        let link = site.make_link(json!({"name": "App", "fallbackUrl": SHOP, "network": "network_a"})).await;
        let phone = PERSON.replace("iPhone; CPU iPhone OS 18_6 like Mac OS X", "Linux; Android 14; Pixel 8");
        let request = server.request(reqwest::Method::GET, &format!("/c/{link}?fbclid=x")).header("user-agent", phone);
        let answer = server.send(request).await.expect(302);
        let store = answer.header("location").unwrap();
        let (_, click) = store.split_once("referrer=ar_click_id%3D").unwrap_or_else(|| panic!("{store}"));
        let event = with(&site.purchase("order-1", "1"), "arClickId", click);
        assert_eq!(site.refused(&event).await, refusal(422, "origin_mismatch"));
    }

    // Key, permission, environment, body, app, webEvents.enabled, idempotency, click, origin, parent, bound.
    async fn the_checks_come_in_their_order(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let key = async |permission, environment| server.key(organization, permission, environment).await;
        let full = key(Permission::Full, Environment::Live).await;
        let app = server.app(&full).await;
        let site = Website::of(format!("http://{}", server.address), full.clone(), app).await;
        site.accepted(&site.purchase("order-1", "10")).await;
        site.switch(false).await;
        // Everything is wrong with this one; what is repaired one by one lets the next check speak.
        let mut event = with(&site.refund("order-1", "-11", "nothing"), "arClickId", "clk_forged");
        event["sourceUrl"] = json!("https://evil.test/");
        event["revenue"] = json!("11");
        let mut caller = Website { key: "x".to_owned(), app: "/api/v1/apps/app_x".to_owned(), ..site.clone() };
        let mut seen = Vec::new();
        let mut note = async |caller: &Website, event: &Value| seen.push(caller.refused(event).await.1);
        note(&caller, &event).await;
        caller.key = key(Permission::ReadOnly, Environment::Test).await;
        note(&caller, &event).await;
        caller.key = key(Permission::Full, Environment::Test).await;
        note(&caller, &event).await;
        caller.key = full;
        note(&caller, &event).await;
        event["revenue"] = json!("-11");
        note(&caller, &event).await;
        caller.app.clone_from(&site.app);
        note(&caller, &event).await;
        site.switch(true).await;
        note(&caller, &event).await;
        event["eventId"] = json!("refund-1");
        note(&caller, &event).await;
        event["arClickId"] = json!(site.click);
        note(&caller, &event).await;
        event["sourceUrl"] = json!(SHOP);
        note(&caller, &event).await;
        event["originalTransactionId"] = json!("order-1");
        note(&caller, &event).await;
        assert_eq!(seen, [
            "invalid_api_key", "insufficient_permission", "production_only", "validation_failed", "app_not_found",
            "web_events_disabled", "event_id_conflict", "click_not_verified", "origin_mismatch",
            "original_transaction_unavailable", "refund_exceeds_payment",
        ]);
        event["revenue"] = json!("-10");
        site.accepted(&event).await;
    }
}
