//! Matching of billing notifications to devices, including matches that are possible only later.

use crate::billing::{Shop, event, with, with_payment};
use serde_json::{Value, json};
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

const IDFA: &str = "6F9619FF-8B86-4011-B42D-00C04FC964FF";

fn purchase(id: &str, fields: Value) -> Value {
    with(
        with_payment(event("INITIAL_PURCHASE", id, 0), "t-1", 4.99),
        fields,
    )
}

/// Builds a purchase without a device id.
fn without_device_id(id: &str) -> Value {
    purchase(id, json!({"subscriber_attributes": null}))
}

on_both_engines! {
    async fn a_purchase_before_the_first_configure_is_credited_and_forwarded_after_it(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.connect().await;
        shop.send_accepted(&purchase("n-1", json!({}))).await;
        let before = shop.logged_event("n-1").await;
        assert_eq!((&before["deviceId"], &before["attribution"]), (&json!("phone-1"), &Value::Null));
        assert_eq!(shop.net().await[""], 4_990_000);
        shop.install("phone-1").await;
        assert_eq!(shop.logged_event("n-1").await["attribution"]["network"], "network_a");
        assert_eq!(shop.deliveries().await["n-1 Purchase"], "pending");
        let net = shop.net().await;
        assert_eq!(net.get("network_a"), Some(&4_990_000), "{net:?}");
        assert_eq!(net.get(""), None, "the revenue moved to the network: {net:?}");
    }

    async fn matches_earlier_purchases_once_the_user_is_identified(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.connect().await;
        shop.install("phone-1").await;
        shop.send_accepted(&without_device_id("n-1")).await;
        let renewal = with(with_payment(event("RENEWAL", "n-2", 1), "t-2", 4.99), json!({"subscriber_attributes": null}));
        shop.send_accepted(&renewal).await;
        assert_eq!(shop.logged_event("n-1").await["deviceId"], Value::Null);
        assert_eq!(shop.deliveries().await.len(), 1, "only the install's delivery");
        assert_eq!(shop.health("revenuecat").await["unmatched"], 2);
        server.clock.advance(Duration::from_hours(24));
        shop.track("identify", json!({"deviceId": "phone-1", "userId": "person-1"})).await.expect(204);
        for id in ["n-1", "n-2"] {
            let one = shop.logged_event(id).await;
            assert_eq!((&one["deviceId"], &one["attribution"]["network"]), (&json!("phone-1"), &json!("network_a")), "{one}");
        }
        assert_eq!(shop.deliveries().await["n-1 Purchase"], "pending");
        assert_eq!(shop.net().await.into_iter().collect::<Vec<_>>(), [("network_a".to_owned(), 9_980_000)]);
        let health = shop.health("revenuecat").await;
        assert_eq!((&health["unmatched"], &health["matched"]), (&json!(0), &json!(2)));
        assert_eq!(shop.figures().await["network_a"].paying_devices, 1);
    }

    async fn a_late_match_is_not_forwarded_and_a_very_late_one_is_not_made(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.connect().await;
        shop.install("phone-1").await;
        shop.send_accepted(&without_device_id("n-1")).await;
        server.clock.advance(Duration::from_hours(8 * 24));
        shop.send_accepted(&with(without_device_id("n-2"), json!({"original_transaction_id": "sub-2", "transaction_id": "t-9", "app_user_id": "person-2", "original_app_user_id": "person-2", "aliases": []}))).await;
        shop.track("identify", json!({"deviceId": "phone-1", "userId": "person-1"})).await.expect(204);
        let joined = shop.logged_event("n-1").await;
        assert_eq!(joined["deviceId"], "phone-1");
        assert_eq!(joined["deliveries"][0]["reason"], "too_old");
        server.clock.advance(Duration::from_hours(31 * 24));
        shop.track("identify", json!({"deviceId": "phone-1", "userId": "person-2"})).await.expect(204);
        assert_eq!(shop.logged_event("n-2").await["deviceId"], Value::Null);
    }

    async fn matches_by_advertising_id_and_alias(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        let by_advertising_id = json!({"subscriber_attributes": {"$idfa": {"value": IDFA.to_lowercase()}, "tributaryId": {"value": " "}}, "app_user_id": "unknown", "original_app_user_id": null, "aliases": []});
        shop.send_accepted(&purchase("n-1", by_advertising_id)).await;
        assert_eq!(shop.logged_event("n-1").await["deviceId"], Value::Null, "a blank id is ignored");
        shop.install_with("phone-1", json!({"gaid": IDFA, "consent": {"tracking": "authorized"}})).await;
        assert_eq!(shop.logged_event("n-1").await["deviceId"], "phone-1");
        shop.install_with("phone-2", json!({"userId": "alias-7"})).await;
        let by_alias = json!({"subscriber_attributes": {}, "aliases": ["x", "alias-7"], "original_transaction_id": "sub-2", "transaction_id": "t-2"});
        shop.send_accepted(&purchase("n-2", by_alias)).await;
        assert_eq!(shop.logged_event("n-2").await["deviceId"], "phone-2");
        // A later renewal of the same subscription carries no ids.
        let without_ids = json!({"subscriber_attributes": null, "aliases": null, "app_user_id": null, "original_app_user_id": null, "original_transaction_id": "sub-2"});
        shop.send_accepted(&with(with_payment(event("RENEWAL", "n-3", 1), "t-3", 4.99), without_ids)).await;
        assert_eq!(shop.logged_event("n-3").await["deviceId"], "phone-2");
        // A device id that arrives later outranks the user id and moves the whole subscription.
        let with_device_id = with(with_payment(event("RENEWAL", "n-4", 2), "t-4", 4.99), json!({"original_transaction_id": "sub-2"}));
        shop.send_accepted(&with_device_id).await;
        for id in ["n-2", "n-3", "n-4"] {
            assert_eq!(shop.logged_event(id).await["deviceId"], "phone-1", "{id}");
        }
    }

    async fn a_transfer_passes_the_purchase_history_on(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.install_with("phone-1", json!({"userId": "old"})).await;
        let person = |name: &str, sub: &str| json!({"subscriber_attributes": null, "app_user_id": name, "original_app_user_id": name, "aliases": [], "original_transaction_id": sub, "transaction_id": format!("t-{sub}")});
        shop.send_accepted(&purchase("n-1", person("old", "sub-1"))).await;
        let moved = json!({"type": "TRANSFER", "id": "moved", "environment": "PRODUCTION", "store": "APP_STORE",
                           "event_timestamp_ms": 78_789_789_798_798_i64, "transferred_from": ["old"], "transferred_to": ["new"]});
        let later = |id: &str, sub: &str| with(with(purchase(id, person("new", sub)), json!({})), json!({"purchased_at_ms": crate::website::START + 60_000}));
        shop.send_accepted(&later("n-2", "sub-2")).await;
        assert_eq!(shop.logged_event("n-2").await["name"], "purchase", "the transfer has not arrived yet");
        shop.send_accepted(&moved).await;
        let transfer = shop.logged_event("moved").await;
        assert_eq!(transfer["name"], "transfer");
        let second = shop.logged_event("n-2").await;
        assert_eq!((&second["name"], &second["deviceId"]), (&json!("renewal"), &json!("phone-1")));
        shop.send_accepted(&later("n-3", "sub-3")).await;
        let third = shop.logged_event("n-3").await;
        assert_eq!((&third["name"], &third["deviceId"]), (&json!("renewal"), &json!("phone-1")));
    }
}
