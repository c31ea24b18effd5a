//! Marks deliveries as expired if they became too old while their integration was disabled, paused
//! or not fully configured.

use super::periodic::{Worker, WorkerActivity};
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::runtime::Runtime;
use tributary_store::Outbox;

/// Deliveries per transaction.
const BATCH: u32 = 500;
/// Maximum number of batches per run.
const BATCHES_MAX: u32 = 1_000;

/// Expires old deliveries.
pub(super) struct DeliveriesWorker {
    store: Arc<dyn Outbox>,
    runtime: Runtime,
}

impl DeliveriesWorker {
    pub(super) fn new(store: Arc<dyn Outbox>, runtime: Runtime) -> Self {
        Self { store, runtime }
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
        tracing::info!(ended, "expired deliveries that could not be sent in time");
        Ok(WorkerActivity::Done)
    }
}
