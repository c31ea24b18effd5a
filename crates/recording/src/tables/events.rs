//! Events, and what is counted and sent of them.

use super::{EngineTransaction, SharedId};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef, UserKey};
use tributary_domain::erasure::Trace;
use tributary_domain::event::duplicate::EventReplacement;
use tributary_domain::event::{Credit, Event, EventSource};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{PlannedRow, TerminalCounts};
use tributary_store::{DeliveryWithEvent, QueueRef, SettledDelivery, StatusCheck};

/// Events, and the ids that their senders gave.
pub trait EventTable: EngineTransaction {
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
    async fn events_by_external_id<'a>(
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
    async fn duplicate_candidates(
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

    /// The events of a device, as far as they lead to other data.
    async fn traces_of_device(&self, device: DeviceRef<'_>) -> Result<Vec<Trace>, Self::Failure>;

    /// The events of people that have no device, as far as they lead to other data.
    async fn traces_of_people(
        &self,
        of: (AppId, Environment),
        people: &[UserKey],
    ) -> Result<Vec<Trace>, Self::Failure>;

    /// Erases the events of a device, and gives them its pseudonym.
    async fn erase_events_of_device(
        &self,
        device: DeviceRef<'_>,
        pseudonym: &DeviceKey,
    ) -> Result<(), Self::Failure>;

    /// Erases the events of people that have no device.
    async fn erase_events_of_people(
        &self,
        of: (AppId, Environment),
        people: &[UserKey],
    ) -> Result<(), Self::Failure>;

    /// When the latest event of a device occurred, and whether a billing provider reported any.
    async fn latest_event(
        &self,
        device: DeviceRef<'_>,
    ) -> Result<(Option<Timestamp>, bool), Self::Failure>;

    /// The day of the first event from an id on.
    async fn day_of_next_event(
        &self,
        of: (AppId, Environment),
        from: EventId,
    ) -> Result<Option<Day>, Self::Failure>;

    /// The events of a stretch of the log, in the order of their ids.
    async fn events_between(
        &self,
        of: (AppId, Environment),
        span: (EventId, EventId),
        limit: usize,
    ) -> Result<Vec<Event>, Self::Failure>;

    /// The SDK events of a stretch of the log that have an amount, in the order of their ids.
    async fn sdk_amounts_between(
        &self,
        of: (AppId, Environment),
        span: (EventId, EventId),
        limit: usize,
    ) -> Result<Vec<Event>, Self::Failure>;

    /// Writes whether the amounts of events count, and whether they are first payments.
    async fn write_counting(&self, events: &[Event]) -> Result<(), Self::Failure>;
}

/// First payments of devices.
pub trait FirstPaymentTable: EngineTransaction {
    /// The events of a device that have the flag of its first payment.
    async fn flagged_payments(&self, device: DeviceRef<'_>) -> Result<Vec<Event>, Self::Failure>;

    /// The earliest payment of a device that counts.
    async fn earliest_payment(&self, device: DeviceRef<'_>)
    -> Result<Option<Event>, Self::Failure>;

    /// Writes the flag of a first payment of events.
    async fn write_first_payment_flags(
        &self,
        moved: &[EventReplacement],
    ) -> Result<(), Self::Failure>;

    /// Writes a device's first payment.
    async fn write_first_payment(
        &self,
        device: DeviceRef<'_>,
        first: Option<&Event>,
    ) -> Result<(), Self::Failure>;

    /// Leaves a device without a first payment, if an event is it.
    async fn clear_first_payment(
        &self,
        device: DeviceRef<'_>,
        event: EventId,
    ) -> Result<(), Self::Failure>;

    /// The devices with payments, or with the flag of a first payment, in a stretch of the log.
    async fn paying_devices(
        &self,
        of: (AppId, Environment),
        span: (EventId, EventId),
    ) -> Result<BTreeSet<DeviceKey>, Self::Failure>;
}

/// Deliveries on their way to networks.
pub trait OutboxTable: EngineTransaction {
    /// Puts deliveries into the outbox that are not in it.
    async fn insert_planned(&self, rows: &[PlannedRow]) -> Result<(), Self::Failure>;

    /// Removes what waits of an event and was never sent.
    async fn remove_unsent(&self, event: &Event) -> Result<(), Self::Failure>;

    /// Locks what waits of deliveries, in the order of their ids. Returns those that are not being sent at this moment.
    async fn lock_pending(
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

    /// Counts how deliveries ended. Returns for each queue how many failed in this hour, before and now. It comes after
    /// everything else of the outbox: a transaction that waits for another to count holds nothing that one needs.
    async fn add_terminal_counts(
        &self,
        ends: &BTreeMap<QueueRef, TerminalCounts>,
        at: Timestamp,
    ) -> Result<BTreeMap<QueueRef, (u64, u64)>, Self::Failure>;

    /// Writes what attempts came to. Deliveries that ended leave the outbox.
    async fn write_settled(
        &self,
        queue: QueueRef,
        settled: &[SettledDelivery],
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Returns a delivery with its event; refused when there is none.
    async fn delivery(
        &self,
        app: AppId,
        delivery: DeliveryId,
    ) -> Result<DeliveryWithEvent, Self::Failure>;

    /// Returns the newest deliveries that ended and match a filter with a status.
    async fn ended_matching(
        &self,
        app: AppId,
        filter: &DeliveryFilter,
        limit: u64,
    ) -> Result<Vec<DeliveryId>, Self::Failure>;

    /// Puts deliveries that ended back into the outbox. Returns how many there were.
    async fn requeue(
        &self,
        app: AppId,
        deliveries: &[DeliveryId],
        due_at: Timestamp,
    ) -> Result<u64, Self::Failure>;

    /// Writes the reason of deliveries that ended, and their status if it changes. Returns how many there were.
    async fn write_ended(
        &self,
        app: AppId,
        deliveries: &[DeliveryId],
        status: Option<DeliveryStatus>,
        reason: &str,
    ) -> Result<u64, Self::Failure>;

    /// Subtracts from the deliveries that counted as delivered in the hour of a request.
    async fn subtract_delivered(
        &self,
        queue: QueueRef,
        at: Timestamp,
        count: u64,
    ) -> Result<(), Self::Failure>;

    /// Removes deliveries that were cancelled before their first attempt because their event changed.
    async fn remove_cancelled(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<(), Self::Failure>;

    /// Those of the deliveries that ended.
    async fn find_ended(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<BTreeSet<DeliveryId>, Self::Failure>;
}

/// Requests whose outcome a network reports later.
pub trait StatusCheckTable: EngineTransaction {
    /// Stores status checks.
    async fn insert_checks(
        &self,
        queue: QueueRef,
        checks: &[StatusCheck],
    ) -> Result<(), Self::Failure>;

    /// Returns the check of a request.
    async fn status_check(
        &self,
        queue: QueueRef,
        request: &str,
    ) -> Result<Option<StatusCheck>, Self::Failure>;

    /// Sets when the network is asked again, and how often it was asked by then.
    async fn postpone_check(
        &self,
        queue: QueueRef,
        request: &str,
        step: u32,
        due_at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Removes the check of a request.
    async fn remove_check(&self, queue: QueueRef, request: &str) -> Result<(), Self::Failure>;
}
