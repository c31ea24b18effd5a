//! Step one: holds a queue, and takes what is due from it.

use crate::ForwarderState;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{GatheredDelivery, LeaseId, LeasedQueue, QueueRef, StoreResult};

/// The lease lasts as long as a request may take, and this. It is renewed long before it ends.
const LEASE_MARGIN: Duration = Duration::from_secs(15);
/// How often it is renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// A queue that this process holds.
pub(crate) struct Lease {
    pub(crate) shared: Arc<ForwarderState>,
    pub(crate) queue: QueueRef,
    pub(crate) id: LeaseId,
    pub(crate) leased: LeasedQueue,
    /// Cancelled when the queue is lost, or the server stops.
    pub(crate) stopping: CancellationToken,
}

/// Takes a queue; nothing when another process has it, or it is paused or off.
pub(crate) async fn acquire(
    shared: Arc<ForwarderState>,
    queue: QueueRef,
    stopping: &CancellationToken,
) -> StoreResult<Option<Lease>> {
    let id = LeaseId(shared.parts.runtime.random_bytes());
    let now = shared.parts.runtime.now();
    let leased = shared
        .parts
        .store
        .lease_queue(queue, id, now, lease_end(queue, now));
    let leased = leased.await?;
    Ok(leased.map(|leased| Lease {
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

    /// Revision of the integration that was leased. Another one has other credentials.
    pub(crate) const fn revision(&self) -> i64 {
        self.leased.integration.revision.number()
    }

    /// Keeps the queue. Ends when another process has it: then nothing more is sent or written.
    pub(crate) async fn renew(&self) {
        let store = &self.shared.parts.store;
        loop {
            tokio::time::sleep(RENEWAL_INTERVAL).await;
            let renewed = store.renew_lease(self.queue, self.id, lease_end(self.queue, self.now()));
            // A database that does not answer takes nothing away; the lease itself runs out then.
            if matches!(renewed.await, Ok(false)) {
                self.stopping.cancel();
                return;
            }
        }
    }

    /// Returns what is due, with what the network may know of it; nothing when there is nothing, or the queue may not
    /// be worked on any more.
    pub(crate) async fn take_due(&self, limit: usize) -> StoreResult<Vec<GatheredDelivery>> {
        let store = &self.shared.parts.store;
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let due = store.due_deliveries(self.queue, self.id, self.revision(), self.now(), limit);
        match due.await? {
            Some(pending) if !pending.is_empty() => {
                store.gather_conversions(self.queue, pending).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Gives the queue back.
    pub(crate) async fn release(&self) -> StoreResult<()> {
        let store = &self.shared.parts.store;
        store.release_queue(self.queue, self.id, self.now()).await
    }
}
