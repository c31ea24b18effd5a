//! Gives audit entries without a place their place in the chain of their organization: those from
//! before the chain was introduced, and those of nodes of the earlier version during an upgrade.

use super::periodic::{Worker, WorkerActivity};
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::Store;

/// Entries per transaction.
const BATCH: u32 = 500;

/// Entries that retention removes within this time get no place. A node of the earlier version
/// removes entries without leaving an anchor; an upgrade is over before it comes to an entry with a
/// place.
const LONGEST_UPGRADE: Duration = Duration::from_hours(7 * 24);

/// Gives entries their place.
pub(super) struct AuditChainWorker {
    store: Arc<dyn Store>,
    runtime: Runtime,
    retention: Duration,
}

impl AuditChainWorker {
    pub(super) const fn new(store: Arc<dyn Store>, runtime: Runtime, retention: Duration) -> Self {
        Self {
            store,
            runtime,
            retention,
        }
    }

    /// Returns the time from which entries get a place.
    fn chained_from(&self) -> Timestamp {
        let now = self.runtime.now();
        now.minus(self.retention.saturating_sub(LONGEST_UPGRADE))
    }
}

impl Worker for AuditChainWorker {
    const NAME: &'static str = "audit_chain";
    const PERIOD: Duration = Duration::from_mins(1);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let chained = self
            .store
            .chain_audit_entries(self.chained_from(), BATCH)
            .await?;
        Ok(match chained {
            0 => WorkerActivity::Idle,
            _ => WorkerActivity::More,
        })
    }
}
