//! Events, first payments, and deliveries.

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
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{PlannedRow, TerminalCounts};
use tributary_store::{DeliveryWithEvent, QueueRef, SettledDelivery, StatusCheck};

/// Events and their external ids.
pub trait EventTable: EngineTransaction {
    /// Returns events by id.
    async fn events(
        &self,
        scope: (AppId, Environment),
        ids: &BTreeSet<EventId>,
    ) -> Result<Vec<Event>, Self::Failure>;

    /// Stores an event once per external id. Returns false when an event with this id exists
    /// already.
    async fn insert_event(&self, event: &Event) -> Result<bool, Self::Failure>;

    /// Overwrites the stored events that have the same ids.
    async fn replace_events(&self, events: &[&Event]) -> Result<(), Self::Failure>;

    /// Deletes an event and its external id, so that the event can be stored again.
    async fn delete_event(&self, event: &Event) -> Result<(), Self::Failure>;

    /// Returns a source's events with these external ids. An id that is only reserved has no event.
    async fn events_by_external_id<'a>(
        &self,
        source: EventSource,
        ids: &[SharedId<'a>],
    ) -> Result<Vec<(SharedId<'a>, Event)>, Self::Failure>;

    /// Returns the refunded amounts of an app's web payments, by external id. Payments without
    /// refunds are absent.
    async fn refunded_amounts<'a>(
        &self,
        app: AppId,
        payments: &[&'a str],
    ) -> Result<BTreeMap<&'a str, Amount>, Self::Failure>;

    /// Reserves the ids of store transactions for billing events. Other transactions that reserve
    /// the same ids wait until this one ends.
    async fn reserve_transactions(
        &self,
        transactions: &BTreeSet<SharedId<'_>>,
    ) -> Result<(), Self::Failure>;

    /// Returns the SDK events in a range of event ids that share an id with a verified event, or
    /// are marked as duplicates.
    async fn duplicate_candidates(
        &self,
        scope: (AppId, Environment),
        span: (EventId, EventId),
    ) -> Result<Vec<Event>, Self::Failure>;

    /// Returns a device's events that are credited to its install, in id order, after `after`.
    async fn events_to_credit(
        &self,
        device: DeviceRef<'_>,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<Event>, Self::Failure>;

    /// Returns the events of several devices that are credited to their installs, in id order.
    async fn credited_events(
        &self,
        scope: (AppId, Environment),
        devices: &[&DeviceKey],
    ) -> Result<Vec<Event>, Self::Failure>;

    /// Writes the credit of the events that [`Self::events_to_credit`] returns.
    async fn write_credit(
        &self,
        device: DeviceRef<'_>,
        credit: &Credit,
    ) -> Result<(), Self::Failure>;

    /// Writes which networks do not get these events, with the reasons.
    async fn write_skipped(&self, events: &[&Event]) -> Result<(), Self::Failure>;

    /// Returns the references from a device's events to other data.
    async fn traces_of_device(&self, device: DeviceRef<'_>) -> Result<Vec<Trace>, Self::Failure>;

    /// Returns the references from events that have one of these users but no device, or that of an
    /// erased device.
    async fn traces_of_people(
        &self,
        scope: (AppId, Environment),
        people: &[UserKey],
    ) -> Result<Vec<Trace>, Self::Failure>;

    /// Moves a device's billing events to the device's pseudonym, with their users and parameters.
    async fn rename_billing_events(
        &self,
        device: DeviceRef<'_>,
        pseudonym: &DeviceKey,
    ) -> Result<(), Self::Failure>;

    /// Erases a device's events, and moves them to the device's pseudonym.
    async fn erase_events_of_device(
        &self,
        device: DeviceRef<'_>,
        pseudonym: &DeviceKey,
    ) -> Result<(), Self::Failure>;

    /// Erases the events of these users that have no device, or that of an erased device.
    async fn erase_events_of_people(
        &self,
        scope: (AppId, Environment),
        people: &[UserKey],
    ) -> Result<(), Self::Failure>;

    /// Returns when a device's latest event occurred, and whether any of its events came from a
    /// billing provider.
    async fn latest_event(
        &self,
        device: DeviceRef<'_>,
    ) -> Result<(Option<Timestamp>, bool), Self::Failure>;

    /// Returns the day of the first event whose id is this one or later.
    async fn day_of_next_event(
        &self,
        scope: (AppId, Environment),
        from: EventId,
    ) -> Result<Option<Day>, Self::Failure>;

    /// Returns the events in a range of event ids, in id order.
    async fn events_between(
        &self,
        scope: (AppId, Environment),
        span: (EventId, EventId),
        limit: usize,
    ) -> Result<Vec<Event>, Self::Failure>;

    /// Returns the SDK events with an amount in a range of event ids, in id order.
    async fn sdk_amounts_between(
        &self,
        scope: (AppId, Environment),
        span: (EventId, EventId),
        limit: usize,
    ) -> Result<Vec<Event>, Self::Failure>;

    /// Writes whether the events' amounts count, and the events' first-payment flags.
    async fn write_counting(&self, events: &[Event]) -> Result<(), Self::Failure>;
}

/// First payments of devices.
pub trait FirstPaymentTable: EngineTransaction {
    /// Returns a device's events that have the first-payment flag.
    async fn flagged_payments(&self, device: DeviceRef<'_>) -> Result<Vec<Event>, Self::Failure>;

    /// Returns a device's earliest counted payment.
    async fn earliest_payment(&self, device: DeviceRef<'_>)
    -> Result<Option<Event>, Self::Failure>;

    /// Writes the first-payment flags of events.
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

    /// Clears a device's first payment if this event is the first payment.
    async fn clear_first_payment(
        &self,
        device: DeviceRef<'_>,
        event: EventId,
    ) -> Result<(), Self::Failure>;

    /// Returns the devices with payments or first-payment flags in a range of event ids.
    async fn paying_devices(
        &self,
        scope: (AppId, Environment),
        span: (EventId, EventId),
    ) -> Result<BTreeSet<DeviceKey>, Self::Failure>;
}

/// Pending and finished deliveries.
pub trait OutboxTable: EngineTransaction {
    /// Inserts deliveries into the outbox unless they are already in it.
    async fn insert_planned(&self, rows: &[PlannedRow]) -> Result<(), Self::Failure>;

    /// Removes an event's pending deliveries that were never sent.
    async fn remove_unsent(&self, event: &Event) -> Result<(), Self::Failure>;

    /// Locks pending deliveries in id order. Returns those that are not being sent right now.
    async fn lock_pending(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
        now: Timestamp,
    ) -> Result<BTreeSet<DeliveryId>, Self::Failure>;

    /// Moves deliveries from the outbox to the finished deliveries, with the status cancelled.
    async fn cancel(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
        reason: &'static str,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Adds to the hourly counts of finished deliveries. Returns how many deliveries per queue had
    /// failed in this hour, before and after the addition. Must be the last write to the outbox
    /// tables: a transaction that waits here then holds no lock that another transaction needs.
    async fn add_terminal_counts(
        &self,
        counts: &BTreeMap<QueueRef, TerminalCounts>,
        at: Timestamp,
    ) -> Result<BTreeMap<QueueRef, (u64, u64)>, Self::Failure>;

    /// Writes the results of delivery attempts. Finished deliveries leave the outbox.
    async fn write_settled(
        &self,
        queue: QueueRef,
        settled: &[SettledDelivery],
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Returns a delivery with its event. Refused when the delivery does not exist.
    async fn delivery(
        &self,
        app: AppId,
        delivery: DeliveryId,
    ) -> Result<DeliveryWithEvent, Self::Failure>;

    /// Returns the newest finished deliveries that match a filter and have the given status.
    async fn ended_matching(
        &self,
        app: AppId,
        filter: &DeliveryFilter,
        limit: u64,
    ) -> Result<Vec<DeliveryId>, Self::Failure>;

    /// Puts finished deliveries back into the outbox. Returns the number of deliveries put back.
    async fn requeue(
        &self,
        app: AppId,
        deliveries: &[DeliveryId],
        due_at: Timestamp,
    ) -> Result<u64, Self::Failure>;

    /// Changes the reason code of finished deliveries, and their status if given. Returns the
    /// number of changed deliveries.
    async fn write_ended(
        &self,
        app: AppId,
        deliveries: &[DeliveryId],
        status: Option<DeliveryStatus>,
        reason: &str,
    ) -> Result<u64, Self::Failure>;

    /// Subtracts from the count of successful deliveries in the hour of a request.
    async fn subtract_delivered(
        &self,
        queue: QueueRef,
        at: Timestamp,
        count: u64,
    ) -> Result<(), Self::Failure>;

    /// Removes deliveries that were cancelled before their first attempt because their event
    /// changed.
    async fn remove_cancelled(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<(), Self::Failure>;

    /// Returns whether any of the given deliveries was sent at least once, or is being sent.
    async fn was_sent(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<bool, Self::Failure>;

    /// Returns the given deliveries that are finished.
    async fn find_ended(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<BTreeSet<DeliveryId>, Self::Failure>;
}

/// Status checks: requests whose outcome a network reports later.
pub trait StatusCheckTable: EngineTransaction {
    /// Stores status checks.
    async fn insert_checks(
        &self,
        queue: QueueRef,
        checks: &[StatusCheck],
    ) -> Result<(), Self::Failure>;

    /// Returns the status check of a request.
    async fn status_check(
        &self,
        queue: QueueRef,
        request: &str,
    ) -> Result<Option<StatusCheck>, Self::Failure>;

    /// Sets the time and the step number of the next status check.
    async fn postpone_check(
        &self,
        queue: QueueRef,
        request: &str,
        step: u32,
        due_at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Removes the status check of a request.
    async fn remove_check(&self, queue: QueueRef, request: &str) -> Result<(), Self::Failure>;
}
