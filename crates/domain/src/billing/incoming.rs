//! Incoming notifications and their stored form.

use super::money::MoneyFlow;
use super::{
    Chain, FUTURE_SKEW_MAX, Notification, NotificationMeaning, ProviderNotification,
    SettledNotification, Subscriber, chain_of, payment, transaction_key,
};
use crate::access::Environment;
use crate::app::{AppSecret, BillingProvider};
use crate::device::DeviceKey;
use crate::erasure::continues_erased_subscription;
use crate::exchange::ConvertedAmount;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::{EARLIEST_EVENT, Timestamp};
use std::time::Duration;

/// Returns the event time that the provider reported. Falls back to the arrival time if the
/// reported time is missing or implausible.
pub fn happened_at(reported: Option<Timestamp>, received_at: Timestamp) -> Timestamp {
    reported
        .filter(|at| *at >= EARLIEST_EVENT && *at <= received_at.plus(FUTURE_SKEW_MAX))
        .unwrap_or(received_at)
}

/// Returns the direction in which money flows; `None` if the notification is not about money.
const fn money_flow(meaning: &NotificationMeaning) -> Option<MoneyFlow> {
    match meaning {
        NotificationMeaning::TrialStart
        | NotificationMeaning::Free(_)
        | NotificationMeaning::Payment(_) => Some(MoneyFlow::In),
        NotificationMeaning::RefundReversed => Some(MoneyFlow::RefundReversed),
        NotificationMeaning::Refund => Some(MoneyFlow::Out),
        NotificationMeaning::Receipt
        | NotificationMeaning::Lifecycle(_)
        | NotificationMeaning::Transfer { .. } => None,
    }
}

/// How a notification relates to a stored one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatKind {
    /// A repeat of the same notification.
    Duplicate,
    /// Another notification that reuses the id.
    Reused,
}

/// An authenticated notification that is not stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingNotification {
    /// App id.
    pub app: AppId,
    /// Billing provider.
    pub provider: BillingProvider,
    /// Parsed content.
    pub content: ProviderNotification,
    /// Body without personal data.
    pub body: String,
    /// Arrival time.
    pub received_at: Timestamp,
    /// How long the app holds trials; `None` if it does not.
    pub trial_hold: Option<Duration>,
}

impl IncomingNotification {
    /// Returns the subscription that the notification belongs to.
    pub fn chain(&self) -> Chain {
        Chain {
            app: self.app,
            environment: self.content.environment,
            provider: self.provider,
            name: chain_of(&self.content),
        }
    }

    /// Returns the keys of other subscriptions that report the same payment.
    pub fn payment_keys(&self) -> Vec<String> {
        payment::shared_ids(&self.content)
            .map(transaction_key)
            .collect()
    }

    /// Returns the digest of the body, which distinguishes notifications with the same id.
    pub fn digest(&self) -> Digest {
        Digest::of(self.body.as_bytes())
    }

    /// Compares the notification with a stored one with the same id, given the digest of the stored
    /// body.
    pub fn compare_with_stored(&self, stored: &[u8]) -> RepeatKind {
        if stored == self.digest().as_bytes() {
            RepeatKind::Duplicate
        } else {
            RepeatKind::Reused
        }
    }

    /// Returns the store transactions that another source may report. Their ids are reserved before
    /// the notification is settled. A payment that Stripe took has several.
    pub fn transactions(&self) -> impl Iterator<Item = &str> {
        let transaction = self.content.transaction.as_deref();
        let has_money = money_flow(&self.content.meaning).is_some();
        let transaction = transaction.filter(|_| has_money).into_iter();
        transaction.chain(payment::shared_payment_ids(&self.content))
    }

    /// Returns the device that the notification names, if the notification can cause an event.
    pub fn device(&self) -> Option<&DeviceKey> {
        let device = self.content.subscriber.device.as_ref();
        device.filter(|_| self.content.meaning != NotificationMeaning::Receipt)
    }

    /// Returns whether the notification belongs to a subscription whose device was erased, given
    /// the subscription's stored notifications.
    pub fn continues_erased_subscription(&self, stored: &[Notification]) -> bool {
        let at = happened_at(self.content.happened_at, self.received_at);
        continues_erased_subscription(stored, self.content.subscriber.device.as_ref(), at)
    }

    /// Returns a copy without the subscriber, for a subscription whose device was erased.
    #[must_use]
    pub fn without_subscriber(&self) -> Self {
        let mut incoming = self.clone();
        incoming.content.subscriber = Subscriber::default();
        incoming
    }

    /// Returns the amount, currency and day for the exchange rate, if the price has no amount in
    /// USD.
    pub fn exchange_day(&self) -> Option<(Amount, Currency, Day)> {
        money_flow(&self.content.meaning)?;
        let at = happened_at(self.content.happened_at, self.received_at);
        self.content.price.exchange_day(at)
    }
}

impl Notification {
    /// Builds the stored form, before the notification is settled. A notification with an
    /// impossible date is stored as a receipt, so that it causes no event and no revenue.
    pub fn from_incoming(
        incoming: &IncomingNotification,
        exchanged: Option<ConvertedAmount>,
    ) -> Self {
        let mut content = incoming.content.clone();
        let is_impossible = content.happened_at.is_some_and(|at| at < EARLIEST_EVENT);
        if is_impossible {
            content.meaning = NotificationMeaning::Receipt;
        }
        let happened_at = happened_at(content.happened_at, incoming.received_at);
        let event = event_id(incoming.app, incoming.provider, &content, happened_at);
        let money =
            money_flow(&content.meaning).and_then(|flow| content.price.to_revenue(flow, exchanged));
        if content.meaning == NotificationMeaning::Receipt {
            // A receipt is not joined to a device, so an erasure could not find its subscriber.
            content.subscriber = Subscriber::default();
        }
        Self {
            app: incoming.app,
            provider: incoming.provider,
            event,
            content,
            happened_at,
            received_at: incoming.received_at,
            money,
            join: None,
            settled: SettledNotification::default(),
        }
    }

    /// Returns when the trial that this notification starts is due, if the app holds trials. Test
    /// trials are not held, because no network receives them.
    pub fn trial_due(&self, hold: Option<Duration>) -> Option<Timestamp> {
        let starts = self.content.meaning == NotificationMeaning::TrialStart
            && self.content.environment == Environment::Live;
        hold.filter(|_| starts)
            .map(|hold| self.received_at.plus(hold))
    }

    /// Returns the secret to mark as set. The App Store requires no secret, so its first live
    /// notification marks it as connected.
    pub fn connected_secret(&self) -> Option<AppSecret> {
        let connects = self.provider == BillingProvider::Appstore
            && self.content.environment == Environment::Live;
        connects.then_some(AppSecret::Billing(self.provider))
    }
}

/// Derives the id of a notification's event, so that the id does not depend on the order of
/// arrival. For a payment or refund with a transaction, the id is derived from the transaction. A
/// payment that is reported twice therefore has the same id at the networks.
fn event_id(
    app: AppId,
    provider: BillingProvider,
    content: &ProviderNotification,
    at: Timestamp,
) -> EventId {
    let (kind, id) = match (&content.meaning, &content.transaction) {
        (NotificationMeaning::Payment(_), Some(transaction)) => ("payment", transaction),
        (NotificationMeaning::Refund, Some(transaction)) => {
            ("refund", content.refund.as_ref().unwrap_or(transaction))
        }
        _ => ("notification", &content.external_id),
    };
    let environment = content.environment.as_str();
    let chain = chain_of(content);
    let mut text = app.as_bytes().to_vec();
    for part in [environment, provider.as_str(), &chain, kind, id] {
        text.extend_from_slice(&part.len().to_be_bytes());
        text.extend_from_slice(part.as_bytes());
    }
    let mut random = [0; 10];
    random.copy_from_slice(&Digest::of(&text).as_bytes()[..10]);
    EventId::new(at, random)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::billing::PaymentClaim;
    use crate::billing::samples::{at, device, notification, person};
    use crate::device::AdvertisingId;
    use rstest::rstest;
    use std::collections::BTreeSet;

    fn incoming(meaning: NotificationMeaning) -> IncomingNotification {
        let one = notification(1, meaning);
        IncomingNotification {
            app: one.app,
            provider: one.provider,
            content: ProviderNotification {
                happened_at: None,
                ..one.content
            },
            body: "{}".to_owned(),
            received_at: at(2),
            trial_hold: None,
        }
    }

    #[rstest]
    #[case::no_event(NotificationMeaning::Receipt, false)]
    #[case::an_event(NotificationMeaning::TrialStart, true)]
    fn stores_the_subscriber_only_of_an_event(
        #[case] meaning: NotificationMeaning,
        #[case] stored: bool,
    ) {
        let subscriber = Subscriber {
            device: Some(device("d")),
            people: vec![person("p")],
            advertising: vec![AdvertisingId::stored("a".to_owned())],
        };
        let mut incoming = incoming(meaning);
        incoming.content.subscriber = subscriber.clone();
        assert_eq!(incoming.device().is_some(), stored);
        let stored_subscriber = Notification::from_incoming(&incoming, None)
            .content
            .subscriber;
        assert_eq!(
            stored_subscriber,
            if stored {
                subscriber
            } else {
                Subscriber::default()
            }
        );
    }

    #[rstest]
    #[case::a_trial(NotificationMeaning::TrialStart, Environment::Live, true)]
    #[case::a_test(NotificationMeaning::TrialStart, Environment::Test, false)]
    #[case::a_payment(
        NotificationMeaning::Payment(PaymentClaim::Start),
        Environment::Live,
        false
    )]
    fn holds_live_trials(
        #[case] meaning: NotificationMeaning,
        #[case] environment: Environment,
        #[case] held: bool,
    ) {
        let hold = Duration::from_hours(1);
        let mut incoming = incoming(meaning);
        incoming.content.environment = environment;
        let one = Notification::from_incoming(&incoming, None);
        assert_eq!(one.trial_due(Some(hold)), held.then(|| at(2).plus(hold)));
        assert_eq!(one.trial_due(None), None, "the app does not hold trials");
    }

    #[rstest]
    #[case::the_store(BillingProvider::Appstore, Environment::Live, true)]
    #[case::its_sandbox(BillingProvider::Appstore, Environment::Test, false)]
    #[case::one_with_a_secret(BillingProvider::Revenuecat, Environment::Live, false)]
    fn a_live_notification_connects_the_app_store(
        #[case] provider: BillingProvider,
        #[case] environment: Environment,
        #[case] connects: bool,
    ) {
        let mut incoming = incoming(NotificationMeaning::TrialStart);
        incoming.provider = provider;
        incoming.content.environment = environment;
        let one = Notification::from_incoming(&incoming, None);
        assert_eq!(
            one.connected_secret(),
            connects.then_some(AppSecret::Billing(provider))
        );
    }

    #[test]
    fn tells_duplicates_from_reused_ids() {
        let incoming = incoming(NotificationMeaning::TrialStart);
        let stored = Digest::of(b"{}");
        assert_eq!(
            incoming.compare_with_stored(stored.as_bytes()),
            RepeatKind::Duplicate
        );
        let other = Digest::of(b"{\"a\":1}");
        assert_eq!(
            incoming.compare_with_stored(other.as_bytes()),
            RepeatKind::Reused
        );
    }

    #[rstest]
    #[case::a_payment(NotificationMeaning::Payment(PaymentClaim::Start), true)]
    #[case::a_refund(NotificationMeaning::Refund, true)]
    #[case::a_receipt(NotificationMeaning::Receipt, false)]
    #[case::a_cancellation(NotificationMeaning::Lifecycle("cancellation".to_owned()), false)]
    fn reserves_transactions_with_money(
        #[case] meaning: NotificationMeaning,
        #[case] reserved: bool,
    ) {
        let mut incoming = incoming(meaning);
        incoming.content.transaction = Some("t".to_owned());
        assert_eq!(incoming.transactions().count(), usize::from(reserved));
        incoming.content.store = Some("STRIPE".to_owned());
        incoming.content.other_transactions = vec!["u".to_owned()];
        let ids: BTreeSet<&str> = incoming.transactions().collect();
        assert_eq!(ids, BTreeSet::from(["t", "u"]));
    }
}
