//! Adapty and Qonversion, which authenticate with a value in `Authorization`.

use crate::billing::{SECRET, Shop, with};
use crate::website::START;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tributary_testkit::{Engine, TestServer, on_both_engines};

const PROVIDERS: [&str; 2] = ["adapty", "qonversion"];

fn adapty(kind: &str, id: &str, transaction: &str) -> Value {
    json!({
        "event_type": kind, "event_datetime": "2026-01-01T00:00:00.000000+0000",
        "profile_id": "profile-1", "customer_user_id": "person-1", "email": "joe@example.com",
        "user_attributes": {"tributaryId": "phone-1"},
        "event_properties": {
            "profile_event_id": id, "environment": "Production", "store": "app_store",
            "vendor_product_id": "weekly", "transaction_id": transaction,
            "original_transaction_id": "t-0", "price_local": 8.99, "price_usd": 9.99,
            "currency": "EUR", "purchase_date": "2026-01-01T00:00:00.000000+0000",
        },
    })
}

fn qonversion(kind: &str, seconds: i64, transaction: i64) -> Value {
    json!({
        "event_name": kind, "user_id": "q-1", "identity_id": "person-1",
        "time": START / 1_000 + seconds, "product_id": "weekly", "platform": "iOS",
        "price": {"value": 8.99, "value_usd": 9.99, "currency": "EUR"},
        "transaction": {"transaction_id": transaction, "original_transaction_id": 70},
        "properties": {"tributaryId": "phone-1"}, "environment": "production",
    })
}

/// Returns a purchase, its refund, and a test purchase of a provider.
fn story(provider: &str) -> [Value; 3] {
    if provider == "adapty" {
        let mut test = adapty("subscription_started", "n-3", "t-3");
        test["event_properties"]["environment"] = json!("Sandbox");
        [
            adapty("subscription_started", "n-1", "t-1"),
            adapty("subscription_refunded", "n-2", "t-1"),
            test,
        ]
    } else {
        let test = qonversion("subscription_started", 3, 73);
        [
            qonversion("subscription_started", 0, 71),
            qonversion("subscription_refunded", 1, 71),
            with(test, json!({"environment": "sandbox"})),
        ]
    }
}

/// Returns a subscription from its trial to its end, one notification per minute.
fn lifecycle(provider: &str) -> Vec<Value> {
    let steps = [
        ("trial_started", 0),
        ("trial_converted", 1),
        ("subscription_renewed", 2),
        ("subscription_refunded", 2),
        ("subscription_renewed", 3),
    ];
    let (cancelled, expired) = if provider == "adapty" {
        ("subscription_renewal_cancelled", "subscription_expired")
    } else {
        ("subscription_canceled", "subscription_expired")
    };
    let steps = steps.into_iter().chain([(cancelled, 3), (expired, 3)]);
    let one = |(minute, (kind, transaction)): (i64, (&str, i64))| {
        if provider == "adapty" {
            let at = format!("2026-01-01T00:0{minute}:00.000000+0000");
            let mut one = adapty(kind, &format!("n-{minute}"), &format!("t-{transaction}"));
            one["event_datetime"] = json!(at);
            one["event_properties"]["purchase_date"] = json!(at);
            one
        } else {
            qonversion(kind, minute * 60, 70 + transaction)
        }
    };
    (0..).zip(steps).map(one).collect()
}

/// Sends notifications to a new server. Returns its billing events, and the revenue by network.
async fn replay(
    engine: Engine,
    provider: &str,
    all: &[Value],
) -> (Vec<String>, BTreeMap<String, i64>) {
    let server = TestServer::start(engine).await;
    let shop = Shop::without_billing(&server).await;
    shop.update_app(json!({"billing": {provider: {"secret": SECRET}}}))
        .await;
    let authorization = header(provider, SECRET);
    for one in all {
        let headers = [("authorization", authorization.as_str())];
        shop.post(provider, &headers, &one.to_string())
            .await
            .expect(200);
    }
    let text = |one: &Value| {
        let (revenue, at) = (&one["revenue"], &one["timestampMs"]);
        let counted = (&revenue["amount"], &revenue["counted"]);
        format!("{at} {} {counted:?} {}", one["name"], one["deviceId"])
    };
    let mut log: Vec<String> = shop.log().await.iter().map(text).collect();
    log.sort();
    (log, shop.net().await)
}

/// Returns the value of the header for a secret.
fn header(provider: &str, secret: &str) -> String {
    if provider == "adapty" {
        secret.to_owned()
    } else {
        format!("Basic {secret}")
    }
}

on_both_engines! {
    async fn only_the_right_value_is_accepted(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::without_billing(&server).await;
        for provider in PROVIDERS {
            let text = story(provider)[0].to_string();
            let post = async |value: &str| {
                shop.post(provider, &[("authorization", value)], &text).await.status.as_u16()
            };
            assert_eq!(post(SECRET).await, 401, "no secret is set");
            let path = format!("{}/billing/{provider}/secret", shop.app);
            let create = async || {
                let created = server.call("POST", &path, &shop.key, None).await.expect(201).data();
                header(provider, created["secret"].as_str().unwrap())
            };
            let first = create().await;
            for wrong in ["", "Basic ", &format!("{first}x"), &first[..first.len() - 1]] {
                assert_eq!(post(wrong).await, 401, "{provider} {wrong}");
            }
            assert_eq!(post(&first).await, 200);
            let second = create().await;
            assert_eq!((post(&first).await, post(&second).await), (200, 200), "both are valid for a day");
            assert_eq!(shop.health(provider).await["notifications"], 1, "a repeat is a duplicate");
        }
    }

    async fn purchases_refunds_and_tests_are_recorded(engine: Engine) {
        for provider in PROVIDERS {
            let server = TestServer::start(engine).await;
            let shop = Shop::without_billing(&server).await;
            shop.update_app(json!({"billing": {provider: {"secret": SECRET}}})).await;
            let authorization = header(provider, SECRET);
            let post = async |body: &str| {
                shop.post(provider, &[("authorization", &authorization)], body).await
            };
            // The provider tests the URL when the operator saves it.
            let answer = post("{}").await.expect(200).json();
            assert_eq!(answer["data"]["duplicate"], false);
            assert_eq!(shop.health(provider).await["notifications"], 0);
            // The refund arrives before its payment.
            let [purchase, refund, test] = story(provider);
            for one in [&refund, &purchase, &test, &purchase] {
                post(&one.to_string()).await.expect(200);
            }
            let log = shop.log().await;
            let mut names: Vec<&str> = log.iter().map(|one| one["name"].as_str().unwrap()).collect();
            names.sort_unstable();
            assert_eq!(names, ["purchase", "refund"], "{provider}");
            for one in &log {
                assert_eq!(one["revenue"]["counted"], true, "{provider}: {one}");
                assert_eq!(one["revenue"]["currency"], "EUR");
                assert_eq!((&one["deviceId"], &one["userId"]), (&json!("phone-1"), &json!("person-1")));
            }
            assert!(shop.net().await.is_empty(), "the refund nets to zero");
            assert_eq!(shop.log_with_key(&shop.test_key).await.len(), 1);
            for (text, code) in [("{", "malformed_json"), ("[]", "malformed_notification"), (r#"{"event_type": 5, "event_name": 5}"#, "malformed_notification")] {
                assert_eq!(post(text).await.expect(400).code(), code, "{provider} {text}");
            }
        }
    }
    async fn the_order_of_notifications_does_not_matter(engine: Engine) {
        for provider in PROVIDERS {
            let lifecycle = lifecycle(provider);
            let expected = replay(engine, provider, &lifecycle).await;
            let names: Vec<&str> = expected.0.iter().filter_map(|one| one.split('"').nth(1)).collect();
            let in_order = ["start_trial", "subscribe", "renewal", "refund", "renewal", "cancellation", "expiration"];
            assert_eq!(names, in_order, "{provider}");
            assert_eq!(expected.1.values().sum::<i64>(), 2 * 9_990_000, "{provider}");
            let mut reversed = lifecycle.clone();
            reversed.reverse();
            assert_eq!(replay(engine, provider, &reversed).await, expected, "{provider} in reverse");
            let twice: Vec<Value> = lifecycle.iter().chain(&lifecycle).cloned().collect();
            let mut runner = TestRunner::deterministic();
            for _ in 0..2 {
                let shuffled = Just(twice.clone()).prop_shuffle().new_tree(&mut runner).unwrap().current();
                assert_eq!(replay(engine, provider, &shuffled).await, expected, "{provider}: {shuffled:#?}");
            }
        }
    }
}
