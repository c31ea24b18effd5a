//! What Stripe's events mean.

use super::event::StripeEvent;
use tributary_domain::billing::{
    BILLING_ISSUE, CANCELLATION, EXPIRATION, NotificationMeaning, PRODUCT_CHANGE, PaymentClaim,
    TRIAL_CANCELLED, UNCANCELLATION,
};

impl StripeEvent<'_> {
    pub(super) fn meaning(&self) -> NotificationMeaning {
        match self.object.as_str() {
            "invoice" => self.meaning_of_invoice(),
            "checkout.session" => self.meaning_of_checkout(),
            "payment_intent" => self.meaning_of_payment(),
            "subscription" => self.meaning_of_subscription(),
            "charge" if self.kind == "charge.refunded" => NotificationMeaning::Refund,
            "refund" => self.meaning_of_refund(),
            "dispute" => self.meaning_of_dispute(),
            _ => NotificationMeaning::Receipt,
        }
    }

    fn meaning_of_invoice(&self) -> NotificationMeaning {
        let is_subscription = self.subscription().is_some();
        match self.kind.as_str() {
            // A trial's first invoice, a full discount and a credit are paid with nothing.
            "invoice.paid" | "invoice.payment_succeeded" if self.is_paid(&["amount_paid"]) => {
                let reason = self.text(&["billing_reason"]);
                NotificationMeaning::Payment(match reason.as_deref() {
                    _ if !is_subscription => PaymentClaim::OneOff,
                    Some("subscription_create") => PaymentClaim::Start,
                    Some("subscription_cycle") => PaymentClaim::AfterTrial,
                    _ => PaymentClaim::Continuation,
                })
            }
            "invoice.payment_failed" if is_subscription => lifecycle(BILLING_ISSUE),
            _ => NotificationMeaning::Receipt,
        }
    }

    fn meaning_of_checkout(&self) -> NotificationMeaning {
        let is_completed = matches!(
            self.kind.as_str(),
            "checkout.session.completed" | "checkout.session.async_payment_succeeded"
        );
        let is_paid = self.text(&["payment_status"]).as_deref() == Some("paid");
        if is_completed && is_paid && self.is_single_payment() && self.is_paid(&["amount_total"]) {
            return NotificationMeaning::Payment(PaymentClaim::OneOff);
        }
        if is_completed && self.subscription().is_some() {
            // The invoice reports the payment. The checkout knows who paid.
            return lifecycle("checkout_completed");
        }
        NotificationMeaning::Receipt
    }

    /// A payment intent may belong to an invoice, and since version 2025-03-31 it no longer says so.
    /// So it counts only if the shop set its metadata; Stripe does not copy a subscription's metadata
    /// to its payment intents.
    fn meaning_of_payment(&self) -> NotificationMeaning {
        let is_invoice = self.text(&["invoice"]).is_some();
        let is_paid = self.kind == "payment_intent.succeeded" && self.is_paid(&["amount_received"]);
        if is_paid && !is_invoice && self.names_subscriber() {
            return NotificationMeaning::Payment(PaymentClaim::OneOff);
        }
        NotificationMeaning::Receipt
    }

    fn meaning_of_subscription(&self) -> NotificationMeaning {
        let is_trial = self.text(&["status"]).as_deref() == Some("trialing");
        match self.kind.as_str() {
            "customer.subscription.created" if is_trial => NotificationMeaning::TrialStart,
            // It knows who subscribed; the invoice reports the payment.
            "customer.subscription.created" => lifecycle("subscription_created"),
            "customer.subscription.updated" => self.meaning_of_change(is_trial),
            "customer.subscription.paused" => lifecycle("subscription_paused"),
            "customer.subscription.deleted" => lifecycle(EXPIRATION),
            _ => NotificationMeaning::Receipt,
        }
    }

    fn meaning_of_change(&self, is_trial: bool) -> NotificationMeaning {
        // The first payment method of the trial was confirmed only now.
        if is_trial && self.previous_text(&["status"]).as_deref() == Some("incomplete") {
            return NotificationMeaning::TrialStart;
        }
        match self.ends() {
            (false, true) if is_trial => lifecycle(TRIAL_CANCELLED),
            (false, true) => lifecycle(CANCELLATION),
            (true, false) => lifecycle(UNCANCELLATION),
            _ if self.changes_price() => lifecycle(PRODUCT_CHANGE),
            _ => NotificationMeaning::Receipt,
        }
    }

    /// The charge reports refunds. Only a refund that failed later is reported by itself.
    fn meaning_of_refund(&self) -> NotificationMeaning {
        match self.text(&["status"]).as_deref() {
            Some("failed" | "canceled") => NotificationMeaning::RefundReversed,
            _ => NotificationMeaning::Receipt,
        }
    }

    /// A dispute takes the money back, unless it is only an inquiry. A dispute that was won returns
    /// the money.
    fn meaning_of_dispute(&self) -> NotificationMeaning {
        let status = self.text(&["status"]).unwrap_or_default();
        match (self.kind.as_str(), status.as_str()) {
            ("charge.dispute.closed", "won") | ("charge.dispute.funds_reinstated", _) => {
                NotificationMeaning::RefundReversed
            }
            ("charge.dispute.closed", "lost") | ("charge.dispute.funds_withdrawn", _) => {
                NotificationMeaning::Refund
            }
            ("charge.dispute.created", status) if !status.starts_with("warning_") => {
                NotificationMeaning::Refund
            }
            _ => NotificationMeaning::Receipt,
        }
    }
}

fn lifecycle(name: &str) -> NotificationMeaning {
    NotificationMeaning::Lifecycle(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::super::Provider as _;
    use super::super::Stripe;
    use crate::json::parse;
    use rstest::rstest;
    use serde_json::{Value, json};
    use tributary_domain::access::Environment;
    use tributary_domain::billing::{NotificationMeaning, ProviderNotification};
    use tributary_domain::device::DeviceKey;

    fn event(kind: &str, object: &Value, previous: &Value) -> ProviderNotification {
        let body = json!({
            "id": "evt_1", "type": kind, "created": 1_700_000_000, "livemode": true,
            "data": {"object": object, "previous_attributes": previous},
        });
        Stripe
            .translate(&parse(&body.to_string()).unwrap())
            .unwrap()
    }

    fn named(meaning: &NotificationMeaning) -> String {
        match meaning {
            NotificationMeaning::Lifecycle(name) => name.clone(),
            other => format!("{other:?}"),
        }
    }

    #[rstest]
    #[case::first(
        "invoice.paid",
        Some("sub_1"),
        "subscription_create",
        999,
        "Payment(Start)"
    )]
    #[case::next(
        "invoice.payment_succeeded",
        Some("sub_1"),
        "subscription_cycle",
        999,
        "Payment(AfterTrial)"
    )]
    #[case::prorated(
        "invoice.paid",
        Some("sub_1"),
        "subscription_update",
        999,
        "Payment(Continuation)"
    )]
    #[case::single("invoice.paid", None, "manual", 999, "Payment(OneOff)")]
    #[case::of_a_trial("invoice.paid", Some("sub_1"), "subscription_create", 0, "Receipt")]
    #[case::failed(
        "invoice.payment_failed",
        Some("sub_1"),
        "subscription_cycle",
        0,
        "billing_issue"
    )]
    #[case::failed_single("invoice.payment_failed", None, "manual", 0, "Receipt")]
    #[case::not_paid_yet("invoice.created", Some("sub_1"), "subscription_cycle", 0, "Receipt")]
    fn invoices(
        #[case] kind: &str,
        #[case] subscription: Option<&str>,
        #[case] reason: &str,
        #[case] paid: i64,
        #[case] expected: &str,
    ) {
        let invoice = |rest: Value| {
            let mut object = json!({
                "id": "in_1", "object": "invoice", "billing_reason": reason, "amount_paid": paid,
                "currency": "eur", "customer": "cus_1",
            });
            object
                .as_object_mut()
                .unwrap()
                .extend(rest.as_object().unwrap().clone());
            event(kind, &object, &Value::Null)
        };
        // Before and since version 2025-03-31.
        let metadata = json!({"tributary_device_id": "phone-1"});
        let before = invoice(json!({
            "subscription": subscription, "subscription_details": {"metadata": metadata},
        }));
        let since = invoice(json!({"parent": {
            "subscription_details": {"subscription": subscription, "metadata": metadata},
        }}));
        for found in [before, since] {
            assert_eq!(named(&found.meaning), expected);
            assert_eq!(found.original_transaction.as_deref(), subscription);
            assert_eq!(found.transaction.as_deref(), Some("in_1"));
            let device = found.subscriber.device.as_ref().map(DeviceKey::as_str);
            assert_eq!(device, (expected != "Receipt").then_some("phone-1"));
            let price = found.price.paid.map(|(amount, _)| amount.to_string());
            assert_eq!(
                price.as_deref(),
                expected.starts_with("Payment").then_some("9.99")
            );
        }
    }

    #[rstest]
    #[case::trial("created", "trialing", json!({}), json!(null), "TrialStart")]
    #[case::paid("created", "active", json!({}), json!(null), "subscription_created")]
    #[case::trial_after_confirmation("updated", "trialing", json!({}), json!({"status": "incomplete"}), "TrialStart")]
    #[case::trial_converted("updated", "active", json!({}), json!({"status": "trialing"}), "Receipt")]
    #[case::trial_cancelled("updated", "trialing", json!({"cancel_at_period_end": true}), json!({"cancel_at_period_end": false}), "trial_cancelled")]
    #[case::cancelled("updated", "active", json!({"cancel_at_period_end": true, "cancel_at": 5}), json!({"cancel_at_period_end": false, "cancel_at": null}), "cancellation")]
    #[case::cancelled_at_a_date("updated", "active", json!({"cancel_at": 5}), json!({"cancel_at": null}), "cancellation")]
    #[case::another_date("updated", "active", json!({"cancel_at": 6}), json!({"cancel_at": 5}), "Receipt")]
    #[case::kept("updated", "active", json!({"cancel_at_period_end": false, "cancel_at": null}), json!({"cancel_at_period_end": true, "cancel_at": 5}), "uncancellation")]
    #[case::another_price("updated", "active", json!({"items": {"data": [{"price": {"id": "new"}}]}}), json!({"items": {"data": [{"price": {"id": "old"}}]}}), "product_change")]
    #[case::another_period("updated", "active", json!({"items": {"data": [{"price": {"id": "new"}}]}}), json!({"items": {"data": [{"price": {"id": "new"}}]}}), "Receipt")]
    #[case::paused("paused", "paused", json!({}), json!(null), "subscription_paused")]
    #[case::ended("deleted", "canceled", json!({}), json!(null), "expiration")]
    fn subscriptions(
        #[case] change: &str,
        #[case] status: &str,
        #[case] rest: Value,
        #[case] previous: Value,
        #[case] expected: &str,
    ) {
        let mut object = json!({
            "id": "sub_1", "object": "subscription", "status": status, "currency": "usd",
        });
        object
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        let found = event(
            &format!("customer.subscription.{change}"),
            &object,
            &previous,
        );
        assert_eq!(named(&found.meaning), expected);
        assert_eq!(found.original_transaction.as_deref(), Some("sub_1"));
        assert_eq!(
            found.price.is_zero(),
            expected == "TrialStart",
            "a trial is free"
        );
    }

    #[rstest]
    #[case::completed("completed", "payment", "paid", "Payment(OneOff)")]
    #[case::paid_later("async_payment_succeeded", "payment", "paid", "Payment(OneOff)")]
    #[case::not_paid_yet("completed", "payment", "unpaid", "Receipt")]
    #[case::subscription("completed", "subscription", "paid", "checkout_completed")]
    #[case::expired("expired", "payment", "unpaid", "Receipt")]
    fn checkouts(
        #[case] change: &str,
        #[case] mode: &str,
        #[case] status: &str,
        #[case] expected: &str,
    ) {
        let object = json!({
            "id": "cs_1", "object": "checkout.session", "mode": mode, "payment_status": status,
            "amount_total": 500, "currency": "jpy", "client_reference_id": "person-1",
            "payment_intent": (mode == "payment").then_some("pi_1"),
            "subscription": (mode == "subscription").then_some("sub_1"),
        });
        let found = event(&format!("checkout.session.{change}"), &object, &Value::Null);
        assert_eq!(named(&found.meaning), expected);
        if expected.starts_with("Payment") {
            assert_eq!(found.transaction.as_deref(), Some("pi_1"));
            assert_eq!(found.other_transactions, ["cs_1"]);
            assert_eq!(found.price.paid.unwrap().0.to_string(), "500");
            assert_eq!(found.subscriber.people[0].as_str(), "person-1");
        }
    }

    #[rstest]
    #[case::named(json!({"tributary_user_id": "person-1"}), json!(null), "Payment(OneOff)")]
    #[case::of_nobody(json!({"order": "5"}), json!(null), "Receipt")]
    #[case::of_an_invoice(json!({"tributary_user_id": "person-1"}), json!("in_1"), "Receipt")]
    fn payment_intents(#[case] metadata: Value, #[case] invoice: Value, #[case] expected: &str) {
        let object = json!({
            "id": "pi_1", "object": "payment_intent", "amount_received": 1_000, "currency": "usd",
            "metadata": metadata, "latest_charge": "ch_1", "invoice": invoice,
        });
        let found = event("payment_intent.succeeded", &object, &Value::Null);
        assert_eq!(named(&found.meaning), expected);
        assert_eq!(found.transaction.as_deref(), Some("pi_1"));
        assert_eq!(
            found.other_transactions[0], "ch_1",
            "the ids are linked in any case"
        );
    }

    #[rstest]
    #[case::first(300, Some(0), "3", "ch_1:300")]
    #[case::second(500, Some(300), "2", "ch_1:500")]
    #[case::without_the_earlier_sum(500, None, "5", "ch_1:500")]
    fn partial_refunds(
        #[case] refunded: i64,
        #[case] before: Option<i64>,
        #[case] amount: &str,
        #[case] id: &str,
    ) {
        let object = json!({
            "id": "ch_1", "object": "charge", "payment_intent": "pi_1", "currency": "usd",
            "amount": 1_000, "amount_refunded": refunded, "customer": "cus_1",
        });
        let found = event(
            "charge.refunded",
            &object,
            &json!({"amount_refunded": before}),
        );
        assert_eq!(found.meaning, NotificationMeaning::Refund);
        assert_eq!(found.price.paid.unwrap().0.to_string(), amount);
        assert_eq!(found.refund.as_deref(), Some(id));
        assert_eq!(found.transaction.as_deref(), Some("pi_1"));
        assert!(
            found.subscriber.people.is_empty(),
            "the payment knows the customer"
        );
    }

    #[rstest]
    #[case::made("refund.created", "refund", "succeeded", "Receipt")]
    #[case::failed("refund.failed", "refund", "failed", "RefundReversed")]
    #[case::cancelled("charge.refund.updated", "refund", "canceled", "RefundReversed")]
    #[case::inquiry(
        "charge.dispute.created",
        "dispute",
        "warning_needs_response",
        "Receipt"
    )]
    #[case::dispute("charge.dispute.created", "dispute", "needs_response", "Refund")]
    #[case::withdrawn(
        "charge.dispute.funds_withdrawn",
        "dispute",
        "needs_response",
        "Refund"
    )]
    #[case::lost("charge.dispute.closed", "dispute", "lost", "Refund")]
    #[case::won("charge.dispute.closed", "dispute", "won", "RefundReversed")]
    #[case::returned("charge.dispute.funds_reinstated", "dispute", "won", "RefundReversed")]
    #[case::inquiry_closed("charge.dispute.closed", "dispute", "warning_closed", "Receipt")]
    fn refunds_and_disputes(
        #[case] kind: &str,
        #[case] object: &str,
        #[case] status: &str,
        #[case] expected: &str,
    ) {
        let object = json!({
            "id": "re_1", "object": object, "status": status, "amount": 1_000, "currency": "usd",
            "charge": "ch_1", "payment_intent": "pi_1",
        });
        let found = event(kind, &object, &Value::Null);
        assert_eq!(named(&found.meaning), expected);
        assert_eq!(found.refund.as_deref(), Some("re_1"));
        assert_eq!(found.other_transactions, ["ch_1"]);
        assert_eq!(found.price.paid.is_some(), expected.starts_with("Refund"));
    }

    #[test]
    fn an_invoices_payment_links_the_ids_of_the_payment() {
        let object = json!({
            "id": "inpay_1", "object": "invoice_payment", "invoice": "in_1",
            "payment": {"type": "payment_intent", "payment_intent": "pi_1"},
        });
        let found = event("invoice_payment.paid", &object, &Value::Null);
        assert_eq!(found.meaning, NotificationMeaning::Receipt);
        assert_eq!(found.transaction.as_deref(), Some("in_1"));
        assert_eq!(found.other_transactions, ["pi_1"]);
    }

    #[test]
    fn an_event_without_its_object_is_a_receipt() {
        let body = parse(r#"{"id": "evt_1", "type": "v2.core.event", "livemode": false}"#).unwrap();
        let found = Stripe.translate(&body).unwrap();
        assert_eq!(found.meaning, NotificationMeaning::Receipt);
        assert_eq!(found.environment, Environment::Test);
        assert!(
            Stripe
                .translate(&parse(r#"{"id": "evt_1"}"#).unwrap())
                .is_err()
        );
    }
}
