//! Billing secrets that a person enters: with `keepPrevious`, the replaced one stays valid for a day.

use crate::billing::{Shop, event, hex_mac, mac, with_payment};
use crate::website::START;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

/// Fields of all providers that take secrets.
const FIELDS: [(&str, &str); 9] = [
    ("revenuecat", "secret"),
    ("revenuecat", "signingSecret"),
    ("superwall", "secret"),
    ("stripe", "secret"),
    ("stripe", "testSecret"),
    ("adapty", "secret"),
    ("adapty", "testSecret"),
    ("qonversion", "secret"),
    ("qonversion", "testSecret"),
];
const DAY: Duration = Duration::from_hours(24);

/// Returns a secret in the form of Standard Webhooks, which all fields accept.
fn secret(number: u8) -> String {
    format!("whsec_{}", STANDARD.encode([number; 32]))
}

fn body(provider: &str, seconds: i64) -> String {
    match provider {
        "revenuecat" => {
            let purchase = with_payment(event("INITIAL_PURCHASE", "n-1", 0), "t-1", 4.99);
            json!({"api_version": "1.0", "event": purchase}).to_string()
        }
        "superwall" => json!({
            "object": "event", "type": "renewal", "timestamp": START, "data": {
                "id": "s-1", "name": "renewal", "environment": "PRODUCTION", "ts": START,
            },
        })
        .to_string(),
        "stripe" => json!({
            "id": "evt_1", "object": "event", "type": "customer.created", "created": seconds,
            "livemode": true, "data": {"object": {"id": "cus_1", "object": "customer"}},
        })
        .to_string(),
        // The request that the provider sends when the URL is saved.
        _ => "{}".to_owned(),
    }
}

/// Sends a notification that is authenticated with a secret. Returns the status.
async fn send(shop: &Shop<'_>, (provider, field): (&str, &str), secret: &str, seconds: i64) -> u16 {
    let body = body(provider, seconds);
    let signed = format!("t={seconds},v1={}", hex_mac(secret, seconds, &body));
    let (at, basic) = (seconds.to_string(), format!("Basic {secret}"));
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let standard = STANDARD.encode(mac(&key, &format!("msg_1.{at}.{body}")));
    let standard = format!("v1,{standard}");
    let headers: &[(&str, &str)] = match (provider, field) {
        ("revenuecat", "signingSecret") => &[("x-revenuecat-webhook-signature", &signed)],
        ("stripe", _) => &[("stripe-signature", &signed)],
        ("superwall", _) => &[
            ("svix-id", "msg_1"),
            ("svix-timestamp", &at),
            ("svix-signature", &standard),
        ],
        ("qonversion", _) => &[("authorization", &basic)],
        _ => &[("authorization", secret)],
    };
    shop.post(provider, headers, &body).await.status.as_u16()
}

async fn set(shop: &Shop<'_>, (provider, field): (&str, &str), secret: Value, keep: bool) {
    let mut change = json!({field: secret});
    if keep {
        change["keepPrevious"] = json!(true);
    }
    shop.update_app(json!({"billing": {provider: change}}))
        .await;
}

on_both_engines! {
    async fn a_replaced_secret_stays_valid_for_a_day(engine: Engine) {
        let server = TestServer::start(engine).await;
        let mut now = START / 1_000;
        for of in FIELDS {
            let shop = Shop::without_billing(&server).await;
            let [first, second, third] = [1, 2, 3].map(secret);
            set(&shop, of, json!(first), true).await;
            assert_eq!(send(&shop, of, &first, now).await, 200, "{of:?}");
            set(&shop, of, json!(second), true).await;
            for valid in [&first, &second] {
                assert_eq!(send(&shop, of, valid, now).await, 200, "{of:?}");
            }
            assert_eq!(send(&shop, of, &third, now).await, 401, "{of:?}");
            // A change of something else keeps both.
            shop.update_app(json!({"name": "Renamed"})).await;
            assert_eq!(send(&shop, of, &first, now).await, 200, "{of:?}");
            server.clock.advance(DAY);
            now += 24 * 60 * 60;
            assert_eq!(send(&shop, of, &first, now).await, 401, "{of:?}: it has ended");
            assert_eq!(send(&shop, of, &second, now).await, 200, "{of:?}");
            set(&shop, of, json!(third), false).await;
            assert_eq!(send(&shop, of, &second, now).await, 401, "{of:?}: replaced at once");
            set(&shop, of, json!(first), true).await;
            set(&shop, of, Value::Null, true).await;
            for removed in [&first, &third] {
                assert_eq!(send(&shop, of, removed, now).await, 401, "{of:?}: removed");
            }
            let audit = server.get("/api/v1/audit-log", &shop.key).await.expect(200);
            assert!(audit.text.contains("the replaced one stays valid"), "{of:?}");
            assert!(!audit.text.contains("whsec_"), "{of:?}");
        }
    }
}
