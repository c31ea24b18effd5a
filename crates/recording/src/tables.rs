//! What an engine reads and writes. Nothing here decides.
#![expect(
    async_fn_in_trait,
    reason = "the engines are known where the functions are called, so the compiler sees what their futures are"
)]

use crate::tally::{BillingDay, DayCount};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_domain::access::Environment;
use tributary_domain::app::{App, AppSecret, BillingProvider};
use tributary_domain::billing::connected::{Found as Connected, Need};
use tributary_domain::billing::hold::Trial;
use tributary_domain::billing::{Chain, Notification};
use tributary_domain::click::Click;
use tributary_domain::device::{Device, DeviceRef, Identity, UserKey};
use tributary_domain::event::duplicate::Replacement;
use tributary_domain::event::{Credit, Event, EventSource};
use tributary_domain::exchange::ImportedRates;
use tributary_domain::install::{Attribution, Configure, Found, Known, LookFor, Opening};
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, DeliveryId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::PlannedRow;
use tributary_store::{LeasedToken, QueueRef, StoreError};

pub use tributary_domain::event::SharedId;

/// Another transaction changed what was read. The transaction runs again, on what is stored now.
#[derive(Debug, Clone, Copy)]
pub struct Overtaken;

/// An open transaction of an engine.
pub trait Engine {
    /// Why it cannot go on.
    type Failure: From<StoreError> + From<Overtaken>;
}

/// All tables.
pub trait Tables:
    AppTable
    + BillingDayTable
    + ClickTable
    + DeviceTable
    + EventTable
    + FirstPaymentTable
    + KeyTable
    + LinkTable
    + NotificationTable
    + OutboxTable
    + TokenTable
    + TrialTable
{
}

impl<T> Tables for T where
    T: AppTable
        + BillingDayTable
        + ClickTable
        + DeviceTable
        + EventTable
        + FirstPaymentTable
        + KeyTable
        + LinkTable
        + NotificationTable
        + OutboxTable
        + TokenTable
        + TrialTable
{
}

/// Apps, their integrations, and exchange rates.
pub trait AppTable: Engine {
    /// An app.
    async fn app(&self, app: AppId) -> Result<Option<App>, Self::Failure>;

    /// Lets no other transaction settle subscriptions of an app until this one ends.
    async fn lock_app(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Lets no other transaction settle subscriptions of an app until this one ends. Several may do so together.
    async fn share_app(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Notes that a provider is connected, unless that is known.
    async fn connect(&self, app: AppId, by: AppSecret, at: Timestamp) -> Result<(), Self::Failure>;

    /// The integrations of an app that were ever touched.
    async fn integrations(&self, app: AppId) -> Result<Arc<[Integration]>, Self::Failure>;

    /// The imported rates that convert a currency on a day.
    async fn rates(&self, currency: Currency, day: Day) -> Result<ImportedRates, Self::Failure>;
}

/// Notifications of billing providers.
pub trait NotificationTable: Engine {
    /// The digest of the body that a provider's id was used for.
    async fn notification_digest(
        &self,
        app: AppId,
        provider: BillingProvider,
        given_id: &str,
    ) -> Result<Option<Vec<u8>>, Self::Failure>;

    /// Stores a notification, unless one of its id is stored.
    async fn insert_notification(
        &self,
        one: &Notification,
        digest: Digest,
        body: Option<&str>,
    ) -> Result<(), Self::Failure>;

    /// Writes what a stored notification comes to.
    async fn update_notification(&self, one: &Notification) -> Result<(), Self::Failure>;

    /// Removes a notification.
    async fn remove_notification(&self, one: &Notification) -> Result<(), Self::Failure>;

    /// The notifications of subscriptions, as far as they are settled together.
    async fn notifications(
        &self,
        chains: &BTreeSet<Chain>,
    ) -> Result<Vec<Notification>, Self::Failure>;

    /// Those subscriptions of which a part goes on under the pseudonym of an erased device.
    async fn chains_with_pseudonyms(
        &self,
        chains: &BTreeSet<Chain>,
    ) -> Result<BTreeSet<Chain>, Self::Failure>;

    /// What a search for connected subscriptions has to know.
    async fn connected(
        &self,
        of: (AppId, Environment),
        need: &Need,
    ) -> Result<Connected, Self::Failure>;
}

/// The keys that lead to subscriptions.
pub trait KeyTable: Engine {
    /// Lets a subscription be found by keys.
    async fn insert_keys(
        &self,
        chain: &Chain,
        keys: &BTreeSet<String>,
    ) -> Result<(), Self::Failure>;

    /// The subscriptions of keys, for each at most so many in a fixed order.
    async fn keyed_chains(
        &self,
        of: (AppId, Environment),
        keys: &[String],
        limit: usize,
    ) -> Result<Vec<(String, Chain)>, Self::Failure>;
}

/// Which devices go by which people's ids.
pub trait LinkTable: Engine {
    /// Remembers that a device goes by a person's id.
    async fn link_user(
        &self,
        device: DeviceRef<'_>,
        user: &UserKey,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;
}

/// Trials on hold.
pub trait TrialTable: Engine {
    /// The trial of a subscription that is, or was, on hold.
    async fn trial(&self, chain: &Chain) -> Result<Option<Trial>, Self::Failure>;

    /// Puts a trial on hold. Of several starts of one subscription the earliest says when it is due.
    async fn hold_trial(&self, chain: &Chain, due_at: Timestamp) -> Result<(), Self::Failure>;

    /// Writes the state of a trial.
    async fn write_trial(&self, chain: &Chain, trial: Trial) -> Result<(), Self::Failure>;

    /// Trials on hold that are due, the longest ones first.
    async fn due_trials(&self, now: Timestamp, limit: u32) -> Result<Vec<Chain>, Self::Failure>;
}

/// How many notifications came, and what became of them.
pub trait BillingDayTable: Engine {
    /// Adds to the count of a day.
    async fn add_to_billing_day(
        &self,
        day: &BillingDay,
        count: &DayCount,
    ) -> Result<(), Self::Failure>;
}

/// Clicks.
pub trait ClickTable: Engine {
    /// Stores a click; false when it is stored already.
    async fn insert_click(&self, click: &Click) -> Result<bool, Self::Failure>;

    /// A click.
    async fn click(&self, app: AppId, click: ClickId) -> Result<Option<Click>, Self::Failure>;

    /// The clicks that an install may belong to.
    async fn candidates(
        &self,
        command: &Configure,
        wanted: &LookFor,
    ) -> Result<Found, Self::Failure>;

    /// Gives a click to an install that finds it free.
    async fn take_click(&self, device: DeviceRef<'_>, click: ClickId) -> Result<(), Self::Failure>;

    /// Keeps a click that a decision names.
    async fn keep_click(&self, app: AppId, click: ClickId) -> Result<(), Self::Failure>;

    /// Takes a click back from an install. It stays, because the device's explanation names it.
    async fn release_click(
        &self,
        device: DeviceRef<'_>,
        click: ClickId,
    ) -> Result<(), Self::Failure>;
}

/// Devices and their people.
pub trait DeviceTable: Engine {
    /// Locks devices until the transaction ends, in the order of their keys.
    async fn lock_devices(
        &self,
        devices: &BTreeSet<DeviceRef<'_>>,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Locks a device, and reads what is known of it.
    async fn lock_device(
        &self,
        device: DeviceRef<'_>,
        at: Timestamp,
    ) -> Result<Known, Self::Failure>;

    /// Stores a device that was not stored.
    async fn insert_device(
        &self,
        command: &Configure,
        opening: &Opening,
    ) -> Result<(), Self::Failure>;

    /// Writes a device, and the decision about it.
    async fn update_device(
        &self,
        of: DeviceRef<'_>,
        device: &Device,
        attribution: &Attribution,
    ) -> Result<(), Self::Failure>;

    /// Writes who is behind a device.
    async fn write_identity(
        &self,
        device: DeviceRef<'_>,
        identity: &Identity,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;
}

/// Tokens to be redeemed at Apple.
pub trait TokenTable: Engine {
    /// Keeps the token of a device, unless one is kept.
    async fn enqueue_token(&self, command: &Configure) -> Result<(), Self::Failure>;

    /// Whether a lease of a token is still held.
    async fn holds_token(&self, lease: &LeasedToken) -> Result<bool, Self::Failure>;

    /// Removes a token whose lease is still held; false when it is not.
    async fn remove_token(&self, lease: &LeasedToken) -> Result<bool, Self::Failure>;

    /// Makes a token due again whose lease is still held; false when it is not.
    async fn retry_token(
        &self,
        lease: &LeasedToken,
        due_at: Timestamp,
    ) -> Result<bool, Self::Failure>;
}

/// Events, and the ids that their senders gave.
pub trait EventTable: Engine {
    /// Events by our ids.
    async fn events(
        &self,
        of: (AppId, Environment),
        ids: &BTreeSet<EventId>,
    ) -> Result<Vec<Event>, Self::Failure>;

    /// Stores an event, once by the id that its sender gave; false when it is stored already.
    async fn insert_event(&self, event: &Event) -> Result<bool, Self::Failure>;

    /// Stores events in the place of those of the same ids.
    async fn replace_events(&self, events: &[&Event]) -> Result<(), Self::Failure>;

    /// Removes an event and its sender's id, so that it can be stored again.
    async fn delete_event(&self, event: &Event) -> Result<(), Self::Failure>;

    /// The events of a source that have ids. A reserved id is not an event.
    async fn events_by_given_id<'a>(
        &self,
        source: EventSource,
        ids: &[SharedId<'a>],
    ) -> Result<Vec<(SharedId<'a>, Event)>, Self::Failure>;

    /// Reserves the ids of store transactions for billing events. No other transaction reserves them until this one ends.
    async fn reserve_transactions(
        &self,
        transactions: &BTreeSet<SharedId<'_>>,
    ) -> Result<(), Self::Failure>;

    /// The SDK events of a stretch of the log that verified events have the ids of, and those that were duplicates.
    async fn events_with_twins(
        &self,
        of: (AppId, Environment),
        span: (EventId, EventId),
    ) -> Result<Vec<Event>, Self::Failure>;

    /// The events of a device that are credited to its install, in the order of their ids, after one of them.
    async fn events_to_credit(
        &self,
        device: DeviceRef<'_>,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<Event>, Self::Failure>;

    /// Credits the same events to something.
    async fn write_credit(
        &self,
        device: DeviceRef<'_>,
        credit: &Credit,
    ) -> Result<(), Self::Failure>;

    /// Writes which networks do not hear of events.
    async fn write_skipped(&self, events: &[&Event]) -> Result<(), Self::Failure>;
}

/// First payments of devices.
pub trait FirstPaymentTable: Engine {
    /// The events of a device that have the flag of its first payment.
    async fn flagged_payments(&self, device: DeviceRef<'_>) -> Result<Vec<Event>, Self::Failure>;

    /// The earliest payment of a device that counts.
    async fn earliest_payment(&self, device: DeviceRef<'_>)
    -> Result<Option<Event>, Self::Failure>;

    /// Writes the flag of a first payment of events.
    async fn write_first_payment_flags(&self, moved: &[Replacement]) -> Result<(), Self::Failure>;

    /// Writes a device's first payment.
    async fn write_first_payment(
        &self,
        device: DeviceRef<'_>,
        first: Option<&Event>,
    ) -> Result<(), Self::Failure>;

    /// Leaves a device without a first payment, if an event is it.
    async fn vacate_first_payment(
        &self,
        device: DeviceRef<'_>,
        event: EventId,
    ) -> Result<(), Self::Failure>;
}

/// Deliveries on their way to networks.
pub trait OutboxTable: Engine {
    /// Puts deliveries into the outbox that are not in it.
    async fn insert_planned(&self, rows: &[PlannedRow]) -> Result<(), Self::Failure>;

    /// Removes what waits of an event and was never sent.
    async fn withdraw(&self, event: &Event) -> Result<(), Self::Failure>;

    /// Locks what waits of deliveries, in the order of their ids. Returns those that are not being sent at this moment.
    async fn lock_waiting(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
        now: Timestamp,
    ) -> Result<BTreeSet<DeliveryId>, Self::Failure>;

    /// Moves deliveries out of the outbox to those that ended, as cancelled.
    async fn cancel(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
        why: &'static str,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Counts how many deliveries were cancelled.
    async fn count_cancelled(
        &self,
        cancelled: &BTreeMap<QueueRef, usize>,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Removes deliveries that were cancelled before their first attempt because their event changed.
    async fn forget_cancelled(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<(), Self::Failure>;

    /// Those of the deliveries that ended.
    async fn ended(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<BTreeSet<DeliveryId>, Self::Failure>;
}
