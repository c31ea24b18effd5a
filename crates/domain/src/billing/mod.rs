//! Billing: what subscription providers report, and what it comes to.
//!
//! A provider's notification is read into a [`Said`], which is the same for all providers. Notifications arrive late,
//! twice and in any order, so the order of arrival decides nothing: every notification is kept, [`connected::Search`]
//! gathers the subscriptions that concern each other, and [`settlement`] computes from the whole set what each
//! notification comes to. A store applies the difference to what it has.

pub mod certificate;
mod chain;
pub mod connected;
pub mod hold;
pub mod join;
pub mod money;
mod refund;
pub mod settlement;
pub mod signature;

#[cfg(test)]
pub(crate) mod samples;

use crate::access::Environment;
use crate::app::BillingProvider;
use crate::device::{AdvertisingId, DeviceKey, Platform, UserKey};
use crate::erasure::is_pseudonym;
use crate::event::duplicate::is_verifiable;
use crate::event::sdk::Owner;
use crate::event::{Event, EventSource};
use crate::ledger::Revenue;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::{EARLIEST_EVENT, Timestamp};
use join::Join;
use money::{Price, Sign};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a notification that nobody was found for waits for its device or person.
pub const JOINED_WITHIN: Duration = Duration::from_hours(30 * 24);
/// How far ahead of its arrival a notification's time may be. Stores charge ahead of a period; one that is further
/// ahead is a mistake, and counts as of its arrival.
pub const AHEAD_MAX: Duration = Duration::from_hours(48);
/// How long the secret before a new one stays valid, so that a provider can be told at leisure.
pub const PREVIOUS_SECRET_VALID: Duration = Duration::from_hours(24);
/// Notifications of one subscription that are settled together, the latest ones: ten years of weeks, and all that
/// happens in between.
pub const CHAIN_NOTIFICATIONS_MAX: usize = 2_000;
/// Ids of one person that are looked at. Providers keep every anonymous id that a person ever had.
pub const PERSON_IDS_MAX: usize = 50;

/// A free trial began.
pub const START_TRIAL: &str = "start_trial";
/// A trial is still alive after its hold.
pub const QUALIFIED_TRIAL: &str = "qualified_trial";
/// The first payment of a subscription without a trial, or something bought once.
pub const PURCHASE: &str = "purchase";
/// The first payment after a trial.
pub const SUBSCRIBE: &str = "subscribe";
/// Every later payment of a subscription.
pub const RENEWAL: &str = "renewal";
/// Money back.
pub const REFUND: &str = "refund";
/// A refund taken back.
pub const REFUND_REVERSED: &str = "refund_reversed";
/// Nothing will be renewed.
pub const CANCELLATION: &str = "cancellation";
/// A trial will not become a subscription.
pub const TRIAL_CANCELLED: &str = "trial_cancelled";
/// It will be renewed after all.
pub const UNCANCELLATION: &str = "uncancellation";
/// Access ended.
pub const EXPIRATION: &str = "expiration";
/// A charge failed.
pub const BILLING_ISSUE: &str = "billing_issue";
/// Another product was chosen.
pub const PRODUCT_CHANGE: &str = "product_change";

/// What a payment says about itself. Whether it is a person's first one is another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Something bought once: always an acquisition, and no payment of a subscription.
    OneOff,
    /// A subscription begins. Stores say so of upgrades and of people who come back, too.
    Start,
    /// A trial, or an offer, became a subscription.
    Conversion,
    /// One more period.
    Continuation,
    /// One more period, which is a conversion if the one before it was a trial.
    AfterTrial,
    /// Somebody came back.
    Return,
}

/// What a notification means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing that is an event of ours: it is kept, and that is all.
    Receipt,
    /// A free trial began.
    TrialStart,
    /// Somebody got something for nothing, by this name.
    Free(String),
    /// Money came in.
    Payment(Claim),
    /// Money went back.
    Refund,
    /// A refund was taken back.
    RefundReversed,
    /// Something happened to the subscription, by this name.
    Lifecycle(String),
    /// What some people had is others' now.
    Transfer {
        /// Whose it was.
        from: Vec<UserKey>,
        /// Whose it is.
        to: Vec<UserKey>,
    },
}

/// Who a notification is about, in the provider's words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscriber {
    /// The device, as the app told the provider.
    pub device: Option<DeviceKey>,
    /// Every id of the person, the present one first.
    pub people: Vec<UserKey>,
    /// Advertising ids.
    pub advertising: Vec<AdvertisingId>,
}

/// What a provider said, in words that all of them share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The provider's id of it.
    pub given_id: String,
    /// The provider's type, verbatim.
    pub kind: String,
    /// Live or test.
    pub environment: Environment,
    /// What it means.
    pub meaning: Meaning,
    /// Which store took the money.
    pub store: Option<String>,
    /// Which product.
    pub product: Option<String>,
    /// Which transaction.
    pub transaction: Option<String>,
    /// The first transaction of the subscription.
    pub original_transaction: Option<String>,
    /// Such as `TRIAL`, verbatim.
    pub period: Option<String>,
    /// Two letters.
    pub country: Option<String>,
    /// The money.
    pub price: Price,
    /// The tax in the price, as a share, in the provider's digits.
    pub tax: Option<String>,
    /// The store's part of the price, as a share, in the provider's digits.
    pub commission: Option<String>,
    /// When it happened, as far as the provider says.
    pub happened_at: Option<Timestamp>,
    /// Who it is about.
    pub subscriber: Subscriber,
}

/// Which way the money of a notification goes, where it carries any.
pub const fn sign_of(meaning: &Meaning) -> Option<Sign> {
    match meaning {
        Meaning::TrialStart | Meaning::Free(_) | Meaning::Payment(_) => Some(Sign::In),
        Meaning::RefundReversed => Some(Sign::Again),
        Meaning::Refund => Some(Sign::Out),
        Meaning::Receipt | Meaning::Lifecycle(_) | Meaning::Transfer { .. } => None,
    }
}

/// When something happened: when the provider says so, unless that is absurd.
pub fn happened_at(said: Option<Timestamp>, received_at: Timestamp) -> Timestamp {
    said.filter(|at| *at >= EARLIEST_EVENT && *at <= received_at.plus(AHEAD_MAX))
        .unwrap_or(received_at)
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

    /// The same without who it is about: one of a subscription whose device was erased.
    #[must_use]
    pub fn of_nobody(&self) -> Self {
        let mut arrival = self.clone();
        arrival.said.subscriber = Subscriber::default();
        arrival
    }
}

/// What a notification comes to, given everything else that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The event's name; nothing when it makes none.
    pub name: Option<String>,
    /// Why a payment is not the first, where that can be told.
    pub cause: Option<String>,
    /// Whose device it is.
    pub device: Option<DeviceKey>,
    /// The user of the device at that time, if the notification names none.
    pub user: Option<UserKey>,
    /// The money as it counts.
    pub revenue: Option<Revenue>,
}

/// A notification as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Of which app.
    pub app: AppId,
    /// From which provider.
    pub provider: BillingProvider,
    /// The id of its event.
    pub event: EventId,
    /// What it says.
    pub said: Said,
    /// When it happened.
    pub happened_at: Timestamp,
    /// When it arrived.
    pub received_at: Timestamp,
    /// Its money alone, as it was worth on its day.
    pub money: Option<Revenue>,
    /// Whose device it is by itself, without the rest of its subscription.
    pub join: Option<Join>,
    /// What it comes to.
    pub standing: Standing,
}

/// A subscription: the notifications of a provider that share an original transaction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chain {
    /// Of which app.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// From which provider.
    pub provider: BillingProvider,
    /// The original transaction, prefixed; see [`chain_of`].
    pub name: String,
}

impl Chain {
    /// The subscription of a notification.
    pub fn of(one: &Notification) -> Self {
        Self {
            app: one.app,
            environment: one.said.environment,
            provider: one.provider,
            name: one.chain(),
        }
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

impl Notification {
    /// An arrival as it is kept, before anything is decided about it. One with an impossible date is kept as a receipt:
    /// it makes no event, and its money is in no day's figures.
    pub fn arrived(arrival: &Arrival, money: Option<Revenue>) -> Self {
        let mut said = arrival.said.clone();
        let is_impossible = said.happened_at.is_some_and(|at| at < EARLIEST_EVENT);
        if is_impossible {
            said.meaning = Meaning::Receipt;
        }
        let happened_at = happened_at(said.happened_at, arrival.received_at);
        let event = event_id(arrival.app, arrival.provider, &said, happened_at);
        let money = money.filter(|_| !is_impossible);
        if said.meaning == Meaning::Receipt {
            // It is joined to nothing, and no key would lead to it when somebody is erased.
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

    /// The subscription that it belongs to; itself where nothing is said of one.
    pub fn chain(&self) -> String {
        chain_of(&self.said)
    }

    /// Whether it is for a period of a subscription, paid or not.
    pub fn is_period(&self) -> bool {
        matches!(self.said.meaning, Meaning::Payment(claim) if claim != Claim::OneOff)
    }

    /// Whether it is a payment of a subscription that came in: the kind that makes a later one no first.
    pub fn is_paid_period(&self) -> bool {
        self.is_period()
            && self
                .money
                .as_ref()
                .is_some_and(|money| money.amount > Amount::ZERO)
    }

    /// Everyone whom it names, also those of a transfer.
    pub fn people(&self) -> impl Iterator<Item = &UserKey> {
        let (from, to): (&[UserKey], &[UserKey]) = match &self.said.meaning {
            Meaning::Transfer { from, to } => (from, to),
            _ => (&[], &[]),
        };
        from.iter().chain(to).chain(&self.said.subscriber.people)
    }

    /// The transaction whose event another source may report by its id: that of an event that a verified source proves.
    pub fn verified_transaction(&self) -> Option<&str> {
        let name = self.standing.name.as_deref()?;
        let transaction = self.said.transaction.as_deref();
        transaction.filter(|_| is_verifiable(name))
    }

    /// The keys by which subscriptions are found that may concern each other.
    pub fn keys(&self) -> BTreeSet<String> {
        let who = &self.said.subscriber;
        let joined = self.join.as_ref().map(|join| &join.device);
        let devices = who.device.iter().chain(joined);
        self.people()
            .map(person_key)
            .chain(devices.map(device_key))
            .chain(who.advertising.iter().map(advertising_key))
            .collect()
    }
}

impl Notification {
    /// The event that it makes. Parameters are the store's business: they are JSON.
    pub fn event(&self, owner: &Owner, params: String) -> Option<Event> {
        let person = self.said.subscriber.people.first().cloned();
        // What the store calls a transaction leads to who made it.
        let is_erased = self.standing.device.as_ref().is_some_and(is_pseudonym);
        Some(Event {
            id: self.event,
            given_id: self.said.given_id.clone(),
            app: self.app,
            environment: self.said.environment,
            source: EventSource::Billing,
            name: self.standing.name.clone()?,
            original_name: None,
            occurred_at: self.happened_at,
            received_at: self.received_at,
            device: self.standing.device.clone(),
            user: person.or_else(|| self.standing.user.clone()),
            platform: owner
                .platform
                .or_else(|| platform(self.said.store.as_deref())),
            country: self.said.country.clone().or_else(|| owner.country.clone()),
            revenue: self.standing.revenue.clone(),
            credit: owner.credit.clone(),
            params: (!is_erased).then_some(params),
            // The store derives it when all events of the device are written.
            first_payment: false,
            own: false,
            duplicate_of: None,
            dedup_root: None,
            skipped: Vec::new(),
            website: None,
        })
    }
}

/// What something bought in a store runs on.
fn platform(store: Option<&str>) -> Option<Platform> {
    match store? {
        "APP_STORE" | "MAC_APP_STORE" => Some(Platform::Ios),
        "PLAY_STORE" => Some(Platform::Android),
        _ => None,
    }
}

/// The subscription that something said belongs to.
pub fn chain_of(said: &Said) -> String {
    let chain = said.original_transaction.as_ref();
    chain.or(said.transaction.as_ref()).map_or_else(
        || format!("alone:{}", said.given_id),
        |transaction| format!("sub:{transaction}"),
    )
}

/// The key of a subscription among those of a person.
pub fn chain_key(provider: BillingProvider, chain: &str) -> String {
    format!("chain:{}:{chain}", provider.as_str())
}

/// The key of a person's id.
pub fn person_key(person: &UserKey) -> String {
    format!("person:{}", person.as_str())
}

/// The key of a store transaction. It leads to the subscriptions whose notifications name it, and connects none.
pub fn transaction_key(transaction: &str) -> String {
    format!("transaction:{transaction}")
}

/// The key of an advertising id.
pub fn advertising_key(id: &AdvertisingId) -> String {
    format!("advertising:{}", id.as_str())
}

/// The key of a device.
pub fn device_key(device: &DeviceKey) -> String {
    format!("device:{}", device.as_str())
}

#[cfg(test)]
mod tests {
    use super::samples::{at, device, notification, person};
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::what_makes_no_event(Meaning::Receipt, false)]
    #[case::what_makes_one(Meaning::TrialStart, true)]
    fn who_it_is_about_is_kept_where_it_is_needed(#[case] meaning: Meaning, #[case] kept: bool) {
        let one = notification(1, meaning);
        let who = Subscriber {
            device: Some(device("d")),
            people: vec![person("p")],
            advertising: vec![AdvertisingId::stored("a".to_owned())],
        };
        let arrival = Arrival {
            app: one.app,
            provider: one.provider,
            said: Said {
                subscriber: who.clone(),
                happened_at: None,
                ..one.said
            },
            body: String::new(),
            received_at: at(2),
            trial_hold: None,
            holds_suspicious: false,
        };
        let arrived = Notification::arrived(&arrival, None).said.subscriber;
        assert_eq!(arrived, if kept { who } else { Subscriber::default() });
    }
}
