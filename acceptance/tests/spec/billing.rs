//! Billing notifications, `POST /api/webhook/{provider}/{appId}`: authentication, responses and
//! storage. Matching to devices is in `billing_joins.rs`, subscription lifecycles in
//! `billing_lifecycle.rs`, published samples in `billing_vectors.rs`, Apple's certificates in
//! `billing_appstore.rs`.

use crate::billing::{MINUTE, SECRET, Shop, event, hex_mac, mac, with, with_payment};
use crate::website::START;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

const SIGNING_SECRET: &str = "rc_signing_secret_0123456789";
const NOW: i64 = START / 1_000;

fn purchase(id: &str) -> Value {
    with_payment(event("INITIAL_PURCHASE", id, 0), "t-1", 4.99)
}

fn body(event: &Value) -> String {
    json!({"api_version": "1.0", "event": event}).to_string()
}

on_both_engines! {
    async fn records_a_notification_once(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        let answer = shop.send(&purchase("n-1")).await.expect(200);
        assert_eq!(answer.json(), json!({"data": {"received": true, "duplicate": false}}));
        let answer = shop.send(&purchase("n-1")).await.expect(200);
        assert_eq!(answer.json(), json!({"data": {"received": true, "duplicate": true}}));
        // Different content under the same id is ignored and counted as id reuse.
        assert!(shop.send_accepted(&with(purchase("n-1"), json!({"price": 900}))).await);
        let log = shop.log().await;
        assert_eq!(log.len(), 1, "{log:#?}");
        assert_eq!(log[0]["name"], "purchase");
        assert_eq!(log[0]["source"], "billing");
        assert_eq!(log[0]["eventId"], "n-1");
        assert_eq!(log[0]["deviceId"], "phone-1");
        assert_eq!(log[0]["userId"], "person-1");
        assert_eq!(log[0]["revenue"], json!({
            "amount": 4.99, "currency": "USD", "usd": 4.99, "rateDate": null, "counted": true, "reason": null,
        }));
        assert_eq!(log[0]["params"]["provider"], "revenuecat");
        assert_eq!(log[0]["params"]["transactionId"], "t-1");
        let health = shop.health("revenuecat").await;
        assert_eq!((&health["notifications"], &health["matched"], &health["idReuse"]), (&json!(1), &json!(1), &json!(1)));
        assert_eq!(health["joinRate"], 1);
    }

    async fn concurrent_copies_are_recorded_once(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        let event = purchase("n-1");
        let (one, other, third) = tokio::join!(shop.send(&event), shop.send(&event), shop.send(&event));
        let duplicates = [one, other, third].map(|answer| answer.expect(200).data()["duplicate"].as_bool().unwrap());
        assert_eq!(duplicates.iter().filter(|is_duplicate| !**is_duplicate).count(), 1, "{duplicates:?}");
        assert_eq!(shop.log().await.len(), 1);
    }

    async fn rejects_everything_while_no_secret_is_set(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::without_billing(&server).await;
        for provider in ["revenuecat", "superwall"] {
            for headers in [&[][..], &[("authorization", "")], &[("authorization", SECRET)]] {
                let answer = shop.post(provider, headers, &body(&purchase("n-1"))).await.expect(401);
                assert_eq!(answer.code(), "webhook_unauthorized");
            }
        }
        assert_eq!(shop.log().await, Vec::<Value>::new());
        assert_eq!(shop.health("revenuecat").await["unauthorized"], 3);
        let missing = shop.post("unknown", &[], "{}").await.expect(404);
        assert_eq!(missing.code(), "not_found");
        let unknown_app = server.request(reqwest::Method::POST, "/api/webhook/revenuecat/app_x").body("{}");
        assert_eq!(server.send(unknown_app).await.expect(404).code(), "app_not_found");
    }

    async fn the_authorization_value_must_match_exactly(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        let text = body(&purchase("n-1"));
        let changed = format!("{}x", &SECRET[..SECRET.len() - 1]);
        for headers in [&[][..], &[("authorization", "")], &[("authorization", &changed)]] {
            let answer = shop.post("revenuecat", headers, &text).await.expect(401);
            assert_eq!(answer.header("www-authenticate"), None, "webhooks are not authenticated by API key");
        }
        assert_eq!(shop.log().await, Vec::<Value>::new());
        shop.post("revenuecat", &[("authorization", SECRET)], &text).await.expect(200);
    }

    async fn verifies_revenuecat_signatures(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.update_app(json!({"billing": {"revenuecat": {"secret": null, "signingSecret": SIGNING_SECRET}}})).await;
        let text = body(&purchase("n-1"));
        let header = |at: i64| format!("t={at},v1={}", hex_mac(SIGNING_SECRET, at, &text));
        let post = async |value: &str, text: &str| {
            let name = "x-revenuecat-webhook-signature";
            shop.post("revenuecat", &[(name, value)], text).await.status.as_u16()
        };
        let valid = header(NOW);
        assert_eq!(post(&header(NOW - 301), &text).await, 401, "too old");
        assert_eq!(post(&header(NOW + 302), &text).await, 401, "too far ahead");
        assert_eq!(post(&valid.replace("v1=", "v1=0"), &text).await, 401, "wrong");
        assert_eq!(post(&valid, &text.replace(':', ": ")).await, 401, "reformatted body");
        for broken in ["", "v1=abc", "t=1,v1=zz", &valid[valid.find("v1").unwrap()..], &valid[..valid.find(',').unwrap()]] {
            assert_eq!(post(broken, &text).await, 401, "{broken}");
        }
        assert_eq!(shop.log().await, Vec::<Value>::new());
        assert_eq!(post(&header(NOW - 298), &text).await, 200);
        assert_eq!(post(&valid, &text).await, 200, "a replay is a duplicate");
        let two_signatures = valid.replace("v1=", &format!("v1={},v0=00,v1=", "0".repeat(64)));
        assert_eq!(post(&two_signatures, &text).await, 200);
        let other_header = shop.post("revenuecat", &[("x-revenuecat-signature", &valid)], &text).await;
        assert_eq!(other_header.status.as_u16(), 200);
        assert_eq!(shop.log().await.len(), 1);
        // With both secrets set, both are required.
        shop.update_app(json!({"billing": {"revenuecat": {"secret": SECRET}}})).await;
        assert_eq!(post(&valid, &text).await, 401);
        let both = [("authorization", SECRET), ("x-revenuecat-webhook-signature", &valid)];
        shop.post("revenuecat", &both, &text).await.expect(200);
        shop.post("revenuecat", &both[..1], &text).await.expect(401);
    }

    async fn verifies_superwall_signatures_and_accepts_both_secrets_during_a_rotation(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::without_billing(&server).await;
        let path = format!("{}/billing/superwall/secret", shop.app);
        let stale = server.request(Method::POST, &path).bearer_auth(&shop.key).header("if-match", "\"99\"");
        assert_eq!(server.send(stale).await.expect(409).code(), "version_conflict");
        let create_secret = async || {
            let created = server.call("POST", &path, &shop.key, None).await.expect(201).data();
            created["secret"].as_str().unwrap().to_owned()
        };
        let text = json!({"object": "event", "type": "initial_purchase", "timestamp": START, "data": {
            "id": "s-1:initial_purchase", "name": "initial_purchase", "periodType": "NORMAL", "price": 9.99,
            "priceInPurchasedCurrency": 8.99, "currencyCode": "EUR", "transactionId": "t1",
            "originalTransactionId": "t1", "environment": "PRODUCTION", "purchasedAt": START, "ts": START,
            "userAttributes": {"tributaryId": "phone-1"}, "originalAppUserId": "person-1", "store": "APP_STORE",
        }}).to_string();
        let post = async |secret: &str, at: i64, text: &str| {
            let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
            let signed = STANDARD.encode(mac(&key, &format!("msg_1.{at}.{text}")));
            let (at, signed) = (at.to_string(), format!("v1,{signed}"));
            let headers = [("svix-id", "msg_1"), ("svix-timestamp", &at), ("svix-signature", &signed)];
            shop.post("superwall", &headers, text).await.status.as_u16()
        };
        let first = create_secret().await;
        assert_eq!(post(&first, NOW - 301, &text).await, 401);
        assert_eq!(post(&first, NOW, &text).await, 200);
        assert_eq!(shop.log().await[0]["revenue"]["usd"], 9.99);
        let second = create_secret().await;
        assert_ne!(first, second);
        for secret in [&first, &second] {
            assert_eq!(post(secret, NOW, &text).await, 200);
        }
        server.clock.advance(Duration::from_hours(24) + Duration::from_mins(1));
        let later = NOW + 24 * 60 * 60 + 60;
        assert_eq!(post(&first, later, &text).await, 401, "the old secret is valid for a day");
        assert_eq!(post(&second, later, &text).await, 200);
        // A secret that is set by hand replaces all earlier ones at once.
        shop.update_app(json!({"billing": {"superwall": {"secret": &first}}})).await;
        assert_eq!(post(&second, later, &text).await, 401);
        shop.update_app(json!({"billing": {"superwall": {"secret": null}}})).await;
        assert_eq!(post(&first, later, &text).await, 401);
        let shown = server.get(&shop.app, &shop.key).await.data();
        assert_eq!(shown["billing"]["superwall"]["configured"], false);
        let audit = server.get("/api/v1/audit-log", &shop.key).await.expect(200);
        assert!(audit.text.contains("billing.superwall") && !audit.text.contains("whsec_"));
        let unsupported = format!("{}/billing/appstore/secret", shop.app);
        server.call("POST", &unsupported, &shop.key, None).await.expect(404);
        let short = json!({"billing": {"revenuecat": {"secret": "fifteen chars.."}}});
        let refused = server.patch(&shop.app, &shop.key, short).await.expect(422);
        assert_eq!(refused.faults()[0].0, "billing.revenuecat.secret");
    }

    async fn events_and_exports_carry_the_original_transaction_id(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.send_accepted(&with_payment(event("INITIAL_PURCHASE", "n-1", 1), "t-1", 9.99)).await;
        let without_original = json!({"original_transaction_id": null});
        shop.send_accepted(&with(with_payment(event("NON_RENEWING_PURCHASE", "n-2", 2), "t-2", 4.99), without_original)).await;
        assert_eq!(shop.logged_event("n-1").await["originalTransactionId"], "sub-1");
        assert_eq!(shop.logged_event("n-2").await["originalTransactionId"], json!(null));
        let export = async |format: &str| {
            let path = format!("{}/export?format={format}", shop.app);
            server.get(&path, &shop.key).await.expect(200).text
        };
        let csv = export("csv").await;
        let line = |id: &str| csv.lines().find(|line| line.contains(id)).unwrap();
        // The last columns are `sourceUrl`, which billing events do not have, and `hold`.
        assert!(line("n-1").ends_with(",sub-1,,"), "{csv}");
        assert!(line("n-2").ends_with(",,,"), "{csv}");
        let ndjson = export("ndjson").await;
        let exported: Vec<Value> = ndjson.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(exported[0]["originalTransactionId"], "sub-1", "{ndjson}");
        assert_eq!(exported[1]["originalTransactionId"], json!(null), "{ndjson}");
    }

    async fn malformed_notifications_are_400(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        for (text, code) in [
            ("", "malformed_json"),
            ("{", "malformed_json"),
            ("[]", "malformed_notification"),
            ("{}", "malformed_notification"),
            (r#"{"event": {"type": "TEST"}}"#, "malformed_notification"),
            (r#"{"event": {"id": 5, "type": "TEST"}}"#, "malformed_notification"),
            (r#"{"event": {"id": "", "type": "TEST"}}"#, "malformed_notification"),
            (r#"{"event": {"id": "x"}}"#, "malformed_notification"),
        ] {
            let answer = shop.post("revenuecat", &[("authorization", SECRET)], text).await.expect(400);
            assert_eq!(answer.code(), code, "{text}");
        }
        let huge = format!("{{\"event\": \"{}\"}}", "x".repeat(tributary_api::BODY_BYTES_MAX));
        shop.post("revenuecat", &[("authorization", SECRET)], &huge).await.expect(413);
    }

    async fn keeps_notifications_of_unknown_types(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        for (number, kind) in ["TEST", "PAYWALL_IMPRESSION", "INVOICE_ISSUANCE", "FUTURE_TYPE"].iter().enumerate() {
            assert!(!shop.send_accepted(&event(kind, &format!("n-{number}"), 0)).await);
        }
        let unparsable = json!({"id": "n-9", "type": "INITIAL_PURCHASE", "price": "free", "aliases": 5, "unknown": {"a": [1]},
                             "environment": "PRODUCTION", "subscriber_attributes": [], "purchased_at_ms": "yesterday"});
        assert!(!shop.send_accepted(&unparsable).await);
        let log = shop.log().await;
        assert_eq!(log.len(), 1, "only known types become events: {log:#?}");
        assert_eq!((&log[0]["name"], &log[0]["revenue"]), (&json!("purchase"), &Value::Null));
        let health = shop.health("revenuecat").await;
        assert_eq!((&health["notifications"], &health["events"], &health["unmatched"]), (&json!(5), &json!(1), &json!(1)));
    }

    async fn an_unavailable_database_is_503(engine: Engine) {
        let mut server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.send_accepted(&purchase("n-1")).await;
        server.store.close().await;
        let answer = shop.send(&purchase("n-2")).await.expect(503);
        assert_eq!(answer.code(), "unavailable");
        assert!(answer.header("retry-after").is_some());
        server.stop().await;
    }

    async fn sandbox_purchases_stay_out_of_live_data(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.connect().await;
        shop.install("phone-1").await;
        for (id, fields) in [
            ("n-1", json!({"environment": "SANDBOX"})),
            ("n-2", json!({"store": "TEST_STORE"})),
            ("n-3", json!({"environment": null})),
        ] {
            let one = with_payment(event("NON_RENEWING_PURCHASE", id, 0), &format!("t-{id}"), 4.99);
            shop.send_accepted(&with(one, fields)).await;
        }
        assert_eq!(shop.log().await.len(), 1, "only the install");
        assert!(shop.net().await.is_empty());
        let sandbox = shop.log_with_key(&shop.test_key).await;
        assert_eq!(sandbox.len(), 3);
        for one in &sandbox {
            assert_eq!((&one["name"], &one["environment"]), (&json!("purchase"), &json!("test")));
            for delivery in one["deliveries"].as_array().unwrap() {
                assert_eq!((&delivery["status"], &delivery["reason"]), (&json!("skipped"), &json!("sandbox")));
            }
        }
    }

    async fn amounts_are_exact_and_capped(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        for (id, fields, usd, counted) in [
            ("n-1", json!({"price": 4.021, "price_in_purchased_currency": 1.234, "currency": "KWD"}), json!(4.021), true),
            ("n-2", json!({"price": 2000.00}), json!(2000), true),
            ("n-3", json!({"price": 2000.01}), json!(2000.01), false),
            ("n-4", json!({"price": null, "price_in_purchased_currency": 10, "currency": "ZZZ"}), Value::Null, false),
            ("n-5", json!({"price": 0}), json!(0), false),
        ] {
            let one = with(event("NON_RENEWING_PURCHASE", id, 0), json!({"transaction_id": id, "original_transaction_id": id}));
            shop.send_accepted(&with(one, fields)).await;
            let revenue = shop.logged_event(id).await["revenue"].clone();
            assert_eq!((&revenue["usd"], &revenue["counted"]), (&usd, &json!(counted)), "{id}: {revenue}");
        }
        let unknown = with(event("NON_RENEWING_PURCHASE", "n-6", 0), json!({"price": null, "price_in_purchased_currency": null}));
        shop.send_accepted(&unknown).await;
        assert_eq!(shop.logged_event("n-6").await["revenue"], Value::Null);
        assert_eq!(shop.net().await.values().sum::<i64>(), 2_004_021_000);
    }

    async fn sdk_revenue_does_not_count_once_a_provider_is_configured(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.install("phone-1").await;
        let batch = json!({"deviceId": "phone-1", "events": [
            {"eventId": "e-1", "name": "purchase", "revenue": "9.99", "currency": "USD", "timestampMs": START + MINUTE}]});
        shop.track("events", batch).await.expect(202);
        assert_eq!(shop.logged_event("e-1").await["revenue"]["reason"], "billing_source");
    }
}
