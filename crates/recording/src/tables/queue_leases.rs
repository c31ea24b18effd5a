//! Leases of queues and of their parts.

use super::EngineTransaction;
use tributary_domain::forwarding::settlement::IntegrationVersion;
use tributary_domain::forwarding::sharing::QueueSharing;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{StoredLease, StoredPartLease};
use tributary_store::{LeaseId, QueueRef};

/// Leases of queues and of their parts. A transaction that changes the lease of a part locks the
/// queue first.
pub trait QueueLeaseTable: EngineTransaction {
    /// Locks a queue and returns its state and lease, if the queue is stored. Until the transaction
    /// ends, no other process can lease the queue or a part of it, or change its state.
    async fn lock_queue_lease(&self, queue: QueueRef)
    -> Result<Option<StoredLease>, Self::Failure>;

    /// Returns the state and lease of a queue and the version of its integration, without a lock.
    async fn queue_lease(
        &self,
        queue: QueueRef,
    ) -> Result<Option<(StoredLease, Option<IntegrationVersion>)>, Self::Failure>;

    /// Stores a queue with the default state, unless it is stored already.
    async fn insert_queue(&self, queue: QueueRef) -> Result<(), Self::Failure>;

    /// Returns the latest leases of a queue's parts.
    async fn part_leases(&self, queue: QueueRef) -> Result<Vec<StoredPartLease>, Self::Failure>;

    /// Counts a queue's due deliveries, up to a maximum.
    async fn count_due(
        &self,
        queue: QueueRef,
        now: Timestamp,
        max: u32,
    ) -> Result<u32, Self::Failure>;

    /// Writes the lease of a locked queue.
    async fn write_queue_lease(
        &self,
        queue: QueueRef,
        lease: Option<LeaseId>,
        until: Timestamp,
        sharing: QueueSharing,
    ) -> Result<(), Self::Failure>;

    /// Writes whether a locked queue is shared.
    async fn write_sharing(
        &self,
        queue: QueueRef,
        sharing: QueueSharing,
    ) -> Result<(), Self::Failure>;

    /// Writes the lease of a part of a locked queue.
    async fn write_part_lease(
        &self,
        queue: QueueRef,
        part: StoredPartLease,
    ) -> Result<(), Self::Failure>;

    /// Extends the lease of a whole queue. Returns false if this lease does not hold it.
    async fn renew_whole(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        until: Timestamp,
    ) -> Result<bool, Self::Failure>;

    /// Releases a whole queue. Keeps the time of the release, so that the least recently served
    /// queue is next. Returns false if this lease does not hold the queue.
    async fn release_whole(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
    ) -> Result<bool, Self::Failure>;
}
