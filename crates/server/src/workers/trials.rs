//! Lets trials count that are still alive when their hold is over. When that is stands in the database, so a restart
//! loses none.

use super::periodic::{Worker, WorkerActivity};
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::runtime::Runtime;
use tributary_store::Store;

/// Trials of one transaction.
const BATCH: u32 = 100;
/// Batches of one activation.
const BATCHES_MAX: u32 = 1_000;

/// Lets trials count.
pub(super) struct TrialsWorker {
    store: Arc<dyn Store>,
    runtime: Runtime,
}

impl TrialsWorker {
    pub(super) fn new(store: Arc<dyn Store>, source: Runtime) -> Self {
        Self {
            store,
            runtime: source,
        }
    }
}

impl Worker for TrialsWorker {
    const NAME: &'static str = "trials";
    const PERIOD: Duration = Duration::from_secs(5);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let mut settled = 0;
        for _ in 0..BATCHES_MAX {
            let count = self.store.settle_trials(self.runtime.now(), BATCH).await?;
            settled += count;
            if count < u64::from(BATCH) {
                break;
            }
        }
        if settled == 0 {
            return Ok(WorkerActivity::Idle);
        }
        tracing::info!(settled, "trials were alive when they were due");
        Ok(WorkerActivity::Done)
    }
}
