//! Whose device a notification is about, also when that shows only later.

use crate::billing::{Shop, event, paid, with};
use serde_json::{Value, json};
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

const IDFA: &str = "6F9619FF-8B86-4011-B42D-00C04FC964FF";

fn purchase(id: &str, fields: Value) -> Value {
    with(paid(event("INITIAL_PURCHASE", id, 0), "t-1", 4.99), fields)
}

/// Nothing that names a device.
fn nameless(id: &str) -> Value {
    purchase(id, json!({"subscriber_attributes": null}))
}

on_both_engines! {
    async fn a_purchase_before_the_first_configure_is_credited_and_forwarded_after_it(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.connect().await;
        shop.accepted(&purchase("n-1", json!({}))).await;
        let before = shop.logged("n-1").await;
        assert_eq!((&before["deviceId"], &before["attribution"]), (&json!("phone-1"), &Value::Null));
        assert_eq!(shop.net().await[""], 4_990_000);
        shop.installed("phone-1").await;
        assert_eq!(shop.logged("n-1").await["attribution"]["network"], "network_a");
        assert_eq!(shop.deliveries().await["n-1 Purchase"], "pending");
        let net = shop.net().await;
        assert_eq!(net.get("network_a"), Some(&4_990_000), "{net:?}");
        assert_eq!(net.get(""), None, "it moved: {net:?}");
    }

    async fn a_person_who_shows_up_later_is_joined_then(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.connect().await;
        shop.installed("phone-1").await;
        shop.accepted(&nameless("n-1")).await;
        let later = with(paid(event("RENEWAL", "n-2", 1), "t-2", 4.99), json!({"subscriber_attributes": null}));
        shop.accepted(&later).await;
        assert_eq!(shop.logged("n-1").await["deviceId"], Value::Null);
        assert_eq!(shop.deliveries().await.len(), 1, "the install's");
        assert_eq!(shop.health("revenuecat").await["unmatched"], 2);
        server.clock.advance(Duration::from_hours(24));
        shop.track("identify", json!({"deviceId": "phone-1", "userId": "person-1"})).await.expect(204);
        for id in ["n-1", "n-2"] {
            let one = shop.logged(id).await;
            assert_eq!((&one["deviceId"], &one["attribution"]["network"]), (&json!("phone-1"), &json!("network_a")), "{one}");
        }
        assert_eq!(shop.deliveries().await["n-1 Purchase"], "pending");
        assert_eq!(shop.net().await.into_iter().collect::<Vec<_>>(), [("network_a".to_owned(), 9_980_000)]);
        let health = shop.health("revenuecat").await;
        assert_eq!((&health["unmatched"], &health["matched"]), (&json!(0), &json!(2)));
        assert_eq!(shop.figures().await["network_a"].paying_devices, 1);
    }

    async fn who_waits_too_long_is_not_joined_and_who_is_too_old_not_forwarded(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.connect().await;
        shop.installed("phone-1").await;
        shop.accepted(&nameless("n-1")).await;
        server.clock.advance(Duration::from_hours(8 * 24));
        shop.accepted(&with(nameless("n-2"), json!({"original_transaction_id": "sub-2", "transaction_id": "t-9", "app_user_id": "person-2", "original_app_user_id": "person-2", "aliases": []}))).await;
        shop.track("identify", json!({"deviceId": "phone-1", "userId": "person-1"})).await.expect(204);
        let joined = shop.logged("n-1").await;
        assert_eq!(joined["deviceId"], "phone-1");
        assert_eq!(joined["deliveries"][0]["reason"], "too_old");
        server.clock.advance(Duration::from_hours(31 * 24));
        shop.track("identify", json!({"deviceId": "phone-1", "userId": "person-2"})).await.expect(204);
        assert_eq!(shop.logged("n-2").await["deviceId"], Value::Null);
    }

    async fn advertising_ids_and_aliases(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        let advertised = json!({"subscriber_attributes": {"$idfa": {"value": IDFA.to_lowercase()}, "tributaryId": {"value": " "}}, "app_user_id": "nobody", "original_app_user_id": null, "aliases": []});
        shop.accepted(&purchase("n-1", advertised)).await;
        assert_eq!(shop.logged("n-1").await["deviceId"], Value::Null, "a blank name is none");
        shop.configured("phone-1", json!({"gaid": IDFA, "consent": {"tracking": "authorized"}})).await;
        assert_eq!(shop.logged("n-1").await["deviceId"], "phone-1");
        shop.configured("phone-2", json!({"userId": "alias-7"})).await;
        let by_alias = json!({"subscriber_attributes": {}, "aliases": ["x", "alias-7"], "original_transaction_id": "sub-2", "transaction_id": "t-2"});
        shop.accepted(&purchase("n-2", by_alias)).await;
        assert_eq!(shop.logged("n-2").await["deviceId"], "phone-2");
        // A year later the same subscription says nothing of who it is.
        let silent = json!({"subscriber_attributes": null, "aliases": null, "app_user_id": null, "original_app_user_id": null, "original_transaction_id": "sub-2"});
        shop.accepted(&with(paid(event("RENEWAL", "n-3", 1), "t-3", 4.99), silent)).await;
        assert_eq!(shop.logged("n-3").await["deviceId"], "phone-2");
        // A name that shows up later is stronger than a person's id, and moves the whole subscription.
        let named = with(paid(event("RENEWAL", "n-4", 2), "t-4", 4.99), json!({"original_transaction_id": "sub-2"}));
        shop.accepted(&named).await;
        for id in ["n-2", "n-3", "n-4"] {
            assert_eq!(shop.logged(id).await["deviceId"], "phone-1", "{id}");
        }
    }

    async fn a_transfer_gives_the_memory_on(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.configured("phone-1", json!({"userId": "old"})).await;
        let person = |name: &str, sub: &str| json!({"subscriber_attributes": null, "app_user_id": name, "original_app_user_id": name, "aliases": [], "original_transaction_id": sub, "transaction_id": format!("t-{sub}")});
        shop.accepted(&purchase("n-1", person("old", "sub-1"))).await;
        let moved = json!({"type": "TRANSFER", "id": "moved", "environment": "PRODUCTION", "store": "APP_STORE",
                           "event_timestamp_ms": 78_789_789_798_798_i64, "transferred_from": ["old"], "transferred_to": ["new"]});
        let later = |id: &str, sub: &str| with(with(purchase(id, person("new", sub)), json!({})), json!({"purchased_at_ms": crate::website::START + 60_000}));
        shop.accepted(&later("n-2", "sub-2")).await;
        assert_eq!(shop.logged("n-2").await["name"], "purchase", "nobody knows yet");
        shop.accepted(&moved).await;
        let transfer = shop.logged("moved").await;
        assert_eq!(transfer["name"], "transfer");
        let second = shop.logged("n-2").await;
        assert_eq!((&second["name"], &second["deviceId"]), (&json!("renewal"), &json!("phone-1")));
        shop.accepted(&later("n-3", "sub-3")).await;
        let third = shop.logged("n-3").await;
        assert_eq!((&third["name"], &third["deviceId"]), (&json!("renewal"), &json!("phone-1")));
    }
}
