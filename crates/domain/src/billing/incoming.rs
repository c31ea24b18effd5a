//! A notification as it arrives, and what it is kept as.

use super::money::MoneyFlow;
use super::{
    Chain, FUTURE_SKEW_MAX, Notification, NotificationMeaning, ProviderNotification,
    SettledNotification, Subscriber, chain_of,
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

/// When something happened: when the provider says so, unless that is absurd.
pub fn happened_at(said: Option<Timestamp>, received_at: Timestamp) -> Timestamp {
    said.filter(|at| *at >= EARLIEST_EVENT && *at <= received_at.plus(FUTURE_SKEW_MAX))
        .unwrap_or(received_at)
}

/// Which way the money of a notification goes, where it carries any.
const fn sign_of(meaning: &NotificationMeaning) -> Option<MoneyFlow> {
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

/// What an arrival is under whose id a notification is kept already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatKind {
    /// The same notification once more.
    Duplicate,
    /// Another one, which uses the id a second time.
    Reused,
}

/// A notification that was authenticated, on its way into the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingNotification {
    /// For which app.
    pub app: AppId,
    /// From which provider.
    pub provider: BillingProvider,
    /// What it says.
    pub content: ProviderNotification,
    /// The body, without personal data.
    pub body: String,
    /// When it arrived.
    pub received_at: Timestamp,
    /// How long the app holds trials; nothing when it does not.
    pub trial_hold: Option<Duration>,
    /// Whether the app holds back what suspicious installs do.
    pub holds_suspicious: bool,
}

impl IncomingNotification {
    /// The subscription that it belongs to.
    pub fn chain(&self) -> Chain {
        Chain {
            app: self.app,
            environment: self.content.environment,
            provider: self.provider,
            name: chain_of(&self.content),
        }
    }

    /// The digest of its body, which tells it from another one of the same id.
    pub fn digest(&self) -> Digest {
        Digest::of(self.body.as_bytes())
    }

    /// Compares it with what is kept under its id. `kept` is the digest of that body.
    pub fn compare_with_stored(&self, kept: &[u8]) -> RepeatKind {
        if kept == self.digest().as_bytes() {
            RepeatKind::Duplicate
        } else {
            RepeatKind::Reused
        }
    }

    /// The store transaction whose event another source may report by its id. It is reserved before anything is decided.
    pub fn transaction(&self) -> Option<&str> {
        sign_of(&self.content.meaning)?;
        self.content.transaction.as_deref()
    }

    /// The device that it names, if it can make an event on it.
    pub fn device(&self) -> Option<&DeviceKey> {
        let device = self.content.subscriber.device.as_ref();
        device.filter(|_| self.content.meaning != NotificationMeaning::Receipt)
    }

    /// Whether it is of a subscription whose device was erased. `kept` is what is kept of the subscription.
    pub fn continues_erased_subscription(&self, kept: &[Notification]) -> bool {
        let at = happened_at(self.content.happened_at, self.received_at);
        continues_erased_subscription(kept, self.content.subscriber.device.as_ref(), at)
    }

    /// The same without who it is about, and without its body: one of a subscription whose device was erased.
    #[must_use]
    pub fn without_subscriber(&self) -> Self {
        let mut arrival = self.clone();
        arrival.content.subscriber = Subscriber::default();
        arrival
    }

    /// The amount, the currency and the day to ask a rate for, where it carries money without dollars.
    pub fn exchange_day(&self) -> Option<(Amount, Currency, Day)> {
        sign_of(&self.content.meaning)?;
        let at = happened_at(self.content.happened_at, self.received_at);
        self.content.price.exchange_day(at)
    }
}

impl Notification {
    /// An arrival as it is kept, before anything is decided about it. One with an impossible date is kept as a receipt:
    /// it makes no event, and its money is in no day's figures.
    pub fn from_incoming(
        arrival: &IncomingNotification,
        exchanged: Option<ConvertedAmount>,
    ) -> Self {
        let mut said = arrival.content.clone();
        let is_impossible = said.happened_at.is_some_and(|at| at < EARLIEST_EVENT);
        if is_impossible {
            said.meaning = NotificationMeaning::Receipt;
        }
        let happened_at = happened_at(said.happened_at, arrival.received_at);
        let event = event_id(arrival.app, arrival.provider, &said, happened_at);
        let money = sign_of(&said.meaning).and_then(|sign| said.price.to_revenue(sign, exchanged));
        if said.meaning == NotificationMeaning::Receipt {
            // It is joined to nothing, so no key would lead to it when its person is erased.
            said.subscriber = Subscriber::default();
        }
        Self {
            app: arrival.app,
            provider: arrival.provider,
            event,
            content: said,
            happened_at,
            received_at: arrival.received_at,
            money,
            join: None,
            settled: SettledNotification::default(),
        }
    }

    /// Returns when the trial that it starts is due, if the app holds trials. Test trials are not held, because no network receives them.
    pub fn trial_due(&self, hold: Option<Duration>) -> Option<Timestamp> {
        let starts = self.content.meaning == NotificationMeaning::TrialStart
            && self.content.environment == Environment::Live;
        hold.filter(|_| starts)
            .map(|hold| self.received_at.plus(hold))
    }

    /// Returns the secret to mark as set. Apple needs no secret from us, so its first live notification marks the App
    /// Store as connected.
    pub fn connected_secret(&self) -> Option<AppSecret> {
        let connects = self.provider == BillingProvider::Appstore
            && self.content.environment == Environment::Live;
        connects.then_some(AppSecret::Billing(self.provider))
    }
}

/// Returns the id of the event that a notification makes. It is derived, so that it does not depend on the arrival, and
/// for a transaction it is derived from that, so that a payment that is reported twice keeps its id at the networks.
fn event_id(
    app: AppId,
    provider: BillingProvider,
    said: &ProviderNotification,
    at: Timestamp,
) -> EventId {
    let (kind, id) = match (&said.meaning, &said.transaction) {
        (NotificationMeaning::Payment(_), Some(transaction)) => ("payment", transaction),
        (NotificationMeaning::Refund, Some(transaction)) => ("refund", transaction),
        _ => ("notification", &said.external_id),
    };
    let environment = said.environment.as_str();
    let chain = chain_of(said);
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

    fn arrival(meaning: NotificationMeaning) -> IncomingNotification {
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
            holds_suspicious: false,
        }
    }

    #[rstest]
    #[case::what_makes_no_event(NotificationMeaning::Receipt, false)]
    #[case::what_makes_one(NotificationMeaning::TrialStart, true)]
    fn who_it_is_about_is_kept_where_it_is_needed(
        #[case] meaning: NotificationMeaning,
        #[case] kept: bool,
    ) {
        let who = Subscriber {
            device: Some(device("d")),
            people: vec![person("p")],
            advertising: vec![AdvertisingId::stored("a".to_owned())],
        };
        let mut arrival = arrival(meaning);
        arrival.content.subscriber = who.clone();
        assert_eq!(arrival.device().is_some(), kept);
        let arrived = Notification::from_incoming(&arrival, None)
            .content
            .subscriber;
        assert_eq!(arrived, if kept { who } else { Subscriber::default() });
    }

    #[rstest]
    #[case::a_trial(NotificationMeaning::TrialStart, Environment::Live, true)]
    #[case::a_test(NotificationMeaning::TrialStart, Environment::Test, false)]
    #[case::a_payment(
        NotificationMeaning::Payment(PaymentClaim::Start),
        Environment::Live,
        false
    )]
    fn live_trials_are_held(
        #[case] meaning: NotificationMeaning,
        #[case] environment: Environment,
        #[case] held: bool,
    ) {
        let hold = Duration::from_hours(1);
        let mut arrival = arrival(meaning);
        arrival.content.environment = environment;
        let one = Notification::from_incoming(&arrival, None);
        assert_eq!(one.trial_due(Some(hold)), held.then(|| at(2).plus(hold)));
        assert_eq!(one.trial_due(None), None, "the app holds none");
    }

    #[rstest]
    #[case::the_store(BillingProvider::Appstore, Environment::Live, true)]
    #[case::its_sandbox(BillingProvider::Appstore, Environment::Test, false)]
    #[case::one_with_a_secret(BillingProvider::Revenuecat, Environment::Live, false)]
    fn the_app_store_connects_itself(
        #[case] provider: BillingProvider,
        #[case] environment: Environment,
        #[case] connects: bool,
    ) {
        let mut arrival = arrival(NotificationMeaning::TrialStart);
        arrival.provider = provider;
        arrival.content.environment = environment;
        let one = Notification::from_incoming(&arrival, None);
        assert_eq!(
            one.connected_secret(),
            connects.then_some(AppSecret::Billing(provider))
        );
    }

    #[test]
    fn an_id_is_used_for_one_body() {
        let arrival = arrival(NotificationMeaning::TrialStart);
        let kept = Digest::of(b"{}");
        assert_eq!(
            arrival.compare_with_stored(kept.as_bytes()),
            RepeatKind::Duplicate
        );
        let other = Digest::of(b"{\"a\":1}");
        assert_eq!(
            arrival.compare_with_stored(other.as_bytes()),
            RepeatKind::Reused
        );
    }

    #[rstest]
    #[case::a_payment(NotificationMeaning::Payment(PaymentClaim::Start), true)]
    #[case::a_refund(NotificationMeaning::Refund, true)]
    #[case::a_receipt(NotificationMeaning::Receipt, false)]
    #[case::a_cancellation(NotificationMeaning::Lifecycle("cancellation".to_owned()), false)]
    fn transactions_of_money_are_reserved(
        #[case] meaning: NotificationMeaning,
        #[case] reserved: bool,
    ) {
        let mut arrival = arrival(meaning);
        arrival.content.transaction = Some("t".to_owned());
        assert_eq!(arrival.transaction().is_some(), reserved);
    }
}
