//! Leases of queues and of their parts.

use super::columns::row;
use crate::{LeaseId, QueueRef, StoreError};
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::sharing::{PartLease, QueuePart, QueueSharing};
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// The lease columns of `queues`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct QueueLeaseRow {
        pub lease_id: Option<[u8; 16]>,
        pub leased_until: i64,
        pub sharing: String,
    }
}

row! {
    /// A row of `queue_parts`, without the queue's key.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct QueuePartRow {
        pub part: i64,
        pub split_id: [u8; 16],
        pub lease_id: Option<[u8; 16]>,
        pub leased_until: i64,
    }
}

/// State and lease of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLease {
    /// State of the queue.
    pub state: QueueState,
    /// The process that holds the whole queue, or the split whose parts processes hold. `None` if
    /// the queue was released.
    pub lease: Option<LeaseId>,
    /// End of the lease, or of the last of the parts' leases.
    pub until: Timestamp,
    /// Whether nodes share the queue.
    pub sharing: QueueSharing,
}

/// Latest lease of a part of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPartLease {
    /// The part.
    pub part: QueuePart,
    /// The split that the lease belongs to. The lease is valid as long as the queue is in the same
    /// split.
    pub split: LeaseId,
    /// The process that holds the part; `None` if it was released.
    pub lease: Option<LeaseId>,
    /// End of the lease.
    pub until: Timestamp,
}

impl QueueLeaseRow {
    /// Reads the lease of a queue with this state.
    pub fn read(self, queue: QueueRef, state: QueueState) -> Result<StoredLease, StoreError> {
        let sharing = QueueSharing::parse(&self.sharing);
        Ok(StoredLease {
            state,
            lease: self.lease_id.map(LeaseId),
            until: Timestamp::from_millis(self.leased_until),
            sharing: sharing.ok_or_else(|| StoreError::corrupt("queues", "sharing", queue.app))?,
        })
    }
}

impl QueuePartRow {
    /// Reads the lease of a part.
    pub fn read(self, queue: QueueRef) -> Result<StoredPartLease, StoreError> {
        let part = QueuePart::from_number(self.part);
        Ok(StoredPartLease {
            part: part.ok_or_else(|| StoreError::corrupt("queue_parts", "part", queue.app))?,
            split: LeaseId(self.split_id),
            lease: self.lease_id.map(LeaseId),
            until: Timestamp::from_millis(self.leased_until),
        })
    }
}

impl StoredLease {
    /// Returns whether a part's lease counts: it belongs to the split that the queue is in.
    pub fn is_current(&self, part: &StoredPartLease) -> bool {
        self.lease == Some(part.split)
    }

    /// Returns the parts' leases as facts for decisions.
    pub fn part_facts(&self, parts: &[StoredPartLease]) -> Vec<PartLease> {
        let fact = |part: &StoredPartLease| PartLease {
            part: part.part,
            is_held: part.lease.is_some() && self.is_current(part),
            until: part.until,
        };
        parts.iter().map(fact).collect()
    }
}
