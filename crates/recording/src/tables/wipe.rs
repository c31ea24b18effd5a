//! Removing the test data of an app.

use super::EngineTransaction;
use std::collections::BTreeSet;
use tributary_domain::click::Click;
use tributary_domain::device::DeviceKey;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::RollupDay;

/// An event to remove: what its keys and its lock need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WipedEvent {
    /// Event id.
    pub id: EventId,
    /// Device of the event.
    pub device: Option<DeviceKey>,
    /// Source, as stored.
    pub source: String,
    /// Id that the sender gave.
    pub external_id: String,
}

/// Rows of the test environment. Every statement is limited to them, so that live data cannot be
/// affected.
pub trait WipeTable: EngineTransaction {
    /// Removes notifications. Returns the ids of their events.
    async fn remove_test_notifications(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<Vec<EventId>, Self::Failure>;

    /// Removes the daily counts of notifications.
    async fn remove_test_billing_days(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Returns the given events.
    async fn test_events_by_id(
        &self,
        app: AppId,
        ids: &[EventId],
    ) -> Result<Vec<WipedEvent>, Self::Failure>;

    /// Returns the first events, except those of stored notifications. These arrived during the
    /// wipe, and their subscriptions are settled again later, which needs the events.
    async fn first_test_events(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<Vec<WipedEvent>, Self::Failure>;

    /// Returns the first events of devices, with the same exception.
    async fn first_test_events_of(
        &self,
        app: AppId,
        devices: &BTreeSet<DeviceKey>,
        limit: usize,
    ) -> Result<Vec<WipedEvent>, Self::Failure>;

    /// Removes events with their ids, so that the same ids are accepted again. Returns the number of
    /// events.
    async fn remove_test_events(
        &self,
        app: AppId,
        events: &[WipedEvent],
    ) -> Result<u64, Self::Failure>;

    /// Returns when the first device was seen.
    async fn first_test_device_at(&self, app: AppId) -> Result<Option<Timestamp>, Self::Failure>;

    /// Reads at most `limit` clicks of both environments in id order, and removes those of the test
    /// environment. No index finds them, because they are few and every tap would have to maintain
    /// it. Returns their number, and the id to continue with.
    async fn remove_test_clicks(
        &self,
        app: AppId,
        from: ClickId,
        limit: usize,
    ) -> Result<(u64, Option<ClickId>), Self::Failure>;

    /// Returns the clicks in a range of click ids.
    async fn test_clicks_between(
        &self,
        app: AppId,
        span: (ClickId, ClickId),
    ) -> Result<Vec<Click>, Self::Failure>;

    /// Returns the ids of some devices, whether they were configured or not.
    async fn some_test_devices(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<BTreeSet<DeviceKey>, Self::Failure>;

    /// Removes everything that is stored about devices except their events. Returns the number of
    /// configured devices.
    async fn remove_test_devices(
        &self,
        app: AppId,
        devices: &BTreeSet<DeviceKey>,
    ) -> Result<u64, Self::Failure>;

    /// Removes lookup keys of subscriptions without notifications. Returns their number.
    async fn remove_test_billing_keys(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<usize, Self::Failure>;

    /// Removes event ids that no event and no stored notification uses. Returns their number.
    async fn remove_test_event_keys(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<usize, Self::Failure>;

    /// Returns the first day, from a day on, that has figures in any roll-up.
    async fn next_test_figures(&self, app: AppId, from: Day) -> Result<Option<Day>, Self::Failure>;

    /// Removes all roll-up rows of a day, with details. Returns their number.
    async fn remove_figures(&self, day: RollupDay) -> Result<u64, Self::Failure>;
}
