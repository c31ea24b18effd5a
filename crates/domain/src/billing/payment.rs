//! Payments that are reported under several ids, or by several providers.
//!
//! Stripe gives one payment several ids: an invoice, a payment intent and a charge. A refund names
//! the charge, a subscription's payment names the invoice, and only some notifications name two of
//! them. Another provider that reports Stripe's payments names one. All notifications that are
//! connected by such ids belong together, in whatever order they arrive. A website's event whose id
//! is one of them reports the same payment.

use super::source::PaymentStore;
use super::{Notification, ProviderNotification, chain_key, transaction_key};
use crate::event::Event;
use crate::vocabulary::id::EventId;
use crate::vocabulary::money::Amount;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the ids that connect subscriptions of all providers: those of the payment and the
/// subscription, if Stripe took the payment. Other stores give a payment one id, within one
/// subscription.
pub(super) fn shared_ids(content: &ProviderNotification) -> impl Iterator<Item = &str> {
    let subscription = content.original_transaction.as_deref();
    shared_payment_ids(content).chain(subscription.filter(|_| is_shared(content)))
}

/// Returns the ids of a payment that Stripe took. A website may report the payment under each of
/// them.
pub(super) fn shared_payment_ids(content: &ProviderNotification) -> impl Iterator<Item = &str> {
    let is_shared = is_shared(content);
    payment_ids(content).filter(move |_| is_shared)
}

fn is_shared(content: &ProviderNotification) -> bool {
    let store = content.store.as_deref();
    store.is_some_and(|store| PaymentStore::named(store) == PaymentStore::Stripe)
}

fn payment_ids(content: &ProviderNotification) -> impl Iterator<Item = &str> {
    let ids = content
        .transaction
        .iter()
        .chain(&content.other_transactions);
    ids.map(String::as_str)
}

/// A website's event for a payment that Stripe took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebPayment {
    /// The website's id of the event: one of the payment's ids.
    pub external_id: String,
    /// The event.
    pub event: Event,
    /// Sum of the refunds that the website reported; not negative.
    pub refunded: Amount,
}

/// The website's event for a payment.
#[derive(Debug, Clone, Copy)]
pub(super) struct WebReport<'a> {
    pub(super) id: EventId,
    /// `None` if retention removed the event.
    pub(super) payment: Option<&'a WebPayment>,
}

/// Which of a set of notifications are about the same payment, and about the same subscription.
#[derive(Debug, Default)]
pub(super) struct SharedPayments<'a> {
    payments: IdGroups,
    subscriptions: IdGroups,
    /// The website's events by their payments' ids.
    web: BTreeMap<String, WebReport<'a>>,
}

impl<'a> SharedPayments<'a> {
    pub(super) fn of(notifications: &[&Notification], web_payments: &'a [WebPayment]) -> Self {
        let mut shared = Self::default();
        for one in notifications {
            let chain = chain_key(one.provider, &one.chain());
            for id in shared_ids(&one.content) {
                shared.subscriptions.join(&chain, &transaction_key(id));
            }
            let ids: Vec<&str> = payment_ids(&one.content).collect();
            for pair in ids.windows(2) {
                shared.payments.join(pair[0], pair[1]);
            }
        }
        let mut web = BTreeMap::new();
        for payment in web_payments {
            let report = WebReport {
                id: payment.event.id,
                payment: Some(payment),
            };
            shared.add_report(&mut web, &payment.external_id, report);
        }
        let stored: BTreeSet<EventId> = web_payments.iter().map(|web| web.event.id).collect();
        for one in notifications {
            let removed = one.settled.web_payment;
            let removed = removed.filter(|id| !stored.contains(id));
            if let (Some(id), Some(transaction)) = (removed, one.content.transaction.as_deref()) {
                shared.add_report(&mut web, transaction, WebReport { id, payment: None });
            }
        }
        shared.web = web;
        shared
    }

    /// Adds the website's event for a payment. Of several, the earliest event is used, and a stored
    /// one before one that was removed.
    fn add_report(
        &self,
        web: &mut BTreeMap<String, WebReport<'a>>,
        payment_id: &str,
        report: WebReport<'a>,
    ) {
        let payment = self.payments.first(payment_id).to_owned();
        let found = web.entry(payment).or_insert(report);
        let rank = |report: &WebReport<'_>| (report.payment.is_none(), report.id);
        if rank(&report) < rank(found) {
            *found = report;
        }
    }

    /// Returns the website's event for a notification's payment.
    pub(super) fn web_report(&self, one: &Notification) -> Option<WebReport<'a>> {
        let payment = self.payment(one).filter(|_| is_shared(&one.content))?;
        self.web.get(payment).copied()
    }

    /// Returns the id of a notification's payment, the same in all notifications about it.
    pub(super) fn payment<'s>(&'s self, one: &'s Notification) -> Option<&'s str> {
        let transaction = one.content.transaction.as_deref()?;
        Some(self.payments.first(transaction))
    }

    /// Returns the id of the payment that has this id.
    pub(super) fn payment_of_id<'s>(&'s self, id: &'s str) -> &'s str {
        self.payments.first(id)
    }

    /// Returns the key of a notification's subscription, the same in all notifications about it.
    pub(super) fn subscription(&self, one: &Notification) -> String {
        let chain = chain_key(one.provider, &one.chain());
        self.subscriptions.first(&chain).to_owned()
    }
}

/// Groups of texts. Each text leads to a smaller one of its group, and so to the group's first one,
/// regardless of the order in which the texts were joined.
#[derive(Debug, Default)]
struct IdGroups(BTreeMap<String, String>);

impl IdGroups {
    fn first<'a>(&'a self, text: &'a str) -> &'a str {
        let mut first = text;
        while let Some(smaller) = self.0.get(first) {
            first = smaller;
        }
        first
    }

    fn join(&mut self, one: &str, other: &str) {
        let mut firsts = [self.first(one).to_owned(), self.first(other).to_owned()];
        firsts.sort_unstable();
        let [first, second] = firsts;
        if first != second {
            self.0.insert(second, first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{money, notification};
    use super::*;
    use crate::app::BillingProvider;
    use crate::billing::{NotificationMeaning, PaymentClaim};
    use proptest::prelude::*;

    fn of_stripe(transaction: &str, others: &[&str], subscription: Option<&str>) -> Notification {
        let meaning = NotificationMeaning::Payment(PaymentClaim::Start);
        let mut one = money(1, meaning, transaction, "1");
        one.provider = BillingProvider::Stripe;
        one.content.store = Some("STRIPE".to_owned());
        one.content.other_transactions = others.iter().map(|id| (*id).to_owned()).collect();
        one.content.original_transaction = subscription.map(str::to_owned);
        one
    }

    fn all() -> Vec<Notification> {
        let mut other_provider = of_stripe("pi_1", &[], Some("rc-sub"));
        other_provider.provider = BillingProvider::Revenuecat;
        vec![
            of_stripe("in_1", &[], Some("sub_1")),
            of_stripe("in_1", &["pi_1"], None),
            of_stripe("pi_1", &["ch_1"], None),
            of_stripe("ch_1", &[], None),
            other_provider,
            of_stripe("in_2", &[], Some("sub_1")),
            of_stripe("pi_9", &["ch_9"], None),
        ]
    }

    proptest! {
        #[test]
        fn ids_connect_a_payment_in_any_order(
            order in Just((0..all().len()).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let all = all();
            let shuffled: Vec<&Notification> = order.iter().map(|place| &all[*place]).collect();
            let shared = SharedPayments::of(&shuffled, &[]);
            let payments: Vec<_> = all.iter().map(|one| shared.payment(one)).collect();
            prop_assert!(payments[..5].iter().all(|id| *id == Some("ch_1")), "{payments:?}");
            prop_assert_eq!(&payments[5..], &[Some("in_2"), Some("ch_9")]);
            let subscriptions: Vec<_> = all.iter().map(|one| shared.subscription(one)).collect();
            let first = &subscriptions[0];
            prop_assert!(subscriptions[..6].iter().all(|one| one == first), "{subscriptions:?}");
            prop_assert_ne!(&subscriptions[6], first);
        }
    }

    #[test]
    fn other_stores_share_no_ids() {
        let mut one = notification(1, NotificationMeaning::TrialStart);
        one.content.store = Some("APP_STORE".to_owned());
        one.content.transaction = Some("t".to_owned());
        assert_eq!(shared_ids(&one.content).count(), 0);
        one.content.store = Some("stripe".to_owned());
        let ids: Vec<&str> = shared_ids(&one.content).collect();
        assert_eq!(ids, ["t", "1000"]);
    }
}
