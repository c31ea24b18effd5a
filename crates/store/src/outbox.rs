//! The outbox: deliveries that are to be made, and the queues that they stand in.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::app::App;
use tributary_domain::forwarding::Conversion;
use tributary_domain::forwarding::delivery::PendingDelivery;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::settlement::DeliverySettlement;
use tributary_domain::forwarding::status_check::{CheckOutcome, StatusCheck};
use tributary_domain::integration::{Integration, Network};
use tributary_domain::link::Link;
use tributary_domain::vocabulary::id::{AppId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;

/// The queue of an integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueRef {
    /// Of which app.
    pub app: AppId,
    /// To which network.
    pub network: Network,
}

/// Who holds a queue: a number that nobody else has. Whatever is written about a queue names it, so that one who was
/// thought dead changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseId(pub [u8; 16]);

/// A queue that is held, with everything about its integration.
#[derive(Debug, Clone)]
pub struct LeasedQueue {
    /// The app.
    pub app: App,
    /// The integration, credentials sealed.
    pub integration: Integration,
    /// State of the queue.
    pub state: QueueState,
}

/// A pending delivery with what its network may know; nothing when its event is gone.
#[derive(Debug, Clone)]
pub struct GatheredDelivery {
    /// The delivery.
    pub pending: PendingDelivery,
    /// What its network may know. Its page is a web event's own; for the others it follows from `link`.
    pub conversion: Option<Conversion>,
    /// The link that its click was on.
    pub link: Option<Link>,
}

/// The outbox.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Queues of a network that somebody should work on: switched on, not paused, not held, with something due. Those that were
    /// worked on longest ago come first.
    async fn due_queues(
        &self,
        network: Network,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<QueueRef>>;

    /// Takes a queue; nothing when somebody else has it, or it is paused or off.
    async fn lease_queue(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Option<LeasedQueue>>;

    /// Keeps a queue for longer; false when it is somebody else's by now.
    async fn renew_lease(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        until: Timestamp,
    ) -> StoreResult<bool>;

    /// Gives a queue back.
    async fn release_queue(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
    ) -> StoreResult<()>;

    /// What is due, oldest first. Nothing when the queue is somebody else's by now, or its integration is no longer the
    /// one that was leased: changed, or switched off.
    async fn due_deliveries(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        revision: i64,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Option<Vec<PendingDelivery>>>;

    /// Notes that these are being sent: whoever finds the note later knows that an attempt was made. Gives those that
    /// are still to be sent; nothing when the queue is somebody else's by now.
    async fn begin_sending(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        deliveries: Vec<DeliveryId>,
        at: Timestamp,
    ) -> StoreResult<Option<Vec<DeliveryId>>>;

    /// What the network may know of these, as it is now. In the same order.
    async fn gather_conversions(
        &self,
        queue: QueueRef,
        pending: Vec<PendingDelivery>,
    ) -> StoreResult<Vec<GatheredDelivery>>;

    /// Writes what came of deliveries; false, and nothing is written, when the queue is somebody else's by now.
    async fn settle_deliveries(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        settlement: DeliverySettlement,
    ) -> StoreResult<bool>;

    /// Requests to be asked about.
    async fn due_status_checks(
        &self,
        queue: QueueRef,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<StatusCheck>>;

    /// Writes what came of asking; false when the queue is somebody else's by now.
    async fn settle_status_check(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        request: String,
        outcome: CheckOutcome,
        at: Timestamp,
    ) -> StoreResult<bool>;

    /// Counts the integrations of each network that a pause has stopped.
    async fn paused_integrations(&self) -> StoreResult<Vec<(Network, u64)>>;

    /// Ends what grew too old in queues that nobody works on, at most so many. Gives how many ended.
    async fn expire_deliveries(&self, now: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Drops deliveries that came to their end before this, and hours of counts; at most so many. Gives how many.
    async fn remove_deliveries(&self, settled_before: Timestamp, limit: u32) -> StoreResult<u64>;
}
