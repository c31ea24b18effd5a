//! Leases of queues and of their parts.
//!
//! A process leases a queue as a whole by writing its lease id into the queue's row. If several
//! processes share the queue, that row contains the id of the split, and the row of each part
//! contains the id of the split and the process's lease id. A part's lease is valid only as long as
//! the queue is in the same split. So a process that takes the whole queue ends all leases of
//! parts, even if its version knows nothing of parts. The row of the queue is leased until the last
//! part's lease ends.

use crate::admin::read_integration;
use crate::tables::Tables;
use tributary_domain::forwarding::queue::{LeaseDecision, QueueState, decide_lease};
use tributary_domain::forwarding::sharing::{
    LeaseFacts, QueueOccupancy, QueueShare, QueueSharing, ShareDecision, SharingFacts,
    lease_end_without,
};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{StoredLease, StoredPartLease};
use tributary_store::{LeaseId, LeaseRequest, LeasedQueue, QueueRef, StoreError};

/// Leases a queue or a part of it. Returns `None` when other processes hold the leases, the queue
/// is paused or backs off, or the integration is disabled or incomplete.
pub async fn lease_queue<T: Tables>(
    tables: &T,
    queue: QueueRef,
    request: LeaseRequest,
) -> Result<Option<LeasedQueue>, T::Failure> {
    let now = request.now;
    let integration = read_integration(tables, queue).await?;
    match decide_lease(Some(&integration), now) {
        LeaseDecision::Take => {}
        LeaseDecision::Postpone(until) => {
            tables.postpone_queue(queue, now, until).await?;
            return Ok(None);
        }
        LeaseDecision::Refuse => return Ok(None),
    }
    let stored = lock_or_insert(tables, queue).await?;
    let parts = if stored.lease.is_some() || stored.sharing == QueueSharing::Wanted {
        tables.part_leases(queue).await?
    } else {
        Vec::new()
    };
    let mut facts = SharingFacts {
        state: stored.state.clone(),
        sharing: stored.sharing,
        leased_until: stored.lease.map(|_| stored.until),
        parts: stored.part_facts(&parts),
        due: 0,
        shared_from: request.shared_from,
    };
    // Other nodes wait for the queue's lock while deliveries are counted.
    if facts.is_refused(now) {
        return Ok(None);
    }
    facts.due = tables.count_due(queue, now, request.shared_from).await?;
    let (share, sharing) = match facts.decide(now) {
        ShareDecision::Refuse => return Ok(None),
        ShareDecision::Announce(sharing) => {
            tables.write_sharing(queue, sharing).await?;
            return Ok(None);
        }
        ShareDecision::Take { share, sharing } => (share, sharing),
    };
    let is_split = facts.occupancy(now) == QueueOccupancy::Parts;
    let current = Some(&stored).filter(|_| is_split);
    write_lease(tables, queue, request, (share, sharing), current).await?;
    let mut state = stored.state;
    state.clear_ended_backoff(now);
    let missing = || StoreError::corrupt("queues", "app_id", queue.app);
    Ok(Some(LeasedQueue {
        app: tables.app(queue.app).await?.ok_or_else(missing)?,
        integration,
        state,
        share,
    }))
}

async fn lock_or_insert<T: Tables>(tables: &T, queue: QueueRef) -> Result<StoredLease, T::Failure> {
    if let Some(stored) = tables.lock_queue_lease(queue).await? {
        return Ok(stored);
    }
    tables.insert_queue(queue).await?;
    let missing = || StoreError::corrupt("queues", "network", queue.app);
    let stored = tables.lock_queue_lease(queue).await?;
    Ok(stored.ok_or_else(missing)?)
}

/// Writes a new lease. `current` is the split that a part is added to, if one is in progress.
async fn write_lease<T: Tables>(
    tables: &T,
    queue: QueueRef,
    request: LeaseRequest,
    (share, sharing): (QueueShare, QueueSharing),
    current: Option<&StoredLease>,
) -> Result<(), T::Failure> {
    let (mut holder, mut until) = (request.id, request.until);
    if let QueueShare::Part(part) = share {
        holder = request.id.of_split();
        if let Some(stored) = current {
            holder = stored.lease.unwrap_or(holder);
            until = until.max(stored.until);
        }
        let part = StoredPartLease {
            part,
            split: holder,
            lease: Some(request.id),
            until: request.until,
        };
        tables.write_part_lease(queue, part).await?;
    }
    let written = tables.write_queue_lease(queue, Some(holder), until, sharing);
    written.await
}

/// Locks a queue. Returns its state if this lease holds it or a part of it.
pub async fn lock_lease<T: Tables>(
    tables: &T,
    queue: QueueRef,
    lease: LeaseId,
) -> Result<Option<QueueState>, T::Failure> {
    let Some(stored) = tables.lock_queue_lease(queue).await? else {
        return Ok(None);
    };
    let share = held_share(tables, queue, lease, &stored).await?;
    Ok(share.map(|_| stored.state))
}

/// Returns what the holder of a lease may continue with. The integration must have this revision.
pub async fn find_share<T: Tables>(
    tables: &T,
    queue: QueueRef,
    lease: LeaseId,
    revision: i64,
    now: Timestamp,
) -> Result<Option<QueueShare>, T::Failure> {
    let Some((stored, version)) = tables.queue_lease(queue).await? else {
        return Ok(None);
    };
    let facts = LeaseFacts {
        share: held_share(tables, queue, lease, &stored).await?,
        version,
        state: stored.state,
        sharing: stored.sharing,
    };
    Ok(facts.continued_share(revision, now))
}

/// Extends a lease. Returns false when another process holds the queue or the part now.
pub async fn renew_lease<T: Tables>(
    tables: &T,
    queue: QueueRef,
    lease: LeaseId,
    until: Timestamp,
) -> Result<bool, T::Failure> {
    if tables.renew_whole(queue, lease, until).await? {
        return Ok(true);
    }
    let Some((stored, part, _)) = lock_part(tables, queue, lease).await? else {
        return Ok(false);
    };
    let renewed = StoredPartLease { until, ..part };
    tables.write_part_lease(queue, renewed).await?;
    let until = stored.until.max(until);
    let written = tables.write_queue_lease(queue, stored.lease, until, stored.sharing);
    written.await?;
    Ok(true)
}

/// Releases a queue or the leased part of it. Does nothing when another process holds it now.
pub async fn release_queue<T: Tables>(
    tables: &T,
    queue: QueueRef,
    lease: LeaseId,
    now: Timestamp,
) -> Result<(), T::Failure> {
    if tables.release_whole(queue, lease, now).await? {
        return Ok(());
    }
    let Some((stored, part, parts)) = lock_part(tables, queue, lease).await? else {
        return Ok(());
    };
    let released = StoredPartLease {
        lease: None,
        until: now,
        ..part
    };
    tables.write_part_lease(queue, released).await?;
    let others = lease_end_without(&stored.part_facts(&parts), part.part, now);
    let lease = stored.lease.filter(|_| others.is_some());
    let until = others.unwrap_or(now);
    let written = tables.write_queue_lease(queue, lease, until, stored.sharing);
    written.await
}

/// Returns what a lease covers; `None` if it was lost.
async fn held_share<T: Tables>(
    tables: &T,
    queue: QueueRef,
    lease: LeaseId,
    stored: &StoredLease,
) -> Result<Option<QueueShare>, T::Failure> {
    if stored.lease.is_none() || stored.lease == Some(lease) {
        return Ok(stored.lease.map(|_| QueueShare::Whole));
    }
    let parts = tables.part_leases(queue).await?;
    let part = held_part(stored, &parts, lease);
    Ok(part.map(|part| QueueShare::Part(part.part)))
}

fn held_part(
    stored: &StoredLease,
    parts: &[StoredPartLease],
    lease: LeaseId,
) -> Option<StoredPartLease> {
    let is_held = |part: &&StoredPartLease| part.lease == Some(lease) && stored.is_current(part);
    parts.iter().find(is_held).copied()
}

/// Locks a queue. Returns its lease and the leases of its parts if this lease holds one of them.
async fn lock_part<T: Tables>(
    tables: &T,
    queue: QueueRef,
    lease: LeaseId,
) -> Result<Option<(StoredLease, StoredPartLease, Vec<StoredPartLease>)>, T::Failure> {
    let Some(stored) = tables.lock_queue_lease(queue).await? else {
        return Ok(None);
    };
    let parts = tables.part_leases(queue).await?;
    let part = held_part(&stored, &parts, lease);
    Ok(part.map(|part| (stored, part, parts)))
}
