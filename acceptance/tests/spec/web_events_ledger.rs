//! Website events: repeats, conflicts, and payments that renewals and refunds belong to.

use crate::website::{SHOP, START, Website, with, without};
use serde_json::{Value, json};
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

fn refusal(status: u16, code: &str) -> (u16, String, bool) {
    (status, code.to_owned(), false)
}

/// What a renewal or refund gets whose payment is not here.
fn unavailable() -> (u16, String, bool) {
    (409, "original_transaction_unavailable".to_owned(), true)
}

on_both_engines! {
    // Retry with the identical eventId and identical payload.
    async fn an_identical_repeat_is_202_and_a_duplicate(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let event = site.purchase("order-1", "49.99");
        let first = site.send(&event).await.expect(202).data();
        server.clock.advance(Duration::from_hours(1));
        for _ in 0..3 {
            let again = site.send(&event).await.expect(202).data();
            assert_eq!(again, with(&first, "duplicate", true), "as received the first time");
        }
        assert_eq!(site.log().await.len(), 1);
    }

    async fn a_repeat_is_202_even_if_the_link_has_gone_since(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        site.accepted(&site.purchase("order-1", "100")).await;
        site.accepted(&site.refund("refund-1", "-100", "order-1")).await;
        site.call("DELETE", &format!("/links/{}", site.link), Value::Null).await.expect(204);
        for event in [site.purchase("order-1", "100"), site.refund("refund-1", "-100", "order-1")] {
            let again = site.send(&event).await.expect(202).data();
            assert_eq!(again["duplicate"], true, "and even when the payment is used up: {event}");
        }
        assert_eq!(site.log().await.len(), 2);
    }

    // An event with the same eventId and a conflicting payload is terminal (not retryable).
    async fn the_same_event_id_with_a_conflicting_payload_is_terminal(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let second = site.tap(&site.link, "gclid=x").await;
        site.accepted(&site.purchase("order-0", "10")).await;
        let event = site.child("order-1", "renewal", "10", "order-0");
        site.accepted(&event).await;
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
            // A click that is not verified does not matter any more: the id is taken.
            (with(&event, "arClickId", "clk_forged"), vec!["arClickId"]),
        ] {
            assert_eq!(site.refused(&other).await, refusal(422, "event_id_conflict"), "{other}");
            let faults = site.send(&other).await.faults();
            let expected: Vec<_> = fields.iter().map(|field| ((*field).to_owned(), "different".to_owned())).collect();
            assert_eq!(faults, expected, "{other}");
        }
        assert_eq!(site.send(&event).await.expect(202).data()["duplicate"], true, "the first stands");
        assert_eq!(site.log().await, before);
    }

    // Same payload = same values after parsing (49.9 equals 49.90; key order is nothing).
    async fn the_same_values_written_otherwise_are_the_same_payload(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let event = with(&site.purchase("order-1", "49.9"), "currency", "USD");
        site.accepted(&event).await;
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
        // For sign_up no money and nothing of it are the same.
        site.accepted(&site.event("s", "sign_up")).await;
        let zero = with(&site.event("s", "sign_up"), "revenue", "0.00");
        assert_eq!(site.send(&zero).await.expect(202).data()["duplicate"], true);
        assert_eq!(site.log().await.len(), 2);
    }

    async fn an_event_id_is_of_one_app(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let other = Website::open_at(&site.base, &site.key).await;
        site.accepted(&site.purchase("order-1", "10")).await;
        // A parent is a web event of this app.
        assert_eq!(other.refused(&other.refund("refund-1", "-10", "order-1")).await, unavailable());
        other.accepted(&other.purchase("order-1", "20")).await;
        other.accepted(&other.refund("refund-1", "-20", "order-1")).await;
        site.accepted(&site.refund("refund-1", "-10", "order-1")).await;
    }

    async fn an_event_of_the_sdk_is_no_parent_and_takes_no_id_away(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let app = site.call("GET", "", Value::Null).await.expect(200).data();
        let event = json!({"eventId": "order-1", "name": "purchase", "revenue": 10, "currency": "USD"});
        let body = json!({"deviceId": "visitor-1", "events": [event]}).to_string();
        let request = server.request(reqwest::Method::POST, "/api/track/events");
        let request = request.header("x-tributary-key", app["sdk"]["liveKey"].as_str().unwrap());
        server.send(request.header("content-type", "application/json").body(body)).await.expect(202);
        assert_eq!(site.refused(&site.refund("refund-1", "-10", "order-1")).await, unavailable());
        site.accepted(&site.purchase("order-1", "10")).await;
        site.accepted(&site.refund("refund-1", "-10", "order-1")).await;
    }

    // 409 original_transaction_unavailable: the parent receipt is missing. Retryable.
    async fn a_missing_parent_is_409_and_the_same_request_succeeds_once_it_has_arrived(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let renewal = site.child("renewal-1", "renewal", "10", "order-1");
        let refund = site.refund("refund-1", "-4", "renewal-1");
        for _ in 0..2 {
            assert_eq!(site.refused(&renewal).await, unavailable());
            assert_eq!(site.refused(&refund).await, unavailable());
        }
        assert_eq!(site.log().await, Vec::<Value>::new(), "a refused event is not remembered");
        // Not remembered, so another payload may have the id meanwhile.
        assert_eq!(site.refused(&with(&refund, "revenue", "-5")).await, unavailable());
        site.accepted(&site.purchase("order-1", "10")).await;
        assert_eq!(site.refused(&refund).await, unavailable());
        site.accepted(&renewal).await;
        site.accepted(&refund).await;
        assert_eq!(site.log().await.len(), 3);
    }

    // originalTransactionId = eventId of the initial purchase.
    async fn a_renewal_belongs_to_the_initial_purchase_and_nothing_else(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for event in [
            site.purchase("order", "10"), site.child("renewal", "renewal", "10", "order"),
            site.refund("refund", "-1", "order"), site.event("signed-up", "sign_up"),
            site.priced("checkout", "checkout_started", "10"), site.priced("trial", "start_trial", "10"),
        ] {
            site.accepted(&event).await;
        }
        for parent in ["renewal", "refund", "signed-up", "checkout", "trial"] {
            let event = site.child("n", "renewal", "10", parent);
            assert_eq!(site.refused(&event).await, refusal(422, "original_transaction_invalid"), "{parent}");
        }
        let itself = site.child("n", "renewal", "10", "n");
        assert_eq!(site.refused(&itself).await, refusal(422, "original_transaction_invalid"), "nor to itself");
        // The price may have changed, and so may the currency.
        site.accepted(&with(&site.child("n", "renewal", "12.5", "order"), "currency", "EUR")).await;
    }

    // originalTransactionId = eventId of the reversed payment.
    async fn a_refund_belongs_to_a_payment_and_nothing_else(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for event in [
            site.purchase("order", "10"), site.child("renewal", "renewal", "10", "order"),
            site.refund("refund", "-1", "order"), site.event("signed-up", "sign_up"),
            site.priced("checkout", "checkout_started", "10"), site.priced("trial", "start_trial", "10"),
        ] {
            site.accepted(&event).await;
        }
        for parent in ["refund", "signed-up", "checkout", "trial"] {
            let event = site.refund("r", "-1", parent);
            assert_eq!(site.refused(&event).await, refusal(422, "original_transaction_invalid"), "{parent}");
        }
        let itself = site.refund("r", "-1", "r");
        assert_eq!(site.refused(&itself).await, refusal(422, "original_transaction_invalid"));
        site.accepted(&site.refund("r", "-10", "renewal")).await;
    }

    // Cumulative refunds are bounded to that payment.
    async fn cumulative_refunds_do_not_exceed_the_referenced_payment(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let too_much = refusal(422, "refund_exceeds_payment");
        site.accepted(&site.purchase("order", "100")).await;
        site.accepted(&site.child("renewal", "renewal", "50", "order")).await;
        assert_eq!(site.refused(&site.refund("r0", "-100.000001", "order")).await, too_much);
        site.accepted(&site.refund("r1", "-60", "order")).await;
        assert_eq!(site.refused(&site.refund("r2", "-40.000001", "order")).await, too_much);
        site.accepted(&site.refund("r3", "-39.999999", "order")).await;
        assert_eq!(site.refused(&site.refund("r4", "-0.000002", "order")).await, too_much);
        assert_eq!(site.send(&site.refund("r1", "-60", "order")).await.expect(202).data()["duplicate"], true);
        // What was refused took nothing, and may come smaller under the same id.
        site.accepted(&site.refund("r4", "-0.000001", "order")).await;
        assert_eq!(site.refused(&site.refund("r5", "-0.000001", "order")).await, too_much);
        // The bound is of that payment: the renewal has its own.
        assert_eq!(site.refused(&site.refund("r6", "-50.01", "renewal")).await, too_much);
        site.accepted(&site.refund("r6", "-50", "renewal")).await;
        site.accepted(&site.purchase("large", "999999999999.999999")).await;
        let whole = "-999999999999.999999";
        site.accepted(&site.refund("r7", "-999999999999.999998", "large")).await;
        assert_eq!(site.refused(&site.refund("r8", whole, "large")).await, too_much);
        assert_eq!(site.refused(&site.refund("r8", "-0.000002", "large")).await, too_much);
        site.accepted(&site.refund("r8", "-0.000001", "large")).await;
    }

    async fn a_refund_is_in_the_currency_of_its_payment(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        site.accepted(&with(&site.purchase("order", "100"), "currency", "JPY")).await;
        let refund = site.refund("r", "-100", "order");
        assert_eq!(site.refused(&refund).await, refusal(422, "currency_mismatch"));
        // Said before the bound is.
        assert_eq!(site.refused(&with(&refund, "revenue", "-101")).await, refusal(422, "currency_mismatch"));
        site.accepted(&with(&refund, "currency", "JPY")).await;
    }
}
