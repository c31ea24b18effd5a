//! Web events: duplicates, conflicts, and the payments that renewals and refunds refer to.

use crate::website::{SHOP, START, Website, with, without};
use serde_json::{Value, json};
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

fn refusal(status: u16, code: &str) -> (u16, String, bool) {
    (status, code.to_owned(), false)
}

/// Returns the refusal of a renewal or refund whose payment is missing.
fn unavailable() -> (u16, String, bool) {
    (409, "original_transaction_unavailable".to_owned(), true)
}

on_both_engines! {
    // Retry with the identical eventId and identical payload.
    async fn an_identical_repeat_returns_202_as_a_duplicate(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let event = site.purchase("order-1", "49.99");
        let first = site.send(&event).await.expect(202).data();
        server.clock.advance(Duration::from_hours(1));
        for _ in 0..3 {
            let again = site.send(&event).await.expect(202).data();
            assert_eq!(again, with(&first, "duplicate", true), "the response of the first time");
        }
        assert_eq!(site.log().await.len(), 1);
    }

    async fn a_repeat_returns_202_after_its_link_was_deleted(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        site.send_accepted(&site.purchase("order-1", "100")).await;
        site.send_accepted(&site.refund("refund-1", "-100", "order-1")).await;
        site.call("DELETE", &format!("/links/{}", site.link), Value::Null).await.expect(204);
        for event in [site.purchase("order-1", "100"), site.refund("refund-1", "-100", "order-1")] {
            let again = site.send(&event).await.expect(202).data();
            assert_eq!(again["duplicate"], true, "also when the payment is fully refunded: {event}");
        }
        assert_eq!(site.log().await.len(), 2);
    }

    // An event with the same eventId and a conflicting payload is terminal (not retryable).
    async fn the_same_event_id_with_a_conflicting_payload_is_terminal(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let second = site.tap(&site.link, "gclid=x").await;
        site.send_accepted(&site.purchase("order-0", "10")).await;
        let event = site.child("order-1", "renewal", "10", "order-0");
        site.send_accepted(&event).await;
        let before = site.log().await;
        let parentless = without(&event, "originalTransactionId");
        for (other, fields) in [
            (with(&event, "arClickId", second), vec!["arClickId"]),
            (with(&event, "deviceId", "visitor-2"), vec!["deviceId"]),
            (with(&event, "timestampMs", START - 1), vec!["timestampMs"]),
            (with(&parentless, "eventType", "purchase"), vec!["eventType", "originalTransactionId"]),
            (with(&event, "revenue", "10.000001"), vec!["revenue"]),
            (with(&event, "currency", "EUR"), vec!["currency"]),
            (with(&event, "sourceUrl", format!("{SHOP}/thanks")), vec!["sourceUrl"]),
            (with(&event, "originalTransactionId", "order-9"), vec!["originalTransactionId"]),
            (with(&event, "emailSha256", "ab".repeat(32)), vec!["emailSha256"]),
            // The id is already used, so the click is not checked any more.
            (with(&event, "arClickId", "clk_forged"), vec!["arClickId"]),
        ] {
            assert_eq!(site.send_refused(&other).await, refusal(422, "event_id_conflict"), "{other}");
            let faults = site.send(&other).await.faults();
            let expected: Vec<_> = fields.iter().map(|field| ((*field).to_owned(), "different".to_owned())).collect();
            assert_eq!(faults, expected, "{other}");
        }
        assert_eq!(site.send(&event).await.expect(202).data()["duplicate"], true, "the first payload is kept");
        assert_eq!(site.log().await, before);
    }

    // Same payload = same values after parsing (49.9 equals 49.90; key order does not matter).
    async fn differently_written_values_are_the_same_payload(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let event = with(&site.purchase("order-1", "49.9"), "currency", "USD");
        site.send_accepted(&event).await;
        for revenue in ["49.9", "49.90", "\"49.900000\"", "4.99e1", "499E-1"] {
            let body = format!(
                r#"{{ "sourceUrl": "{SHOP}/paid", "revenue": {revenue}, "eventType":"purchase", "emailSha256": null,
                     "currency": "usd", "timestampMs": {START},
                     "deviceId": "visitor-\u0031", "arClickId": "{}", "eventId": "order-1" }}"#,
                site.click
            );
            assert_eq!(site.send_text(&body).await.expect(202).data()["duplicate"], true, "{body}");
        }
        let canonical = with(&event, "sourceUrl", "https://SHOP.example.com:443/paid");
        assert_eq!(site.send(&canonical).await.expect(202).data()["duplicate"], true);
        // For `sign_up`, zero revenue equals absent revenue.
        site.send_accepted(&site.event("s", "sign_up")).await;
        let zero = with(&site.event("s", "sign_up"), "revenue", "0.00");
        assert_eq!(site.send(&zero).await.expect(202).data()["duplicate"], true);
        assert_eq!(site.log().await.len(), 2);
    }

    async fn event_ids_are_unique_per_app(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let other = Website::open_at(&site.base, &site.key).await;
        site.send_accepted(&site.purchase("order-1", "10")).await;
        // The parent must be a web event of the same app.
        assert_eq!(other.send_refused(&other.refund("refund-1", "-10", "order-1")).await, unavailable());
        other.send_accepted(&other.purchase("order-1", "20")).await;
        other.send_accepted(&other.refund("refund-1", "-20", "order-1")).await;
        site.send_accepted(&site.refund("refund-1", "-10", "order-1")).await;
    }

    async fn an_sdk_event_is_not_a_parent_and_does_not_take_the_event_id(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let app = site.call("GET", "", Value::Null).await.expect(200).data();
        let event = json!({"eventId": "order-1", "name": "purchase", "revenue": 10, "currency": "USD"});
        let body = json!({"deviceId": "visitor-1", "events": [event]}).to_string();
        let request = server.request(reqwest::Method::POST, "/api/track/events");
        let request = request.header("x-tributary-key", app["sdk"]["liveKey"].as_str().unwrap());
        server.send(request.header("content-type", "application/json").body(body)).await.expect(202);
        assert_eq!(site.send_refused(&site.refund("refund-1", "-10", "order-1")).await, unavailable());
        site.send_accepted(&site.purchase("order-1", "10")).await;
        site.send_accepted(&site.refund("refund-1", "-10", "order-1")).await;
    }

    // 409 original_transaction_unavailable: the parent receipt is missing. Retryable.
    async fn a_missing_parent_is_409_and_the_same_request_succeeds_once_the_parent_arrived(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let renewal = site.child("renewal-1", "renewal", "10", "order-1");
        let refund = site.refund("refund-1", "-4", "renewal-1");
        for _ in 0..2 {
            assert_eq!(site.send_refused(&renewal).await, unavailable());
            assert_eq!(site.send_refused(&refund).await, unavailable());
        }
        assert_eq!(site.log().await, Vec::<Value>::new(), "rejected events are not stored");
        // The rejected event did not claim the id, so a different payload does not conflict.
        assert_eq!(site.send_refused(&with(&refund, "revenue", "-5")).await, unavailable());
        site.send_accepted(&site.purchase("order-1", "10")).await;
        assert_eq!(site.send_refused(&refund).await, unavailable());
        site.send_accepted(&renewal).await;
        site.send_accepted(&refund).await;
        assert_eq!(site.log().await.len(), 3);
    }

    // originalTransactionId = eventId of the initial purchase.
    async fn a_renewal_can_only_refer_to_the_initial_purchase(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for event in [
            site.purchase("order", "10"), site.child("renewal", "renewal", "10", "order"),
            site.refund("refund", "-1", "order"), site.event("signed-up", "sign_up"),
            site.priced("checkout", "checkout_started", "10"), site.priced("trial", "start_trial", "10"),
        ] {
            site.send_accepted(&event).await;
        }
        for parent in ["renewal", "refund", "signed-up", "checkout", "trial"] {
            let event = site.child("n", "renewal", "10", parent);
            assert_eq!(site.send_refused(&event).await, refusal(422, "original_transaction_invalid"), "{parent}");
        }
        let itself = site.child("n", "renewal", "10", "n");
        assert_eq!(site.send_refused(&itself).await, refusal(422, "original_transaction_invalid"), "not to itself either");
        // The price may have changed, and so may the currency.
        site.send_accepted(&with(&site.child("n", "renewal", "12.5", "order"), "currency", "EUR")).await;
    }

    // originalTransactionId = eventId of the reversed payment.
    async fn a_refund_can_only_refer_to_a_payment(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for event in [
            site.purchase("order", "10"), site.child("renewal", "renewal", "10", "order"),
            site.refund("refund", "-1", "order"), site.event("signed-up", "sign_up"),
            site.priced("checkout", "checkout_started", "10"), site.priced("trial", "start_trial", "10"),
        ] {
            site.send_accepted(&event).await;
        }
        for parent in ["refund", "signed-up", "checkout", "trial"] {
            let event = site.refund("r", "-1", parent);
            assert_eq!(site.send_refused(&event).await, refusal(422, "original_transaction_invalid"), "{parent}");
        }
        let itself = site.refund("r", "-1", "r");
        assert_eq!(site.send_refused(&itself).await, refusal(422, "original_transaction_invalid"));
        site.send_accepted(&site.refund("r", "-10", "renewal")).await;
    }

    // Cumulative refunds are bounded to that payment.
    async fn cumulative_refunds_do_not_exceed_the_referenced_payment(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let too_much = refusal(422, "refund_exceeds_payment");
        site.send_accepted(&site.purchase("order", "100")).await;
        site.send_accepted(&site.child("renewal", "renewal", "50", "order")).await;
        assert_eq!(site.send_refused(&site.refund("r0", "-100.000001", "order")).await, too_much);
        site.send_accepted(&site.refund("r1", "-60", "order")).await;
        assert_eq!(site.send_refused(&site.refund("r2", "-40.000001", "order")).await, too_much);
        site.send_accepted(&site.refund("r3", "-39.999999", "order")).await;
        assert_eq!(site.send_refused(&site.refund("r4", "-0.000002", "order")).await, too_much);
        assert_eq!(site.send(&site.refund("r1", "-60", "order")).await.expect(202).data()["duplicate"], true);
        // A rejected refund uses nothing up; its id may be reused with a smaller amount.
        site.send_accepted(&site.refund("r4", "-0.000001", "order")).await;
        assert_eq!(site.send_refused(&site.refund("r5", "-0.000001", "order")).await, too_much);
        // Each payment has its own limit, so the renewal's is separate.
        assert_eq!(site.send_refused(&site.refund("r6", "-50.01", "renewal")).await, too_much);
        site.send_accepted(&site.refund("r6", "-50", "renewal")).await;
        site.send_accepted(&site.purchase("large", "999999999999.999999")).await;
        let whole = "-999999999999.999999";
        site.send_accepted(&site.refund("r7", "-999999999999.999998", "large")).await;
        assert_eq!(site.send_refused(&site.refund("r8", whole, "large")).await, too_much);
        assert_eq!(site.send_refused(&site.refund("r8", "-0.000002", "large")).await, too_much);
        site.send_accepted(&site.refund("r8", "-0.000001", "large")).await;
    }

    async fn a_refund_must_be_in_the_currency_of_its_payment(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        site.send_accepted(&with(&site.purchase("order", "100"), "currency", "JPY")).await;
        let refund = site.refund("r", "-100", "order");
        assert_eq!(site.send_refused(&refund).await, refusal(422, "currency_mismatch"));
        // The currency is checked before the limit.
        assert_eq!(site.send_refused(&with(&refund, "revenue", "-101")).await, refusal(422, "currency_mismatch"));
        site.send_accepted(&with(&refund, "currency", "JPY")).await;
    }
}
