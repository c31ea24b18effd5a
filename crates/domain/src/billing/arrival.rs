//! A notification as it arrives, and what it is kept as.

use super::money::Sign;
use super::{AHEAD_MAX, Chain, Meaning, Notification, Said, Standing, Subscriber, chain_of};
use crate::access::Environment;
use crate::app::{AppSecret, BillingProvider};
use crate::device::DeviceKey;
use crate::erasure::goes_on_erased;
use crate::exchange::Exchanged;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::{EARLIEST_EVENT, Timestamp};
use std::time::Duration;

/// When something happened: when the provider says so, unless that is absurd.
pub fn happened_at(said: Option<Timestamp>, received_at: Timestamp) -> Timestamp {
    said.filter(|at| *at >= EARLIEST_EVENT && *at <= received_at.plus(AHEAD_MAX))
        .unwrap_or(received_at)
}

/// Which way the money of a notification goes, where it carries any.
const fn sign_of(meaning: &Meaning) -> Option<Sign> {
    match meaning {
        Meaning::TrialStart | Meaning::Free(_) | Meaning::Payment(_) => Some(Sign::In),
        Meaning::RefundReversed => Some(Sign::Again),
        Meaning::Refund => Some(Sign::Out),
        Meaning::Receipt | Meaning::Lifecycle(_) | Meaning::Transfer { .. } => None,
    }
}

/// What an arrival is under whose id a notification is kept already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The same notification once more.
    Duplicate,
    /// Another one, which uses the id a second time.
    Reused,
}

/// A notification that was authenticated, on its way into the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// For which app.
    pub app: AppId,
    /// From which provider.
    pub provider: BillingProvider,
    /// What it says.
    pub said: Said,
    /// The body, without personal data.
    pub body: String,
    /// When it arrived.
    pub received_at: Timestamp,
    /// How long the app holds trials; nothing when it does not.
    pub trial_hold: Option<Duration>,
    /// Whether the app holds back what suspicious installs do.
    pub holds_suspicious: bool,
}

impl Arrival {
    /// The subscription that it belongs to.
    pub fn chain(&self) -> Chain {
        Chain {
            app: self.app,
            environment: self.said.environment,
            provider: self.provider,
            name: chain_of(&self.said),
        }
    }

    /// The digest of its body, which tells it from another one of the same id.
    pub fn digest(&self) -> Digest {
        Digest::of(self.body.as_bytes())
    }

    /// Compares it with what is kept under its id. `kept` is the digest of that body.
    pub fn repeats(&self, kept: &[u8]) -> Repeat {
        if kept == self.digest().as_bytes() {
            Repeat::Duplicate
        } else {
            Repeat::Reused
        }
    }

    /// The store transaction whose event another source may report by its id. It is reserved before anything is decided.
    pub fn transaction(&self) -> Option<&str> {
        sign_of(&self.said.meaning)?;
        self.said.transaction.as_deref()
    }

    /// The device that it names, if it can make an event on it.
    pub fn device(&self) -> Option<&DeviceKey> {
        let device = self.said.subscriber.device.as_ref();
        device.filter(|_| self.said.meaning != Meaning::Receipt)
    }

    /// Whether it is of a subscription whose device was erased. `kept` is what is kept of the subscription.
    pub fn goes_on_erased(&self, kept: &[Notification]) -> bool {
        let at = happened_at(self.said.happened_at, self.received_at);
        goes_on_erased(kept, self.said.subscriber.device.as_ref(), at)
    }

    /// The same without who it is about, and without its body: one of a subscription whose device was erased.
    #[must_use]
    pub fn without_subscriber(&self) -> Self {
        let mut arrival = self.clone();
        arrival.said.subscriber = Subscriber::default();
        arrival
    }

    /// The amount, the currency and the day to ask a rate for, where it carries money without dollars.
    pub fn exchange_day(&self) -> Option<(Amount, Currency, Day)> {
        sign_of(&self.said.meaning)?;
        let at = happened_at(self.said.happened_at, self.received_at);
        self.said.price.exchange_day(at)
    }
}

impl Notification {
    /// An arrival as it is kept, before anything is decided about it. One with an impossible date is kept as a receipt:
    /// it makes no event, and its money is in no day's figures.
    pub fn arrived(arrival: &Arrival, exchanged: Option<Exchanged>) -> Self {
        let mut said = arrival.said.clone();
        let is_impossible = said.happened_at.is_some_and(|at| at < EARLIEST_EVENT);
        if is_impossible {
            said.meaning = Meaning::Receipt;
        }
        let happened_at = happened_at(said.happened_at, arrival.received_at);
        let event = event_id(arrival.app, arrival.provider, &said, happened_at);
        let money = sign_of(&said.meaning).and_then(|sign| said.price.judged(sign, exchanged));
        if said.meaning == Meaning::Receipt {
            // It is joined to nothing, so no key would lead to it when its person is erased.
            said.subscriber = Subscriber::default();
        }
        Self {
            app: arrival.app,
            provider: arrival.provider,
            event,
            said,
            happened_at,
            received_at: arrival.received_at,
            money,
            join: None,
            standing: Standing::default(),
        }
    }

    /// Returns when the trial that it starts is due, if the app holds trials. Test trials are not held, because no network receives them.
    pub fn trial_due(&self, hold: Option<Duration>) -> Option<Timestamp> {
        let starts =
            self.said.meaning == Meaning::TrialStart && self.said.environment == Environment::Live;
        hold.filter(|_| starts)
            .map(|hold| self.received_at.plus(hold))
    }

    /// Returns the secret to mark as set. Apple needs no secret from us, so its first live notification marks the App
    /// Store as connected.
    pub fn connects(&self) -> Option<AppSecret> {
        let connects = self.provider == BillingProvider::Appstore
            && self.said.environment == Environment::Live;
        connects.then_some(AppSecret::Billing(self.provider))
    }
}

/// Returns the id of the event that a notification makes. It is derived, so that it does not depend on the arrival, and
/// for a transaction it is derived from that, so that a payment that is reported twice keeps its id at the networks.
fn event_id(app: AppId, provider: BillingProvider, said: &Said, at: Timestamp) -> EventId {
    let (kind, id) = match (&said.meaning, &said.transaction) {
        (Meaning::Payment(_), Some(transaction)) => ("payment", transaction),
        (Meaning::Refund, Some(transaction)) => ("refund", transaction),
        _ => ("notification", &said.given_id),
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
    use crate::billing::Claim;
    use crate::billing::samples::{at, device, notification, person};
    use crate::device::AdvertisingId;
    use rstest::rstest;

    fn arrival(meaning: Meaning) -> Arrival {
        let one = notification(1, meaning);
        Arrival {
            app: one.app,
            provider: one.provider,
            said: Said {
                happened_at: None,
                ..one.said
            },
            body: "{}".to_owned(),
            received_at: at(2),
            trial_hold: None,
            holds_suspicious: false,
        }
    }

    #[rstest]
    #[case::what_makes_no_event(Meaning::Receipt, false)]
    #[case::what_makes_one(Meaning::TrialStart, true)]
    fn who_it_is_about_is_kept_where_it_is_needed(#[case] meaning: Meaning, #[case] kept: bool) {
        let who = Subscriber {
            device: Some(device("d")),
            people: vec![person("p")],
            advertising: vec![AdvertisingId::stored("a".to_owned())],
        };
        let mut arrival = arrival(meaning);
        arrival.said.subscriber = who.clone();
        assert_eq!(arrival.device().is_some(), kept);
        let arrived = Notification::arrived(&arrival, None).said.subscriber;
        assert_eq!(arrived, if kept { who } else { Subscriber::default() });
    }

    #[rstest]
    #[case::a_trial(Meaning::TrialStart, Environment::Live, true)]
    #[case::a_test(Meaning::TrialStart, Environment::Test, false)]
    #[case::a_payment(Meaning::Payment(Claim::Start), Environment::Live, false)]
    fn live_trials_are_held(
        #[case] meaning: Meaning,
        #[case] environment: Environment,
        #[case] held: bool,
    ) {
        let hold = Duration::from_hours(1);
        let mut arrival = arrival(meaning);
        arrival.said.environment = environment;
        let one = Notification::arrived(&arrival, None);
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
        let mut arrival = arrival(Meaning::TrialStart);
        arrival.provider = provider;
        arrival.said.environment = environment;
        let one = Notification::arrived(&arrival, None);
        assert_eq!(
            one.connects(),
            connects.then_some(AppSecret::Billing(provider))
        );
    }

    #[test]
    fn an_id_is_used_for_one_body() {
        let arrival = arrival(Meaning::TrialStart);
        let kept = Digest::of(b"{}");
        assert_eq!(arrival.repeats(kept.as_bytes()), Repeat::Duplicate);
        let other = Digest::of(b"{\"a\":1}");
        assert_eq!(arrival.repeats(other.as_bytes()), Repeat::Reused);
    }

    #[rstest]
    #[case::a_payment(Meaning::Payment(Claim::Start), true)]
    #[case::a_refund(Meaning::Refund, true)]
    #[case::a_receipt(Meaning::Receipt, false)]
    #[case::a_cancellation(Meaning::Lifecycle("cancellation".to_owned()), false)]
    fn transactions_of_money_are_reserved(#[case] meaning: Meaning, #[case] reserved: bool) {
        let mut arrival = arrival(meaning);
        arrival.said.transaction = Some("t".to_owned());
        assert_eq!(arrival.transaction().is_some(), reserved);
    }
}
