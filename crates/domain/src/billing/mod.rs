//! Billing: notifications of subscription providers and their effects.
//!
//! A notification is parsed into a [`ProviderNotification`], which has the same form for all
//! providers. Notifications arrive late, twice and in any order, so the order of arrival must not
//! matter: every notification is stored, [`connected::Search`] collects the subscriptions that
//! affect each other, and [`settlement`] computes the effect of each notification from the whole
//! set. The store applies the difference.

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

/// How long an unmatched notification waits for its device or user.
pub const JOIN_WINDOW: Duration = Duration::from_hours(30 * 24);
/// How far after its arrival a notification may be dated. Stores charge before a period begins. A
/// later date is a mistake, and the arrival time is used instead.
pub const FUTURE_SKEW_MAX: Duration = Duration::from_hours(48);
/// How long the previous secret stays valid after a rotation, so that there is time to update the
/// provider.
pub const PREVIOUS_SECRET_VALID: Duration = Duration::from_hours(24);
/// Maximum number of notifications of one subscription that are settled together, the latest ones.
/// Enough for ten years of weekly payments and what happens in between.
pub const CHAIN_NOTIFICATIONS_MAX: usize = 2_000;

/// A free trial began.
pub const START_TRIAL: &str = "start_trial";
/// A trial that is still active after its hold.
pub const QUALIFIED_TRIAL: &str = "qualified_trial";
/// First payment of a subscription without a trial, or a one-off purchase.
pub const PURCHASE: &str = "purchase";
/// First payment after a trial.
pub const SUBSCRIBE: &str = "subscribe";
/// Every later payment of a subscription.
pub const RENEWAL: &str = "renewal";
/// A refund.
pub const REFUND: &str = "refund";
/// A reversed refund.
pub const REFUND_REVERSED: &str = "refund_reversed";
/// Renewal was turned off.
pub const CANCELLATION: &str = "cancellation";
/// A trial was cancelled.
pub const TRIAL_CANCELLED: &str = "trial_cancelled";
/// Renewal was turned on again.
pub const UNCANCELLATION: &str = "uncancellation";
/// Access ended.
pub const EXPIRATION: &str = "expiration";
/// A charge failed.
pub const BILLING_ISSUE: &str = "billing_issue";
/// The product was changed.
pub const PRODUCT_CHANGE: &str = "product_change";

/// Kind of payment, as the provider reports it. Whether it is the user's first payment is decided
/// later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentClaim {
    /// One-off purchase: always an acquisition, never a subscription payment.
    OneOff,
    /// Start of a subscription. Stores also report upgrades and returning subscribers this way.
    Start,
    /// Conversion of a trial or an offer to a subscription.
    Conversion,
    /// A further period.
    Continuation,
    /// A further period, which is a conversion if a trial came before it.
    AfterTrial,
    /// A returning subscriber.
    Return,
}

/// Meaning of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotificationMeaning {
    /// No event. The notification is only stored.
    Receipt,
    /// A free trial began.
    TrialStart,
    /// Something free of charge, with this event name.
    Free(String),
    /// A payment.
    Payment(PaymentClaim),
    /// A refund.
    Refund,
    /// A reversed refund.
    RefundReversed,
    /// A change of the subscription, with this event name.
    Lifecycle(String),
    /// A transfer of purchases between users.
    Transfer {
        /// Previous owners.
        from: Vec<UserKey>,
        /// New owners.
        to: Vec<UserKey>,
    },
}

/// Subscriber, as the provider identifies them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscriber {
    /// Device id that the app gave the provider.
    pub device: Option<DeviceKey>,
    /// All user ids, the current one first.
    pub people: Vec<UserKey>,
    /// Advertising ids.
    pub advertising: Vec<AdvertisingId>,
}

/// Parsed notification, in a form common to all providers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderNotification {
    /// Notification id assigned by the provider.
    pub external_id: String,
    /// Notification type of the provider, verbatim.
    pub kind: String,
    /// Live or test.
    pub environment: Environment,
    /// Meaning of the notification.
    pub meaning: NotificationMeaning,
    /// Store that charged the payment.
    pub store: Option<String>,
    /// Product id.
    pub product: Option<String>,
    /// Transaction id.
    pub transaction: Option<String>,
    /// Id of the subscription's first transaction.
    pub original_transaction: Option<String>,
    /// Period type, such as `TRIAL`, verbatim.
    pub period: Option<String>,
    /// Country, as two letters.
    pub country: Option<String>,
    /// Price.
    pub price: ReportedPrice,
    /// Tax as a share of the price, in the provider's digits.
    pub tax: Option<String>,
    /// Store commission as a share of the price, in the provider's digits.
    pub commission: Option<String>,
    /// Time of the event, if the provider sent one.
    pub happened_at: Option<Timestamp>,
    /// Subscriber.
    pub subscriber: Subscriber,
}

/// Effect of a notification, given everything else that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettledNotification {
    /// Event name; `None` if there is no event.
    pub name: Option<String>,
    /// Reason why a payment is not the first, if known.
    pub cause: Option<String>,
    /// Device of the event.
    pub device: Option<DeviceKey>,
    /// User of the device at that time, if the notification names none.
    pub user: Option<UserKey>,
    /// Revenue as it counts.
    pub revenue: Option<Revenue>,
}

impl SettledNotification {
    /// Returns whether there is an event.
    pub const fn makes_event(&self) -> bool {
        self.name.is_some()
    }

    /// Returns whether there is an event with a device.
    pub const fn is_matched(&self) -> bool {
        self.makes_event() && self.device.is_some()
    }
}

/// A stored notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// App id.
    pub app: AppId,
    /// Billing provider.
    pub provider: BillingProvider,
    /// Id of its event.
    pub event: EventId,
    /// Parsed content.
    pub content: ProviderNotification,
    /// Time of the event.
    pub happened_at: Timestamp,
    /// Arrival time.
    pub received_at: Timestamp,
    /// Revenue of this notification alone, converted at the rate of its day.
    pub money: Option<Revenue>,
    /// Device found for this notification alone, without the rest of its subscription.
    pub join: Option<Join>,
    /// Effect of the notification.
    pub settled: SettledNotification,
}

/// A subscription: all notifications of a provider with the same original transaction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chain {
    /// App id.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// Billing provider.
    pub provider: BillingProvider,
    /// Original transaction, prefixed; see [`chain_of`].
    pub name: String,
}

impl Chain {
    /// Returns the subscription of a notification.
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
    /// Returns the name of its subscription. Without a transaction it forms one by itself.
    pub fn chain(&self) -> String {
        chain_of(&self.content)
    }

    /// Returns whether it is for a subscription period, paid or free.
    pub fn is_period(&self) -> bool {
        matches!(self.content.meaning, NotificationMeaning::Payment(claim) if claim != PaymentClaim::OneOff)
    }

    /// Returns whether it is a subscription payment above zero, which makes later ones not the
    /// first.
    pub fn is_paid_period(&self) -> bool {
        self.is_period()
            && self
                .money
                .as_ref()
                .is_some_and(|money| money.amount > Amount::ZERO)
    }

    /// Returns all user ids that it names, including those of a transfer.
    pub fn people(&self) -> impl Iterator<Item = &UserKey> {
        let (from, to): (&[UserKey], &[UserKey]) = match &self.content.meaning {
            NotificationMeaning::Transfer { from, to } => (from, to),
            _ => (&[], &[]),
        };
        from.iter().chain(to).chain(&self.content.subscriber.people)
    }

    /// Returns the transaction of a verified event, which another source may report too.
    pub fn verified_transaction(&self) -> Option<&str> {
        let name = self.settled.name.as_deref()?;
        let transaction = self.content.transaction.as_deref();
        transaction.filter(|_| is_verifiable(name))
    }

    /// Returns the keys that find its subscription: the connecting keys and its store transaction.
    pub fn lookup_keys(&self) -> BTreeSet<String> {
        let transaction = self.content.transaction.as_deref().map(transaction_key);
        self.keys().into_iter().chain(transaction).collect()
    }

    /// Returns the keys that connect subscriptions which may affect each other.
    pub fn keys(&self) -> BTreeSet<String> {
        let subscriber = &self.content.subscriber;
        let joined = self.join.as_ref().map(|join| &join.device);
        let devices = subscriber.device.iter().chain(joined);
        self.people()
            .map(person_key)
            .chain(devices.map(device_key))
            .chain(subscriber.advertising.iter().map(advertising_key))
            .collect()
    }
}

impl Notification {
    /// Builds the event, if there is one. The store supplies the parameters as JSON.
    pub fn event(&self, owner: &DeviceContext, params: String) -> Option<Event> {
        let person = self.content.subscriber.people.first().cloned();
        // The store's transaction ids lead to the erased user.
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
            // The store sets it when all events of the device are written.
            first_payment: false,
            is_service_install: false,
            duplicate_of: None,
            dedup_root: None,
            skipped: Vec::new(),
            website: None,
        })
    }
}

/// Returns the platform of a store.
fn platform(store: Option<&str>) -> Option<Platform> {
    match store? {
        "APP_STORE" | "MAC_APP_STORE" => Some(Platform::Ios),
        "PLAY_STORE" => Some(Platform::Android),
        _ => None,
    }
}

/// Returns the subscription name of a notification: its original transaction, prefixed.
pub fn chain_of(content: &ProviderNotification) -> String {
    let chain = content.original_transaction.as_ref();
    chain.or(content.transaction.as_ref()).map_or_else(
        || format!("alone:{}", content.external_id),
        |transaction| format!("sub:{transaction}"),
    )
}

/// Returns the key of a subscription.
pub fn chain_key(provider: BillingProvider, chain: &str) -> String {
    format!("chain:{}:{chain}", provider.as_str())
}

/// Returns the key of a user id.
pub fn person_key(person: &UserKey) -> String {
    format!("person:{}", person.as_str())
}

/// Returns the key of a store transaction. It finds subscriptions, but does not connect them.
pub fn transaction_key(transaction: &str) -> String {
    format!("transaction:{transaction}")
}

/// Returns the key of an advertising id.
pub fn advertising_key(id: &AdvertisingId) -> String {
    format!("advertising:{}", id.as_str())
}

/// Returns the key of a device.
pub fn device_key(device: &DeviceKey) -> String {
    format!("device:{}", device.as_str())
}
