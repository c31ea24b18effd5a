//! Settles trials that are still active when their hold period ends. The due times are in the
//! database, so a restart does not lose any.

use super::periodic::{Worker, WorkerActivity};
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::due_work::WorkKind;
use tributary_domain::runtime::Runtime;
use tributary_store::Store;

/// Trials per transaction.
const BATCH: u32 = 100;
/// Maximum number of batches per run.
const BATCHES_MAX: u32 = 1_000;

/// Settles trials.
pub(super) struct TrialsWorker {
    store: Arc<dyn Store>,
    runtime: Runtime,
}

impl TrialsWorker {
    pub(super) fn new(store: Arc<dyn Store>, runtime: Runtime) -> Self {
        Self { store, runtime }
    }
}

impl Worker for TrialsWorker {
    const NAME: &'static str = "trials";
    const PERIOD: Duration = Duration::from_secs(5);
    const KIND: Option<WorkKind> = Some(WorkKind::Trials);

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
        tracing::info!(settled, "evaluated trials whose qualification delay ended");
        Ok(WorkerActivity::Done)
    }
}
