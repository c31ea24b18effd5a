//! Step one: leases a queue, or a part of it, and reads its due deliveries.

use crate::{ForwarderState, metrics};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_domain::forwarding::limits::LEASE_MARGIN;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{GatheredDelivery, LeaseId, LeasedQueue, QueueRef, StoreResult};

/// Interval between renewals.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// A queue, or a part of it, leased by this process.
pub(crate) struct Lease {
    pub(crate) shared: Arc<ForwarderState>,
    pub(crate) queue: QueueRef,
    pub(crate) id: LeaseId,
    pub(crate) leased: LeasedQueue,
    /// Cancelled when the lease is lost or the server shuts down.
    pub(crate) stopping: CancellationToken,
}

/// Leases a queue, or a part of it if nodes share it; `None` if other processes hold it, or the
/// queue is paused or disabled.
pub(crate) async fn acquire(
    shared: Arc<ForwarderState>,
    queue: QueueRef,
    stopping: &CancellationToken,
) -> StoreResult<Option<Lease>> {
    let id = LeaseId(shared.parts.runtime.random_bytes());
    let now = shared.parts.runtime.now();
    let request = queue.lease_request(id, now, lease_end(queue, now));
    let Some(leased) = shared.parts.store.lease_queue(queue, request).await? else {
        return Ok(None);
    };
    metrics::count_leased(queue.network, leased.share);
    Ok(Some(Lease {
        shared,
        queue,
        id,
        leased,
        stopping: stopping.child_token(),
    }))
}

fn lease_end(queue: QueueRef, now: Timestamp) -> Timestamp {
    now.plus(queue.network.request_timeout() + LEASE_MARGIN)
}

impl Lease {
    pub(crate) fn now(&self) -> Timestamp {
        self.shared.parts.runtime.now()
    }

    /// Returns the leased integration's revision. The credentials may differ between revisions.
    pub(crate) const fn revision(&self) -> i64 {
        self.leased.integration.revision.number()
    }

    /// Renews the lease repeatedly. Returns when the lease was lost to another process; from then
    /// on, this process may neither send nor write anything.
    pub(crate) async fn renew(&self) {
        let store = &self.shared.parts.store;
        loop {
            tokio::time::sleep(RENEWAL_INTERVAL).await;
            let renewed = store.renew_lease(self.queue, self.id, lease_end(self.queue, self.now()));
            // If the database cannot be reached, this process still holds the lease until the lease
            // expires.
            if matches!(renewed.await, Ok(false)) {
                self.stopping.cancel();
                return;
            }
        }
    }

    /// Returns due deliveries with their conversion data; empty if none is due, the lease was
    /// lost, the integration was changed or disabled, another holder paused or backed off the
    /// queue, or another node asks for a share of it.
    pub(crate) async fn take_due(
        &self,
        limit: usize,
    ) -> StoreResult<Option<Vec<GatheredDelivery>>> {
        let store = &self.shared.parts.store;
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let due = store.due_deliveries(self.queue, self.id, self.revision(), self.now(), limit);
        match due.await? {
            Some(pending) if !pending.is_empty() => {
                let gathered = store.gather_conversions(self.queue, pending);
                gathered.await.map(Some)
            }
            pending => Ok(pending.map(|_| Vec::new())),
        }
    }

    /// Releases the queue or the part of it.
    pub(crate) async fn release(&self) -> StoreResult<()> {
        let store = &self.shared.parts.store;
        store.release_queue(self.queue, self.id, self.now()).await
    }
}
