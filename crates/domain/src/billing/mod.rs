//! Billing: notifications from subscription providers and their effects.
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
mod payment;
mod person;
mod refund;
pub mod settlement;
pub mod signature;
pub mod source;

#[cfg(test)]
pub(crate) mod samples;

pub use device_update::DeviceUpdate;
pub use event_change::{EventChange, PreviousEvent, event_change, needs_sdk_event};
pub use incoming::{IncomingNotification, RepeatKind, happened_at};
pub use payment::WebPayment;
pub use person::{PERSON_IDS_MAX, person_ids};

use crate::access::Environment;
use crate::app::BillingProvider;
use crate::device::{AdvertisingId, DeviceKey, Platform, UserKey};
use crate::erasure::is_pseudonym;
use crate::event::duplicate::is_verifiable;
use crate::event::sdk::DeviceContext;
use crate::event::{Event, EventSource};
use crate::ledger::{Revenue, UncountedReason};
use crate::vocabulary::id::{AppId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use join::Join;
use money::ReportedPrice;
use source::PaymentStore;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long an unmatched notification waits for its device or user.
pub const JOIN_WINDOW: Duration = Duration::from_hours(30 * 24);
/// How far after its arrival a notification may be dated, because stores charge before a period
/// begins. A date that is further in the future is treated as a mistake, and the arrival time is
/// used instead.
pub const FUTURE_SKEW_MAX: Duration = Duration::from_hours(48);
/// How long the previous secret stays valid after a rotation, so that there is time to update the
/// provider.
pub const PREVIOUS_SECRET_VALID: Duration = Duration::from_hours(24);
/// Maximum number of a subscription's notifications that are settled together. If there are more,
/// the latest ones are used. The limit is enough for ten years of weekly payments and all other
/// notifications in that time.
pub const CHAIN_NOTIFICATIONS_MAX: usize = 2_000;

/// A free trial began.
pub const START_TRIAL: &str = "start_trial";
/// A trial that is still active after its hold.
pub const QUALIFIED_TRIAL: &str = "qualified_trial";
/// First payment for a subscription without a trial, or a one-off purchase.
pub const PURCHASE: &str = "purchase";
/// First payment after a trial.
pub const SUBSCRIBE: &str = "subscribe";
/// Every later payment for a subscription.
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
    /// Renewal: payment for the next period.
    Continuation,
    /// Payment for a further period. It is a conversion if a trial came before it.
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
    /// A free transaction, such as a promotional grant, recorded under this event name.
    Free(String),
    /// A payment.
    Payment(PaymentClaim),
    /// A refund.
    Refund,
    /// A reversed refund.
    RefundReversed,
    /// A change to the subscription, recorded under this event name.
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
    /// The provider's notification type, verbatim.
    pub kind: String,
    /// Live or test.
    pub environment: Environment,
    /// Meaning of the notification.
    pub meaning: NotificationMeaning,
    /// Store that processed the payment.
    pub store: Option<String>,
    /// Product id.
    pub product: Option<String>,
    /// Transaction id.
    pub transaction: Option<String>,
    /// Id of the subscription's first transaction.
    pub original_transaction: Option<String>,
    /// Other ids of the same transaction, for a provider that gives one payment several.
    pub other_transactions: Vec<String>,
    /// Id of a refund or dispute, for a provider that reports several refunds of one payment.
    pub refund: Option<String>,
    /// Period type, such as `TRIAL`, verbatim.
    pub period: Option<String>,
    /// Country, as two letters.
    pub country: Option<String>,
    /// Price.
    pub price: ReportedPrice,
    /// Tax as a share of the price, a decimal number as the provider sent it.
    pub tax: Option<String>,
    /// Store commission as a share of the price, a decimal number as the provider sent it.
    pub commission: Option<String>,
    /// Time of the event, if the provider sent one.
    pub happened_at: Option<Timestamp>,
    /// Subscriber.
    pub subscriber: Subscriber,
}

/// Effect of a notification, computed from all notifications and device links that are known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettledNotification {
    /// Event name; `None` if the notification causes no event.
    pub name: Option<String>,
    /// Reason why a payment is not the user's first payment, if known.
    pub cause: Option<String>,
    /// Device of the event.
    pub device: Option<DeviceKey>,
    /// User of the device when the event happened. Set only if the notification names no user.
    pub user: Option<UserKey>,
    /// Revenue after settlement.
    pub revenue: Option<Revenue>,
    /// The website's event for the same payment, or for the payment of a refund.
    pub web_payment: Option<EventId>,
}

impl SettledNotification {
    /// Returns whether the notification causes an event.
    pub const fn makes_event(&self) -> bool {
        self.name.is_some()
    }

    /// Returns the website's event that counts instead. A refund counts as far as it exceeds those
    /// that the website reported.
    pub fn duplicate_of(&self) -> Option<EventId> {
        let duplicate = Some(UncountedReason::DuplicateOfVerified);
        let revenue = self.revenue.as_ref();
        let is_duplicate = revenue.is_none_or(|revenue| revenue.uncounted == duplicate);
        self.web_payment.filter(|_| is_duplicate)
    }

    /// Returns whether the notification causes an event with a known device.
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
    /// Id of the notification's event.
    pub event: EventId,
    /// Parsed content.
    pub content: ProviderNotification,
    /// Time of the event.
    pub happened_at: Timestamp,
    /// Arrival time.
    pub received_at: Timestamp,
    /// Revenue of this notification alone, converted at the rate of its day.
    pub money: Option<Revenue>,
    /// Device found for this notification alone, without evidence from the rest of its
    /// subscription.
    pub join: Option<Join>,
    /// Effect of the notification.
    pub settled: SettledNotification,
}

/// A subscription: all notifications from a provider with the same original transaction.
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

    /// Returns a name under which an imported event is found by its transaction. The event's
    /// subscription is unknown, because an import contains no notifications.
    pub fn of_imported(event: &Event, provider: BillingProvider) -> Self {
        Self {
            app: event.app,
            environment: event.environment,
            provider,
            name: format!("{IMPORTED}{}", event.id),
        }
    }

    /// Returns the imported event, if [`Chain::of_imported`] made this chain.
    pub fn imported_event(&self) -> Option<EventId> {
        EventId::parse(self.name.strip_prefix(IMPORTED)?).ok()
    }
}

/// Prefix of a name from [`Chain::of_imported`]. Differs from those of [`chain_of`].
const IMPORTED: &str = "imported:";

impl Notification {
    /// Returns the subscription's name. A notification without a transaction is a subscription by
    /// itself.
    pub fn chain(&self) -> String {
        chain_of(&self.content)
    }

    /// Returns whether the notification is for a subscription period, paid or free.
    pub fn is_period(&self) -> bool {
        matches!(self.content.meaning, NotificationMeaning::Payment(claim) if claim != PaymentClaim::OneOff)
    }

    /// Returns whether the notification is a subscription payment above zero. Later payments are
    /// then not the user's first.
    pub fn is_paid_period(&self) -> bool {
        self.is_period()
            && self
                .money
                .as_ref()
                .is_some_and(|money| money.amount > Amount::ZERO)
    }

    /// Returns all user ids that the notification names, including those of a transfer.
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

    /// Returns the lookup keys for the notification's subscription: those from [`Self::keys`] and
    /// the store transaction.
    pub fn lookup_keys(&self) -> BTreeSet<String> {
        let transaction = self.content.transaction.as_deref().map(transaction_key);
        self.keys().into_iter().chain(transaction).collect()
    }

    /// Returns whether the notification only links the ids of a payment.
    pub fn links_payments(&self) -> bool {
        !self.content.other_transactions.is_empty()
    }

    /// Returns the ids under which a website may report the same payment.
    pub fn shared_payment_ids(&self) -> impl Iterator<Item = &str> {
        payment::shared_payment_ids(&self.content)
    }

    /// Returns the lookup keys that connect subscriptions which may affect each other: users,
    /// devices, advertising ids, and the payments that Stripe took.
    pub fn keys(&self) -> BTreeSet<String> {
        let subscriber = &self.content.subscriber;
        let joined = self.join.as_ref().map(|join| &join.device);
        // A payment that another subscription shares may have its device from there.
        let devices = subscriber.device.iter().chain(joined);
        let devices = devices.chain(&self.settled.device);
        self.people()
            .map(person_key)
            .chain(devices.map(device_key))
            .chain(subscriber.advertising.iter().map(advertising_key))
            .chain(payment::shared_ids(&self.content).map(transaction_key))
            .collect()
    }
}

impl Notification {
    /// Builds the event, if the notification causes one. The store supplies the parameters as JSON.
    pub fn event(&self, owner: &DeviceContext, params: String) -> Option<Event> {
        let person = self.content.subscriber.people.first().cloned();
        // The store's transaction ids would identify the erased user.
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
            // The store sets this flag once all of the device's events are written.
            first_payment: false,
            is_service_install: false,
            duplicate_of: self.settled.duplicate_of(),
            dedup_root: None,
            consent: None,
            skipped: Vec::new(),
            website: None,
        })
    }
}

/// Returns the platform of a store.
fn platform(store: Option<&str>) -> Option<Platform> {
    match PaymentStore::named(store?) {
        PaymentStore::AppStore => Some(Platform::Ios),
        PaymentStore::PlayStore => Some(Platform::Android),
        PaymentStore::Stripe | PaymentStore::Other => None,
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

/// Returns the lookup key of a store transaction. The key finds subscriptions but does not connect
/// them.
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
