//! The outbox: pending deliveries and their queues.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::app::App;
use tributary_domain::forwarding::Conversion;
use tributary_domain::forwarding::delivery::PendingDelivery;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::quota::QuotaTurns;
use tributary_domain::forwarding::settlement::{DeliverySettlement, SettledQueue};
use tributary_domain::forwarding::status_check::{CheckOutcome, StatusCheck};
use tributary_domain::integration::{Integration, Network};
use tributary_domain::link::Link;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;

/// Reference to an integration's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueRef {
    /// App.
    pub app: AppId,
    /// Network.
    pub network: Network,
}

/// Unique number that identifies the holder of a queue's lease. Every write to a queue checks this
/// number, so that a process that lost its lease changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseId(pub [u8; 16]);

/// A leased queue with its integration.
#[derive(Debug, Clone)]
pub struct LeasedQueue {
    /// The app.
    pub app: App,
    /// Integration, with sealed credentials.
    pub integration: Integration,
    /// State of the queue.
    pub state: QueueState,
}

/// A pending delivery with the data to send.
#[derive(Debug, Clone)]
pub struct GatheredDelivery {
    /// The delivery.
    pub pending: PendingDelivery,
    /// Data to send. `None` when the event was removed. A web event has its own page URL; the page
    /// URL of other events is derived from `link`.
    pub conversion: Option<Conversion>,
    /// Link of the click that the event is credited to.
    pub link: Option<Link>,
}

/// The outbox.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Returns a network's queues that are enabled, not paused, not leased, and have due
    /// deliveries. The least recently served queue comes first.
    async fn due_queues(
        &self,
        network: Network,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<QueueRef>>;

    /// Leases a queue. Returns `None` when the queue is already leased, paused or disabled.
    async fn lease_queue(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Option<LeasedQueue>>;

    /// Extends a lease. Returns false when another process holds the queue now.
    async fn renew_lease(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        until: Timestamp,
    ) -> StoreResult<bool>;

    /// Releases a queue.
    async fn release_queue(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
    ) -> StoreResult<()>;

    /// Returns due deliveries, oldest first. Returns `None` when another process holds the queue
    /// now, or when the integration was changed or disabled after the queue was leased.
    async fn due_deliveries(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        revision: i64,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Option<Vec<PendingDelivery>>>;

    /// Marks deliveries as being sent, so that an interrupted attempt is detected later. Returns
    /// the deliveries that still exist, or `None` when another process holds the queue now.
    async fn begin_sending(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        deliveries: Vec<DeliveryId>,
        at: Timestamp,
    ) -> StoreResult<Option<Vec<DeliveryId>>>;

    /// Reads the current data to send for these deliveries, in the same order.
    async fn gather_conversions(
        &self,
        queue: QueueRef,
        pending: Vec<PendingDelivery>,
    ) -> StoreResult<Vec<GatheredDelivery>>;

    /// Writes the results of deliveries, and applies their changes to the queue's stored state.
    /// Returns the new state; `None` and nothing is written when another process holds the queue
    /// now.
    async fn settle_deliveries(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        settlement: DeliverySettlement,
    ) -> StoreResult<Option<SettledQueue>>;

    /// Returns due status checks.
    async fn due_status_checks(
        &self,
        queue: QueueRef,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<StatusCheck>>;

    /// Writes the outcome of a status check. Returns false when another process holds the queue
    /// now.
    async fn settle_status_check(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        request: String,
        outcome: CheckOutcome,
        at: Timestamp,
    ) -> StoreResult<bool>;

    /// Reserves the next turns in a quota that all nodes share.
    async fn reserve_turns(&self, quota: Digest, now: Timestamp) -> StoreResult<QuotaTurns>;

    /// Counts the paused integrations of each network.
    async fn paused_integrations(&self) -> StoreResult<Vec<(Network, u64)>>;

    /// Expires at most `limit` overdue deliveries in queues without a worker. Returns the number of
    /// expired deliveries.
    async fn expire_deliveries(&self, now: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Removes at most `limit` deliveries that finished before `settled_before`, and all hourly
    /// counts and settled alerts from before that time. Returns the number of removed deliveries.
    async fn remove_deliveries(&self, settled_before: Timestamp, limit: u32) -> StoreResult<u64>;
}
