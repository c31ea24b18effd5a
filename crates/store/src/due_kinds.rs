//! Which kinds of work are due.

use crate::StoreResult;
use async_trait::async_trait;
use std::collections::BTreeSet;
use tributary_domain::due_work::WorkKind;
use tributary_domain::vocabulary::time::Timestamp;

/// One cheap poll for all workers.
#[async_trait]
pub trait DueKinds: Send + Sync {
    /// Returns the kinds of work that are due and can be taken. On a distributed database, a kind
    /// may be returned without due work.
    async fn due_kinds(&self, now: Timestamp) -> StoreResult<BTreeSet<WorkKind>>;
}
