//! Subscription lifecycles: notifications in order, in reverse, shuffled and repeated give the same
//! result.

use crate::billing::{Shop, event, with, with_payment};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_testkit::{Engine, TestServer, on_both_engines};

/// A trial that converts, three renewals, a failed charge, a refund and its reversal.
fn lifecycle() -> Vec<Value> {
    let trial = with(
        event("INITIAL_PURCHASE", "trial", 1),
        json!({"period_type": "TRIAL", "transaction_id": "t0"}),
    );
    let conversion = with(
        event("RENEWAL", "conversion", 2),
        json!({"is_trial_conversion": true}),
    );
    vec![
        trial,
        with_payment(conversion, "t1", 9.99),
        with_payment(event("RENEWAL", "renewal-1", 3), "t2", 9.99),
        with_payment(event("RENEWAL", "renewal-2", 4), "t3", 9.99),
        with_payment(event("RENEWAL", "renewal-3", 5), "t4", 9.99),
        event("BILLING_ISSUE", "issue", 6),
        with_payment(
            with(
                event("CANCELLATION", "refund", 7),
                json!({"cancel_reason": "CUSTOMER_SUPPORT"}),
            ),
            "t4",
            -9.99,
        ),
        with_payment(event("REFUND_REVERSED", "reversal", 8), "t4", 9.99),
    ]
}

/// Result of a lifecycle: events with their amounts, net revenue and deliveries.
#[derive(Debug, PartialEq, Eq)]
struct LifecycleResult {
    events: BTreeMap<String, (String, String)>,
    net: BTreeMap<String, i64>,
    deliveries: BTreeMap<String, String>,
}

/// Sends the notifications in this order and returns the result.
async fn replay(engine: Engine, notifications: &[Value]) -> LifecycleResult {
    let server = TestServer::start(engine).await;
    let shop = Shop::open(&server).await;
    shop.connect().await;
    shop.install("phone-1").await;
    server.clock.advance(Duration::from_mins(10));
    for one in notifications {
        shop.send_accepted(one).await;
    }
    let log = shop.log().await;
    let events = log.iter().map(|one| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let money = format!("{} {}", one["revenue"]["usd"], one["revenue"]["counted"]);
        (text(&one["eventId"]), (text(&one["name"]), money))
    });
    // The install's id depends on the device and the time, so it is left out.
    let is_notification = |(id, _): &(String, (String, String))| !id.starts_with("install");
    LifecycleResult {
        events: events
            .filter(is_notification)
            .filter(|(_, (name, _))| name != "install")
            .collect(),
        net: shop.net().await,
        deliveries: shop
            .deliveries()
            .await
            .into_iter()
            .filter(|(id, _)| !id.ends_with("Lead"))
            .collect(),
    }
}

on_both_engines! {
    async fn the_order_of_notifications_does_not_matter(engine: Engine) {
        let expected = replay(engine, &lifecycle()).await;
        let names: BTreeMap<&str, &str> = expected.events.iter().map(|(id, (name, _))| (id.as_str(), name.as_str())).collect();
        assert_eq!(names, BTreeMap::from([
            ("trial", "start_trial"), ("conversion", "subscribe"), ("renewal-1", "renewal"), ("renewal-2", "renewal"),
            ("renewal-3", "renewal"), ("issue", "billing_issue"), ("refund", "refund"), ("reversal", "refund_reversed"),
        ]));
        assert_eq!(expected.net, BTreeMap::from([("network_a".to_owned(), 4 * 9_990_000)]));
        assert_eq!(expected.deliveries, BTreeMap::from([
            ("conversion Subscribe".to_owned(), "pending".to_owned()),
            ("trial StartTrial".to_owned(), "pending".to_owned()),
        ]));
        let mut reversed = lifecycle();
        reversed.reverse();
        assert_eq!(replay(engine, &reversed).await, expected, "in reverse");
        let twice: Vec<Value> = lifecycle().into_iter().chain(lifecycle()).collect();
        let mut runner = TestRunner::deterministic();
        for _ in 0..3 {
            let shuffled = Just(twice.clone()).prop_shuffle().new_tree(&mut runner).unwrap().current();
            assert_eq!(replay(engine, &shuffled).await, expected, "{shuffled:#?}");
        }
    }

    async fn a_later_purchase_is_not_an_acquisition(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.connect().await;
        shop.install("phone-1").await;
        server.clock.advance(Duration::from_mins(10));
        // On Google Play an upgrade is a new purchase with its own transaction. It arrives first.
        let upgrade = with(
            with_payment(event("INITIAL_PURCHASE", "upgrade", 5), "u1", 49.99),
            json!({"original_transaction_id": "sub-2", "product_id": "pro.yearly"}),
        );
        shop.send_accepted(&upgrade).await;
        assert_eq!(shop.logged_event("upgrade").await["name"], "purchase");
        let pending = |delivery: &str| (delivery.to_owned(), "pending".to_owned());
        let mut deliveries = shop.deliveries().await;
        deliveries.retain(|id, _| !id.ends_with("Lead"));
        assert_eq!(deliveries, BTreeMap::from([pending("upgrade Purchase")]));
        shop.send_accepted(&with_payment(event("INITIAL_PURCHASE", "first", 1), "t1", 4.99)).await;
        let upgrade = shop.logged_event("upgrade").await;
        assert_eq!((&upgrade["name"], &upgrade["params"]["cause"]), (&json!("renewal"), &json!("product_change")));
        assert_eq!(shop.logged_event("first").await["name"], "purchase");
        let mut deliveries = shop.deliveries().await;
        deliveries.retain(|id, _| !id.ends_with("Lead"));
        assert_eq!(deliveries, BTreeMap::from([
            pending("first Purchase"), ("upgrade Purchase".to_owned(), "cancelled".to_owned()),
        ]));
        let cancelled = format!("{}/deliveries?status=cancelled", shop.app);
        let cancelled = server.get(&cancelled, &shop.key).await.expect(200).data();
        assert_eq!(cancelled[0]["reason"], "not_first_payment");
        let figures = &shop.figures().await["network_a"];
        assert_eq!((figures.purchases, figures.renewals, figures.revenue_micros), (1, 1, 54_980_000));
        // A subscriber who returns to the same product.
        let returning = with(with_payment(event("INITIAL_PURCHASE", "back", 9), "b1", 4.99), json!({"original_transaction_id": "sub-3", "product_id": "pro.yearly"}));
        shop.send_accepted(&returning).await;
        assert_eq!(shop.logged_event("back").await["params"]["cause"], "resubscribe");
        // Each one-time product is a purchase.
        let gems = with(with_payment(event("NON_RENEWING_PURCHASE", "gems", 9), "g1", 1.99), json!({"original_transaction_id": "g1"}));
        shop.send_accepted(&gems).await;
        assert_eq!(shop.logged_event("gems").await["name"], "purchase");
    }

    async fn refunds_are_capped_by_their_payment(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        server.clock.advance(Duration::from_mins(10));
        let refund = |id: &str, amount: f64| with_payment(event("CANCELLATION", id, 5), "t1", amount);
        shop.send_accepted(&refund("back", -50.0)).await;
        assert_eq!(shop.logged_event("back").await["revenue"]["reason"], "payment_not_counted");
        assert!(shop.net().await.is_empty());
        shop.send_accepted(&with_payment(event("INITIAL_PURCHASE", "paid", 1), "t1", 10.0)).await;
        let back = shop.logged_event("back").await["revenue"].clone();
        assert_eq!((&back["amount"], &back["usd"], &back["counted"]), (&json!(-50), &json!(-10), &json!(true)));
        shop.send_accepted(&refund("again", -10.0)).await;
        assert_eq!(shop.log().await.len(), 2, "a refund under two ids is recorded once");
        assert!(shop.net().await.is_empty(), "the refund nets to zero");
        let unknown = with(event("CANCELLATION", "unknown", 6), json!({"cancel_reason": "CUSTOMER_SUPPORT", "transaction_id": "t9"}));
        shop.send_accepted(&unknown).await;
        let unknown = shop.logged_event("unknown").await;
        assert_eq!((&unknown["name"], &unknown["revenue"]), (&json!("refund"), &Value::Null));
    }

    async fn a_trial_qualifies_after_its_delay(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.update_app(json!({"qualifiedTrial": {"enabled": true, "delayHours": 2}})).await;
        shop.connect().await;
        shop.install("phone-1").await;
        let for_subscription = |one: Value, sub: &str| with(one, json!({"original_transaction_id": sub, "transaction_id": sub, "app_user_id": sub, "original_app_user_id": sub, "aliases": []}));
        let trial = |id: &str, sub: &str| for_subscription(with(event("INITIAL_PURCHASE", id, 0), json!({"period_type": "TRIAL"})), sub);
        let cancel = |id: &str, sub: &str| for_subscription(with(event("CANCELLATION", id, 1), json!({"period_type": "TRIAL"})), sub);
        for sub in ["alive", "cancelled", "regretted", "paid"] {
            shop.send_accepted(&trial(&format!("trial-{sub}"), sub)).await;
        }
        shop.send_accepted(&cancel("c-before", "early")).await;
        shop.send_accepted(&trial("trial-early", "early")).await;
        shop.send_accepted(&cancel("c-1", "cancelled")).await;
        shop.send_accepted(&cancel("c-2", "regretted")).await;
        shop.send_accepted(&for_subscription(event("UNCANCELLATION", "u-2", 2), "regretted")).await;
        shop.send_accepted(&for_subscription(with_payment(with(event("RENEWAL", "conversion", 2), json!({"is_trial_conversion": true})), "p", 9.99), "paid")).await;
        let qualified = async || -> Vec<String> {
            let log = shop.log().await;
            let trials = log.iter().filter(|one| one["name"] == "qualified_trial");
            let mut ids: Vec<String> = trials.map(|one| one["eventId"].as_str().unwrap().to_owned()).collect();
            ids.sort();
            ids
        };
        assert_eq!(qualified().await, ["qualified_trial:revenuecat:paid"], "a paid conversion qualifies at once");
        let settle = async || {
            use tributary_domain::runtime::Clock as _;
            server.store.settle_trials(server.clock.now(), 100).await.unwrap()
        };
        server.clock.advance(Duration::from_mins(119));
        assert_eq!(settle().await, 0);
        server.clock.advance(Duration::from_mins(1));
        shop.send_accepted(&cancel("c-3", "alive")).await;
        assert_eq!(settle().await, 0, "the cancellation is too late; its arrival settled all due trials of the device");
        let all = ["alive", "paid", "regretted"].map(|sub| format!("qualified_trial:revenuecat:{sub}"));
        assert_eq!(qualified().await, all);
        let one = shop.logged_event(&all[0]).await;
        assert_eq!(one["revenue"]["amount"], 0);
        assert_eq!(one["attribution"]["network"], "network_a");
        let deliveries = shop.deliveries().await;
        assert_eq!(deliveries[&format!("{} StartTrial", all[0])], "pending");
        assert_eq!(shop.figures().await["network_a"].qualified_trials, 3);
    }
}
