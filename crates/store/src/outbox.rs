//! The outbox: pending deliveries and their queues.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::app::App;
use tributary_domain::forwarding::Conversion;
use tributary_domain::forwarding::delivery::PendingDelivery;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::quota::QuotaTurns;
use tributary_domain::forwarding::settlement::{DeliverySettlement, SettledQueue};
use tributary_domain::forwarding::sharing::{QueueShare, shared_from};
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

impl LeaseId {
    /// Returns the id of the split that begins with this lease of a part. It differs from the id of
    /// the lease, because the split may outlast it.
    #[must_use]
    pub fn of_split(self) -> Self {
        Self(self.0.map(|byte| !byte))
    }
}

/// A request for the lease of a queue or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Id of the new lease.
    pub id: LeaseId,
    /// The current time.
    pub now: Timestamp,
    /// End of the lease.
    pub until: Timestamp,
    /// Number of due deliveries from which the queue is shared with other nodes.
    pub shared_from: u32,
}

impl QueueRef {
    /// Builds a request for a lease of this queue.
    pub fn lease_request(self, id: LeaseId, now: Timestamp, until: Timestamp) -> LeaseRequest {
        LeaseRequest {
            id,
            now,
            until,
            shared_from: shared_from(self.network),
        }
    }
}

/// A queue, leased as a whole or in part, with its integration.
#[derive(Debug, Clone)]
pub struct LeasedQueue {
    /// The app.
    pub app: App,
    /// Integration, with sealed credentials.
    pub integration: Integration,
    /// State of the queue.
    pub state: QueueState,
    /// What the lease covers.
    pub share: QueueShare,
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
    /// Ends the waits of queues and deliveries that end later than any wait can, because the clock of a
    /// node was ahead. Returns the number of affected queues.
    async fn end_mistaken_waits(&self, now: Timestamp) -> StoreResult<u64>;

    /// Returns a network's queues that are enabled, not paused, and have due deliveries. They are
    /// not leased, or nodes share them. The least recently served queue comes first.
    async fn due_queues(
        &self,
        network: Network,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<QueueRef>>;

    /// Leases a queue, or a part of it if the queue is shared. Returns `None` when it is already
    /// leased, paused or disabled. If the holder of a large queue offers to share it, this asks for
    /// a share.
    async fn lease_queue(
        &self,
        queue: QueueRef,
        request: LeaseRequest,
    ) -> StoreResult<Option<LeasedQueue>>;

    /// Extends a lease. Returns false when another process holds the queue or the part now.
    async fn renew_lease(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        until: Timestamp,
    ) -> StoreResult<bool>;

    /// Releases a queue or the leased part of it.
    async fn release_queue(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
    ) -> StoreResult<()>;

    /// Returns due deliveries of the leased share, oldest first. Returns `None` when another process
    /// holds the share now, when the integration was changed or disabled after the queue was
    /// leased, when another holder paused or backed off the queue, or when another process asks the
    /// holder of the whole queue for a share.
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
