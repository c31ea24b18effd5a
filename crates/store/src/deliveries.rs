//! Deliveries, as people see them.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::event::Event;
use tributary_domain::forwarding::Delivery;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::skipped::SkippedConversions;
use tributary_domain::integration::{Integration, Network};
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;

/// Deliveries that one call may bring back.
pub const RETRIES_MAX: u32 = 10_000;

/// A delivery and the event that it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryWithEvent {
    /// The delivery.
    pub delivery: Delivery,
    /// Its event; nothing when that is gone.
    pub event: Option<Event>,
}

/// How an integration does, in figures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IntegrationHealth {
    /// How its queue stands.
    pub state: QueueState,
    /// Deliveries to be made.
    pub pending: u64,
    /// Delivered in the last 24 hours.
    pub delivered: u64,
    /// Failed, expired or unconfirmed in the last 24 hours.
    pub failed: u64,
    /// Live conversions of the last days that the network did not get.
    pub skipped: SkippedConversions,
}

/// Deliveries.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// The deliveries of an app, newest first by the events' own time. Only live events have any.
    async fn deliveries(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> StoreResult<Page<DeliveryWithEvent>>;

    /// One delivery.
    async fn delivery(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        delivery: DeliveryId,
    ) -> StoreResult<DeliveryWithEvent>;

    /// The deliveries of some events of an app.
    async fn deliveries_of(&self, app: AppId, events: Vec<EventId>) -> StoreResult<Vec<Delivery>>;

    /// Brings a delivery that came to no good end back into its queue.
    async fn retry_delivery(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        delivery: DeliveryId,
        origin: AuditContext,
    ) -> StoreResult<DeliveryWithEvent>;

    /// The same for those that fit, newest first, at most [`RETRIES_MAX`]. Gives how many.
    async fn retry_deliveries(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        filter: DeliveryFilter,
        origin: AuditContext,
    ) -> StoreResult<u64>;

    /// How the integrations of an app do, in the order of the networks.
    async fn integration_health(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        now: Timestamp,
    ) -> StoreResult<Vec<(Network, IntegrationHealth)>>;

    /// Lets a paused integration go on.
    async fn resume_integration(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Integration>;
}
