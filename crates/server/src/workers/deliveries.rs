//! Ends deliveries that grew too old in queues that nobody works on: switched off, paused, or incomplete.

use super::periodic::{Worker, WorkerActivity};
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::runtime::Runtime;
use tributary_store::Outbox;

/// Deliveries of one transaction.
const BATCH: u32 = 500;
/// Batches of one activation.
const BATCHES_MAX: u32 = 1_000;

/// Ends what is too old.
pub(super) struct DeliveriesWorker {
    store: Arc<dyn Outbox>,
    runtime: Runtime,
}

impl DeliveriesWorker {
    pub(super) fn new(store: Arc<dyn Outbox>, source: Runtime) -> Self {
        Self {
            store,
            runtime: source,
        }
    }
}

impl Worker for DeliveriesWorker {
    const NAME: &'static str = "deliveries";
    const PERIOD: Duration = Duration::from_mins(10);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let mut ended = 0;
        for _ in 0..BATCHES_MAX {
            let count = self
                .store
                .expire_deliveries(self.runtime.now(), BATCH)
                .await?;
            ended += count;
            if count < u64::from(BATCH) {
                break;
            }
        }
        if ended == 0 {
            return Ok(WorkerActivity::Idle);
        }
        tracing::info!(ended, "deliveries grew too old before they could be sent");
        Ok(WorkerActivity::Done)
    }
}
