//! Billing: what subscription providers report, and what it comes to.
//!
//! A provider's notification is read into a [`Said`], which is the same for all providers. Notifications arrive late,
//! twice and in any order, so the order of arrival decides nothing: every notification is kept, [`connected::Search`]
//! gathers the subscriptions that concern each other, and [`settlement`] computes from the whole set what each
//! notification comes to. A store applies the difference to what it has.

pub mod certificate;
mod chain;
pub mod connected;
mod device_update;
mod event_change;
pub mod hold;
mod incoming;
pub mod join;
pub mod money;
mod person;
mod refund;
pub mod settlement;
pub mod signature;

#[cfg(test)]
pub(crate) mod samples;

pub use device_update::DeviceUpdate;
pub use event_change::{EventChange, PreviousEvent, event_change, needs_sdk_event};
pub use incoming::{IncomingNotification, RepeatKind, happened_at};
pub use person::{PERSON_IDS_MAX, person_ids};

use crate::access::Environment;
use crate::app::BillingProvider;
use crate::device::{AdvertisingId, DeviceKey, Platform, UserKey};
use crate::erasure::is_pseudonym;
use crate::event::duplicate::is_verifiable;
use crate::event::sdk::DeviceContext;
use crate::event::{Event, EventSource};
use crate::ledger::Revenue;
use crate::vocabulary::id::{AppId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use join::Join;
use money::ReportedPrice;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a notification that nobody was found for waits for its device or person.
pub const JOIN_WINDOW: Duration = Duration::from_hours(30 * 24);
/// How far ahead of its arrival a notification's time may be. Stores charge ahead of a period; one that is further
/// ahead is a mistake, and counts as of its arrival.
pub const FUTURE_SKEW_MAX: Duration = Duration::from_hours(48);
/// How long the secret before a new one stays valid, so that a provider can be told at leisure.
pub const PREVIOUS_SECRET_VALID: Duration = Duration::from_hours(24);
/// Notifications of one subscription that are settled together, the latest ones: ten years of weeks, and all that
/// happens in between.
pub const CHAIN_NOTIFICATIONS_MAX: usize = 2_000;

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
pub enum PaymentClaim {
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
pub enum NotificationMeaning {
    /// Nothing that is an event of ours: it is kept, and that is all.
    Receipt,
    /// A free trial began.
    TrialStart,
    /// Somebody got something for nothing, by this name.
    Free(String),
    /// Money came in.
    Payment(PaymentClaim),
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
pub struct ProviderNotification {
    /// The provider's id of it.
    pub external_id: String,
    /// The provider's type, verbatim.
    pub kind: String,
    /// Live or test.
    pub environment: Environment,
    /// What it means.
    pub meaning: NotificationMeaning,
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
    pub price: ReportedPrice,
    /// The tax in the price, as a share, in the provider's digits.
    pub tax: Option<String>,
    /// The store's part of the price, as a share, in the provider's digits.
    pub commission: Option<String>,
    /// When it happened, as far as the provider says.
    pub happened_at: Option<Timestamp>,
    /// Who it is about.
    pub subscriber: Subscriber,
}

/// What a notification comes to, given everything else that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettledNotification {
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

impl SettledNotification {
    /// Whether it makes an event.
    pub const fn makes_event(&self) -> bool {
        self.name.is_some()
    }

    /// Whether it makes an event that has a device.
    pub const fn is_matched(&self) -> bool {
        self.makes_event() && self.device.is_some()
    }
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
    pub content: ProviderNotification,
    /// When it happened.
    pub happened_at: Timestamp,
    /// When it arrived.
    pub received_at: Timestamp,
    /// Its money alone, as it was worth on its day.
    pub money: Option<Revenue>,
    /// Whose device it is by itself, without the rest of its subscription.
    pub join: Option<Join>,
    /// What it comes to.
    pub settled: SettledNotification,
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
            environment: one.content.environment,
            provider: one.provider,
            name: one.chain(),
        }
    }
}

impl Notification {
    /// The subscription that it belongs to; itself where nothing is said of one.
    pub fn chain(&self) -> String {
        chain_of(&self.content)
    }

    /// Whether it is for a period of a subscription, paid or not.
    pub fn is_period(&self) -> bool {
        matches!(self.content.meaning, NotificationMeaning::Payment(claim) if claim != PaymentClaim::OneOff)
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
        let (from, to): (&[UserKey], &[UserKey]) = match &self.content.meaning {
            NotificationMeaning::Transfer { from, to } => (from, to),
            _ => (&[], &[]),
        };
        from.iter().chain(to).chain(&self.content.subscriber.people)
    }

    /// The transaction whose event another source may report by its id: that of an event that a verified source proves.
    pub fn verified_transaction(&self) -> Option<&str> {
        let name = self.settled.name.as_deref()?;
        let transaction = self.content.transaction.as_deref();
        transaction.filter(|_| is_verifiable(name))
    }

    /// The keys that its subscription is found by: those that connect subscriptions, and its store transaction.
    pub fn lookup_keys(&self) -> BTreeSet<String> {
        let transaction = self.content.transaction.as_deref().map(transaction_key);
        self.keys().into_iter().chain(transaction).collect()
    }

    /// The keys by which subscriptions are found that may concern each other.
    pub fn keys(&self) -> BTreeSet<String> {
        let who = &self.content.subscriber;
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
    pub fn event(&self, owner: &DeviceContext, params: String) -> Option<Event> {
        let person = self.content.subscriber.people.first().cloned();
        // What the store calls a transaction leads to who made it.
        let is_erased = self.settled.device.as_ref().is_some_and(is_pseudonym);
        Some(Event {
            id: self.event,
            external_id: self.content.external_id.clone(),
            app: self.app,
            environment: self.content.environment,
            source: EventSource::Billing,
            name: self.settled.name.clone()?,
            original_name: None,
            occurred_at: self.happened_at,
            received_at: self.received_at,
            device: self.settled.device.clone(),
            user: person.or_else(|| self.settled.user.clone()),
            platform: owner
                .platform
                .or_else(|| platform(self.content.store.as_deref())),
            country: self
                .content
                .country
                .clone()
                .or_else(|| owner.country.clone()),
            revenue: self.settled.revenue.clone(),
            credit: owner.credit.clone(),
            params: (!is_erased).then_some(params),
            // The store derives it when all events of the device are written.
            first_payment: false,
            is_service_install: false,
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
pub fn chain_of(said: &ProviderNotification) -> String {
    let chain = said.original_transaction.as_ref();
    chain.or(said.transaction.as_ref()).map_or_else(
        || format!("alone:{}", said.external_id),
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
