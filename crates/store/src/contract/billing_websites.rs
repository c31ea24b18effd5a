//! Payments that both a website and Stripe report, directly or through another provider.

use super::billing_duplicates::Reporting;
use super::duplicates::forwarding_shop;
use super::erasure_fixtures::{billing_notification, device};
use super::fixtures::{SharedStore, assert_rebuild_changes_nothing, join_all};
use super::outbox_fixtures::ForwardingApp;
use super::sdk_fixtures::payment;
use super::web_events::{post, purchase};
use tributary_domain::app::BillingProvider;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::billing::{IncomingNotification, NotificationMeaning, PaymentClaim};
use tributary_domain::click::Click;
use tributary_domain::event::web::WebEventKind;
use tributary_domain::event::{Event, EventSource};
use tributary_domain::vocabulary::money::Amount;

impl ForwardingApp {
    /// Builds what Stripe reports about a transaction of the subscription `sub`.
    fn of_stripe(
        &self,
        id: &str,
        transaction: &str,
        second: i64,
        (meaning, usd): (NotificationMeaning, &str),
    ) -> IncomingNotification {
        let mut one = billing_notification(&self.tenant, id, "sub", second, meaning);
        one.provider = BillingProvider::Stripe;
        one.content.store = Some("STRIPE".to_owned());
        one.content.transaction = Some(transaction.to_owned());
        one.content.price.usd = Some(Amount::parse(usd).expect("an amount"));
        one.content.subscriber.people.clear();
        one.content.subscriber.device = Some(device("phone"));
        one
    }

    fn invoice(&self, id: &str, second: i64) -> IncomingNotification {
        let start = NotificationMeaning::Payment(PaymentClaim::Start);
        self.of_stripe(&format!("n-{id}"), id, second, (start, "10"))
    }

    /// Builds the notification that an invoice was paid by a payment intent.
    fn link(&self, invoice: &str, intent: &str) -> IncomingNotification {
        let receipt = NotificationMeaning::Receipt;
        let mut one = self.of_stripe(&format!("n-{intent}"), invoice, 112, (receipt, "0"));
        one.content.other_transactions = vec![intent.to_owned()];
        one
    }

    fn stripe_refund(&self, id: &str, transaction: &str, usd: &str) -> IncomingNotification {
        let refund = NotificationMeaning::Refund;
        let mut one = self.of_stripe(&format!("n-{id}"), transaction, 130, (refund, usd));
        one.content.refund = Some(id.to_owned());
        one
    }

    /// Returns purchases, renewals and refunds, and revenue and refunds in whole USD.
    async fn money(&self) -> (i64, i64, i64, i64, i64) {
        let total = self.total().await;
        let usd = |micros: i64| micros / 1_000_000;
        (
            total.purchases,
            total.renewals,
            total.refunds,
            usd(total.revenue_micros),
            usd(total.refunded_micros),
        )
    }

    async fn stripe_event(&self, id: &str) -> Event {
        self.event(EventSource::Billing, id).await
    }

    async fn repeat(&self, arrival: IncomingNotification) {
        let again = self.tenant.store.accept_notification(arrival).await;
        let again = again.expect("a notification is accepted");
        assert_eq!(again, crate::NotificationOutcome::Duplicate);
    }
}

fn orders<const N: usize>() -> Vec<[usize; N]> {
    fn extend<const N: usize>(begun: &mut Vec<usize>, all: &mut Vec<[usize; N]>) {
        if let Ok(order) = begun.as_slice().try_into() {
            all.push(order);
        }
        for place in 0..N {
            if !begun.contains(&place) {
                begun.push(place);
                extend(begun, all);
                begun.pop();
            }
        }
    }
    let mut all = Vec::new();
    extend(&mut Vec::new(), &mut all);
    all
}

/// A payment that a website and Stripe report counts once, for the website's click, in any order and
/// under any of the payment's ids. So does an SDK event with one of the ids.
pub async fn a_website_and_stripe_report_one_payment(store: &SharedStore) {
    for order in orders::<4>() {
        let (one, click) = forwarding_shop(store).await;
        for step in order {
            match step {
                0 => one.post_web_event(purchase(&click, "pi_1", "20")).await,
                1 => one.notify(one.invoice("in_1", 110)).await,
                2 => one.notify(one.link("in_1", "pi_1")).await,
                _ => {
                    one.report_sdk_event("phone", payment("pi_1", "9", "USD", 100))
                        .await;
                }
            }
        }
        one.repeat(one.invoice("in_1", 110)).await;
        one.repeat(one.link("in_1", "pi_1")).await;
        let web = one.event(EventSource::Web, "pi_1").await;
        let billed = one.stripe_event("n-in_1").await;
        let sdk = one.event(EventSource::Sdk, "pi_1").await;
        assert_eq!(billed.duplicate_of, Some(web.id), "{order:?}");
        assert!(sdk.duplicate_of.is_some(), "{order:?}");
        assert!(web.first_payment && !billed.first_payment && !sdk.first_payment);
        assert_eq!(one.money().await, (1, 0, 0, 20, 0), "{order:?}");
        let deliveries = one.deliveries_of_event(&billed).await;
        assert!(
            deliveries.iter().all(|(status, ..)| *status == "cancelled"),
            "{order:?}: {deliveries:?}"
        );
        assert_eq!(one.deliveries_of_event(&web).await.len(), 1, "{order:?}");
    }
    assert_rebuild_changes_nothing(store).await;
}

/// The website's conversion has the deduplication id of the billing event that may have been sent.
pub async fn a_website_takes_over_the_deduplication_id(store: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    one.notify(one.invoice("in_1", 110)).await;
    one.notify(one.link("in_1", "pi_1")).await;
    let billed = one.stripe_event("n-in_1").await;
    let [(_, _, dedup_id)] = &one.deliveries_of_event(&billed).await[..] else {
        panic!("expected one delivery");
    };
    one.post_web_event(purchase(&click, "pi_1", "20")).await;
    let web = one.event(EventSource::Web, "pi_1").await;
    assert_eq!(web.dedup_root, Some(billed.id));
    assert_eq!(
        one.deliveries_of_event(&web).await,
        [("pending", None, dedup_id.clone())]
    );
    let cancelled = Some("duplicate_of_verified".to_owned());
    assert_eq!(
        one.deliveries_of_event(&billed).await,
        [("cancelled", cancelled, dedup_id.clone())]
    );
}

/// A renewal that both report counts once. One that only Stripe reports counts.
pub async fn a_website_and_stripe_report_one_renewal(store: &SharedStore) {
    for order in orders::<3>() {
        let (one, click) = forwarding_shop(store).await;
        one.post_web_event(purchase(&click, "in_1", "20")).await;
        for step in order {
            match step {
                0 => one.notify(one.invoice("in_1", 110)).await,
                1 => one.notify(one.invoice("in_2", 120)).await,
                _ => {
                    let kind = WebEventKind::Renewal;
                    one.post_web_event(post(&click, kind, "in_2", "20", Some("in_1")))
                        .await;
                }
            }
        }
        one.notify(one.invoice("in_3", 140)).await;
        let web = one.event(EventSource::Web, "in_2").await;
        let billed = one.stripe_event("n-in_2").await;
        assert_eq!(billed.duplicate_of, Some(web.id), "{order:?}");
        assert_eq!(one.money().await, (1, 2, 0, 50, 0), "{order:?}");
    }
    assert_rebuild_changes_nothing(store).await;
}

/// Of the refunds that a website and Stripe report, the larger sum counts, at most the payment, and
/// it is taken from the credit of the website's payment.
pub async fn refunds_of_a_website_and_stripe_count_once(store: &SharedStore) {
    // Refunds that the website reports, refunds that Stripe reports, and the sum that counts.
    let cases: [(&[&str], &[&str], i64); 5] = [
        (&["-20"], &["-20"], 20),
        (&["-5"], &["-5", "-3"], 8),
        (&["-9"], &["-5"], 9),
        (&[], &["-15", "-15"], 20),
        (&["-12"], &[], 12),
    ];
    for (by_website, by_stripe, expected) in cases {
        for order in orders::<4>() {
            let (one, click) = forwarding_shop(store).await;
            let mut waiting = Vec::new();
            for step in order {
                match step {
                    0 => one.post_web_event(purchase(&click, "pi_1", "20")).await,
                    1 => {
                        one.notify(one.invoice("in_1", 110)).await;
                        one.notify(one.link("in_1", "pi_1")).await;
                    }
                    2 => {
                        for (place, usd) in by_stripe.iter().enumerate() {
                            one.notify(one.stripe_refund(&format!("re_{place}"), "pi_1", usd))
                                .await;
                        }
                    }
                    _ => {
                        for (place, usd) in by_website.iter().enumerate() {
                            let (id, kind) = (format!("w_{place}"), WebEventKind::Refund);
                            waiting.push(post(&click, kind, &id, usd, Some("pi_1")));
                        }
                    }
                }
                // A website repeats a refund until its payment is there.
                waiting = one.post_refunds(waiting).await;
            }
            let of = format!("{order:?} {by_website:?} {by_stripe:?}");
            let (purchases, _, refunds, revenue, refunded) = one.money().await;
            assert_eq!((purchases, revenue, refunded), (1, 20, expected), "{of}");
            assert!(refunds >= 1, "{of}");
            for (credit, figures) in one.tenant.figures().await {
                assert!(figures.net_micros() >= 0, "{of}: {credit:?} {figures:?}");
            }
            let counted = one.log().await.into_iter().filter(|event| {
                event.name == "refund"
                    && event
                        .revenue
                        .as_ref()
                        .is_some_and(|it| it.uncounted.is_none())
            });
            let network = |event: Event| event.credit.map(|credit| credit.network);
            let networks: Vec<Option<CreditedNetwork>> = counted.map(network).collect();
            let web = one.event(EventSource::Web, "pi_1").await;
            let expected = web.credit.map(|credit| credit.network);
            assert!(networks.iter().all(|network| *network == expected), "{of}");
        }
    }
    assert_rebuild_changes_nothing(store).await;
}

impl ForwardingApp {
    /// Posts refunds and returns those whose payment is missing.
    async fn post_refunds(
        &self,
        refunds: Vec<tributary_domain::event::web::WebEvent>,
    ) -> Vec<tributary_domain::event::web::WebEvent> {
        let mut waiting = Vec::new();
        for refund in refunds {
            if self
                .tenant
                .store
                .accept_web_event(refund.clone())
                .await
                .is_err()
            {
                waiting.push(refund);
            }
        }
        waiting
    }
}

/// Another provider's report of a payment that Stripe took is a duplicate as well. Payments that
/// other stores took are not.
pub async fn only_payments_that_stripe_took_are_shared(store: &SharedStore) {
    for stripe_took_it in [true, false] {
        for web_first in [true, false] {
            let (one, click) = forwarding_shop(store).await;
            let mut paid = one.invoice("ch_1", 110);
            paid.provider = BillingProvider::Revenuecat;
            if !stripe_took_it {
                paid.content.store = Some("PLAY_STORE".to_owned());
            }
            let web = purchase(&click, "ch_1", "20");
            if web_first {
                one.post_web_event(web).await;
                one.notify(paid).await;
            } else {
                one.notify(paid).await;
                one.post_web_event(web).await;
            }
            let expected = if stripe_took_it {
                (1, 0, 0, 20, 0)
            } else {
                (2, 0, 0, 30, 0)
            };
            assert_eq!(one.money().await, expected, "{stripe_took_it} {web_first}");
        }
    }
    assert_rebuild_changes_nothing(store).await;
}

/// Number of payments and refunds that the website and Stripe report at the same time.
const MEETINGS: usize = 40;

async fn at_once(one: &ForwardingApp, other: &ForwardingApp, click: &Click) {
    for number in 0..MEETINGS {
        let (id, refund) = (format!("in_{number}"), format!("re_{number}"));
        let mut paid = one.invoice(&id, 110);
        paid.content.original_transaction = Some(format!("sub_{number}"));
        let mut refunded = one.stripe_refund(&refund, &id, "-4");
        refunded.content.original_transaction = Some(format!("sub_{number}"));
        let web: Reporting<'_> = Box::pin(one.post_web_event(purchase(click, &id, "10")));
        let billed: Reporting<'_> = Box::pin(other.notify(paid));
        join_all(vec![web, billed]).await;
        let by_website = post(click, WebEventKind::Refund, &refund, "-4", Some(&id));
        let web: Reporting<'_> = Box::pin(one.post_web_event(by_website));
        let billed: Reporting<'_> = Box::pin(other.notify(refunded));
        join_all(vec![web, billed]).await;
    }
    let count = i64::try_from(MEETINGS).expect("a small number");
    let expected = (count, 0, count, count * 10, count * 4);
    assert_eq!(one.money().await, expected);
}

/// Concurrent reports of a website and Stripe count once.
pub async fn concurrent_reports_of_a_website_and_stripe_count_once(store: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    at_once(&one, &one, &click).await;
    assert_rebuild_changes_nothing(store).await;
}

/// Like [`concurrent_reports_of_a_website_and_stripe_count_once`], with two nodes on one database.
pub async fn nodes_at_once_count_once(store: &SharedStore, node: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    let other = one.through(node);
    at_once(&one, &other, &click).await;
    assert_rebuild_changes_nothing(store).await;
}
