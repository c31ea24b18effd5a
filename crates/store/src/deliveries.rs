//! Deliveries, as the API and the dashboard show them.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::event::Event;
use tributary_domain::forwarding::Delivery;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::skipped::SkippedConversions;
use tributary_domain::forwarding::undelivered::{UndeliveredCounts, UndeliveredQuery};
use tributary_domain::integration::{Integration, Network};
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum number of deliveries that one call retries.
pub const RETRIES_MAX: u32 = 10_000;

/// A delivery with its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryWithEvent {
    /// The delivery.
    pub delivery: Delivery,
    /// Event of the delivery. `None` when the event was removed.
    pub event: Option<Event>,
}

/// Health of an integration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IntegrationHealth {
    /// State of the queue.
    pub state: QueueState,
    /// Number of pending deliveries.
    pub pending: u64,
    /// Number of deliveries in the last 24 hours that succeeded.
    pub delivered: u64,
    /// Number of deliveries in the last 24 hours that failed, expired or stayed unconfirmed.
    pub failed: u64,
    /// Recent live conversions that were not sent to the network.
    pub skipped: SkippedConversions,
}

/// Deliveries.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Lists an app's deliveries, newest event first. Only live events have deliveries.
    async fn deliveries(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> StoreResult<Page<DeliveryWithEvent>>;

    /// Returns a delivery.
    async fn delivery(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        delivery: DeliveryId,
    ) -> StoreResult<DeliveryWithEvent>;

    /// Returns all deliveries of the given events of an app.
    async fn deliveries_of(&self, app: AppId, events: Vec<EventId>) -> StoreResult<Vec<Delivery>>;

    /// Puts a delivery that failed, expired or is unconfirmed back into its queue.
    async fn retry_delivery(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        delivery: DeliveryId,
        origin: AuditContext,
    ) -> StoreResult<DeliveryWithEvent>;

    /// Retries the deliveries that match a filter, newest first, at most [`RETRIES_MAX`]. Returns
    /// the number of retried deliveries.
    async fn retry_deliveries(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        filter: DeliveryFilter,
        origin: AuditContext,
    ) -> StoreResult<u64>;

    /// Returns the health of an app's integrations, in the order of the networks.
    async fn integration_health(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        now: Timestamp,
    ) -> StoreResult<Vec<(Network, IntegrationHealth)>>;

    /// Counts an app's live events that were not delivered to a network, by event name and reason.
    /// Each statement reads a limited number of rows that match the query, newest first.
    async fn undelivered(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        query: UndeliveredQuery,
    ) -> StoreResult<UndeliveredCounts>;

    /// Resumes a paused integration.
    async fn resume_integration(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Integration>;
}
