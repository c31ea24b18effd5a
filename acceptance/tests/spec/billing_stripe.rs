//! Stripe: signatures, the several ids of a payment, partial refunds and disputes in any order, and
//! payments that another provider reports too. `scripts/stripe_oracle.py` signs with Stripe's own
//! client.

use crate::billing::{MINUTE, SECRET, Shop, event, hex_mac, with, with_payment};
use crate::website::START;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_testkit::{Engine, TestServer, on_both_engines};

pub(super) const STRIPE_SECRET: &str = "whsec_0123456789abcdef";
const NEW_SECRET: &str = "whsec_fedcba9876543210";
const TEST_SECRET: &str = "whsec_test_0123456789";
/// How far the clock is ahead of the test's start when the events are sent.
const AHEAD: Duration = Duration::from_mins(10);

/// Builds an event of Stripe at this minute of the test clock.
fn change(id: &str, kind: &str, minute: i64, object: Value) -> Value {
    json!({
        "id": id, "object": "event", "type": kind, "livemode": true,
        "created": (START + minute * MINUTE) / 1_000, "data": {"object": object},
    })
}

pub(super) fn invoice(id: &str, minute: i64, reason: &str, cents: i64) -> Value {
    let object = json!({
        "id": id, "object": "invoice", "amount_paid": cents, "currency": "usd", "customer": "cus_1",
        "billing_reason": reason, "customer_email": "joe@example.com",
        "parent": {"subscription_details": {"subscription": "sub_1", "metadata": {}}},
        "status_transitions": {"paid_at": (START + minute * MINUTE) / 1_000},
    });
    change(&format!("evt_{id}"), "invoice.paid", minute, object)
}

/// Builds the event that links an invoice to its payment intent.
fn link(invoice: &str, payment: &str, minute: i64) -> Value {
    let object = json!({
        "id": format!("inpay_{invoice}"), "object": "invoice_payment", "invoice": invoice,
        "payment": {"type": "payment_intent", "payment_intent": payment},
    });
    change(
        &format!("evt_link_{invoice}"),
        "invoice_payment.paid",
        minute,
        object,
    )
}

fn refunded(id: &str, payment: &str, minute: i64, (before, now): (i64, i64)) -> Value {
    let object = json!({
        "id": format!("ch_{payment}"), "object": "charge", "payment_intent": payment,
        "currency": "usd", "amount_refunded": now, "customer": "cus_1",
    });
    let mut event = change(id, "charge.refunded", minute, object);
    event["data"]["previous_attributes"] = json!({"amount_refunded": before});
    event
}

fn dispute(id: &str, kind: &str, payment: &str, minute: i64, status: &str) -> Value {
    let object = json!({
        "id": "du_1", "object": "dispute", "charge": format!("ch_{payment}"), "currency": "usd",
        "payment_intent": payment, "amount": 999, "status": status,
    });
    change(id, &format!("charge.dispute.{kind}"), minute, object)
}

/// A subscription bought at a website, as Stripe reports it: the device is known only from the
/// checkout. The first payment is refunded in two parts, the second one is disputed and the dispute
/// is won, the third one is refunded in full and the refund fails.
fn lifecycle() -> Vec<Value> {
    let checkout = json!({
        "id": "cs_1", "object": "checkout.session", "mode": "subscription", "customer": "cus_1",
        "payment_status": "paid", "subscription": "sub_1", "client_reference_id": "person-1",
        "metadata": {"tributary_device_id": "phone-1"},
    });
    let failed = json!({
        "id": "re_3", "object": "refund", "status": "failed", "payment_intent": "pi_3",
        "amount": 999, "currency": "usd", "charge": "ch_pi_3",
    });
    let cancelled = json!({
        "id": "sub_1", "object": "subscription", "status": "active", "customer": "cus_1",
        "cancel_at_period_end": true,
    });
    let mut cancelled = change(
        "evt_cancelled",
        "customer.subscription.updated",
        8,
        cancelled,
    );
    cancelled["data"]["previous_attributes"] = json!({"cancel_at_period_end": false});
    vec![
        change("evt_checkout", "checkout.session.completed", 1, checkout),
        invoice("in_1", 1, "subscription_create", 999),
        link("in_1", "pi_1", 1),
        invoice("in_2", 3, "subscription_cycle", 999),
        link("in_2", "pi_2", 3),
        invoice("in_3", 5, "subscription_cycle", 999),
        link("in_3", "pi_3", 5),
        refunded("evt_part_1", "pi_1", 6, (0, 300)),
        refunded("evt_part_2", "pi_1", 7, (300, 500)),
        dispute("evt_disputed", "created", "pi_2", 6, "needs_response"),
        dispute(
            "evt_withdrawn",
            "funds_withdrawn",
            "pi_2",
            6,
            "needs_response",
        ),
        dispute("evt_won", "closed", "pi_2", 7, "won"),
        refunded("evt_full", "pi_3", 6, (0, 999)),
        change("evt_refund_failed", "refund.failed", 7, failed),
        cancelled,
    ]
}

async fn open(server: &TestServer) -> Shop<'_> {
    let shop = Shop::without_billing(server).await;
    shop.update_app(json!({"billing": {"stripe": {"secret": STRIPE_SECRET}}}))
        .await;
    shop
}

/// Posts an event, signed at the current time of the server.
async fn send(shop: &Shop<'_>, event: &Value) -> bool {
    let body = event.to_string();
    let header = signature(shop.server, &body);
    let answer = shop
        .post("stripe", &[("stripe-signature", &header)], &body)
        .await;
    answer.expect(200).data()["duplicate"].as_bool().unwrap()
}

/// Signs a body at the current time of the server.
pub(super) fn signature(server: &TestServer, body: &str) -> String {
    let at = seconds(server);
    format!("t={at},v1={}", hex_mac(STRIPE_SECRET, at, body))
}

fn now(shop: &Shop<'_>) -> i64 {
    seconds(shop.server)
}

fn seconds(server: &TestServer) -> i64 {
    use tributary_domain::runtime::Clock as _;
    server.clock.now().as_millis() / 1_000
}

type StripeResult = (
    BTreeMap<String, String>,
    BTreeMap<String, i64>,
    BTreeMap<String, String>,
);

/// Sends the events in this order. Returns the log, the net revenue and the deliveries.
async fn replay(engine: Engine, events: &[Value]) -> StripeResult {
    let server = TestServer::start(engine).await;
    let shop = open(&server).await;
    shop.update_app(json!({"billing": {"revenuecat": {"secret": SECRET}}}))
        .await;
    shop.connect().await;
    shop.install("phone-1").await;
    server.clock.advance(AHEAD);
    for one in events {
        if one["object"] == "event" {
            send(&shop, one).await;
        } else {
            shop.send_accepted(one).await;
        }
    }
    let mut log = shop.log().await;
    log.retain(|one| one["name"] != "install");
    let text = |one: &Value| {
        let revenue = &one["revenue"];
        let device = one["deviceId"].as_str().unwrap_or("nobody");
        format!(
            "{} {} {} {device}",
            one["name"].as_str().unwrap(),
            revenue["usd"],
            revenue["counted"]
        )
    };
    let id = |one: &Value| one["eventId"].as_str().unwrap().to_owned();
    let mut deliveries = shop.deliveries().await;
    deliveries.retain(|id, _| !id.ends_with("Lead"));
    (
        log.iter().map(|one| (id(one), text(one))).collect(),
        shop.net().await,
        deliveries,
    )
}

fn texts(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    let all = all.iter();
    all.map(|(id, text)| ((*id).to_owned(), (*text).to_owned()))
        .collect()
}

on_both_engines! {
    async fn verifies_stripes_signatures(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = open(&server).await;
        let text = invoice("in_1", 0, "subscription_create", 999).to_string();
        let at = now(&shop);
        let sign = |secret: &str, at: i64| hex_mac(secret, at, &text);
        let header = |secret: &str, at: i64| format!("t={at},v1={}", sign(secret, at));
        let post = async |value: &str, text: &str| {
            shop.post("stripe", &[("stripe-signature", value)], text).await.status.as_u16()
        };
        shop.post("stripe", &[], &text).await.expect(401);
        let valid = header(STRIPE_SECRET, at);
        for refused in ["", "t=1", &valid.replace("v1=", "v0="), &header(NEW_SECRET, at), &header(STRIPE_SECRET, at - 302), &header(STRIPE_SECRET, at + 302)] {
            assert_eq!(post(refused, &text).await, 401, "{refused}");
        }
        assert_eq!(post(&valid, &text.replace(':', ": ")).await, 401, "reformatted body");
        assert_eq!(post(&header(STRIPE_SECRET, at - 298), &text).await, 200);
        assert_eq!(shop.log().await.len(), 1);
        // While Stripe rolls the secret, it signs with both.
        let both = format!("{},v1={}", header(NEW_SECRET, at), sign(STRIPE_SECRET, at));
        assert_eq!(post(&both, &text).await, 200);
        shop.update_app(json!({"billing": {"stripe": {"secret": NEW_SECRET}}})).await;
        assert_eq!(post(&both, &text).await, 200);
        assert_eq!(post(&valid, &text).await, 401, "the old secret alone");
        let created = format!("{}/billing/stripe/secret", shop.app);
        server.call("POST", &created, &shop.key, None).await.expect(404);
        assert_eq!(shop.log().await.len(), 1, "the same event is recorded once");
        assert_eq!(shop.health("stripe").await["unauthorized"], 9);
    }

    async fn events_of_stripes_test_environment_are_test_data(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = open(&server).await;
        shop.update_app(json!({"billing": {"stripe": {"testSecret": TEST_SECRET}}})).await;
        let test = with(invoice("in_1", 0, "subscription_create", 999), json!({"livemode": false}));
        let (at, body) = (now(&shop), test.to_string());
        let header = format!("t={at},v1={}", hex_mac(TEST_SECRET, at, &body));
        shop.post("stripe", &[("stripe-signature", &header)], &body).await.expect(200);
        assert_eq!(shop.log().await, Vec::<Value>::new());
        let log = shop.log_with_key(&shop.test_key).await;
        assert_eq!((&log[0]["name"], &log[0]["environment"]), (&json!("purchase"), &json!("test")));
        assert!(shop.net().await.is_empty());
    }

    async fn the_order_of_stripes_events_does_not_matter(engine: Engine) {
        let expected = replay(engine, &lifecycle()).await;
        assert_eq!(expected.0, texts(&[
            ("evt_checkout", "checkout_completed null null phone-1"),
            ("evt_in_1", "purchase 9.99 true phone-1"),
            ("evt_in_2", "renewal 9.99 true phone-1"),
            ("evt_in_3", "renewal 9.99 true phone-1"),
            ("evt_part_1", "refund -3 true phone-1"),
            ("evt_part_2", "refund -2 true phone-1"),
            ("evt_disputed", "refund -9.99 true phone-1"),
            ("evt_won", "refund_reversed 9.99 true phone-1"),
            ("evt_full", "refund -9.99 true phone-1"),
            ("evt_refund_failed", "refund_reversed 9.99 true phone-1"),
            ("evt_cancelled", "cancellation null null phone-1"),
        ]));
        assert_eq!(expected.1, BTreeMap::from([("network_a".to_owned(), 3 * 9_990_000 - 5_000_000)]));
        assert_eq!(expected.2, texts(&[("evt_in_1 Purchase", "pending")]));
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

    async fn a_payment_that_another_provider_reports_too_counts_once(engine: Engine) {
        // RevenueCat reports the payment later, by its payment intent, with a refund.
        let of_stripe = |one: Value| with(one, json!({"store": "STRIPE", "original_transaction_id": "rc-1", "subscriber_attributes": null}));
        let other = of_stripe(with_payment(event("INITIAL_PURCHASE", "rc", 2), "pi_1", 9.99));
        let other_refund = of_stripe(with_payment(event("CANCELLATION", "rc-refund", 7), "pi_1", -3.0));
        let stripe: Vec<Value> = lifecycle().into_iter().take(3).collect();
        let refund = refunded("evt_part_1", "pi_1", 6, (0, 300));
        let all = || stripe.iter().cloned().chain([refund.clone(), other.clone(), other_refund.clone()]);
        let expected = replay(engine, &all().collect::<Vec<_>>()).await;
        assert_eq!(expected.0, texts(&[
            ("evt_checkout", "checkout_completed null null phone-1"),
            ("evt_in_1", "purchase 9.99 true phone-1"),
            ("evt_part_1", "refund -3 true phone-1"),
        ]));
        assert_eq!(expected.1, BTreeMap::from([("network_a".to_owned(), 6_990_000)]));
        let reversed: Vec<Value> = all().rev().collect();
        let found = replay(engine, &reversed).await;
        assert_eq!((&found.0, &found.1), (&expected.0, &expected.1), "in reverse");
    }

    async fn a_single_payment_counts_once_however_it_is_reported(engine: Engine) {
        let metadata = json!({"tributary_device_id": "phone-1", "tributary_user_id": "person-1"});
        let payment = change("evt_payment", "payment_intent.succeeded", 2, json!({
            "id": "pi_1", "object": "payment_intent", "amount_received": 5_000, "currency": "jpy",
            "metadata": metadata, "latest_charge": "ch_1", "client_secret": "pi_1_secret_x",
        }));
        let checkout = change("evt_checkout", "checkout.session.completed", 1, json!({
            "id": "cs_1", "object": "checkout.session", "mode": "payment", "payment_status": "paid",
            "payment_intent": "pi_1", "amount_total": 5_000, "currency": "jpy", "metadata": metadata,
        }));
        for events in [[&payment, &checkout], [&checkout, &payment]] {
            let (log, ..) = replay(engine, &events.map(Clone::clone)).await;
            assert_eq!(log.len(), 1, "{log:?}");
            assert!(log["evt_checkout"].starts_with("purchase ") && log["evt_checkout"].ends_with(" phone-1"));
        }
    }
}
