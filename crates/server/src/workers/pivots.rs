//! Fills the pivots with clicks and events that were recorded by versions without pivots.
//!
//! Every node with the role `forward` runs this worker. The database discards a step that another
//! node was faster with. The worker has nothing to do once the history is complete.

use super::periodic::{Worker, WorkerActivity};
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::runtime::Runtime;
use tributary_store::{Store, StoreResult};

/// Apps looked at per run. The next run continues with the others.
const APPS_MAX: u32 = 100;
/// Steps per app and run, so that every app makes progress.
const STEPS_MAX: u32 = 50;
/// Pause between steps, for other writers.
const STEP_PAUSE: Duration = Duration::from_millis(100);

/// Fills the pivots.
pub(super) struct PivotsWorker {
    store: Arc<dyn Store>,
    runtime: Runtime,
}

impl PivotsWorker {
    pub(super) fn new(store: Arc<dyn Store>, runtime: Runtime) -> Self {
        Self { store, runtime }
    }
}

impl Worker for PivotsWorker {
    const NAME: &'static str = "pivots";
    const PERIOD: Duration = Duration::from_mins(5);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let apps = self
            .store
            .apps_to_fill(self.runtime.now(), APPS_MAX)
            .await?;
        if apps.is_empty() {
            return Ok(WorkerActivity::Idle);
        }
        let mut outcome: StoreResult<()> = Ok(());
        for app in apps {
            for _ in 0..STEPS_MAX {
                match self.store.fill_pivots(app).await {
                    Ok(true) => tokio::time::sleep(STEP_PAUSE).await,
                    Ok(false) => {
                        tracing::info!(%app, "pivots of earlier events are complete");
                        break;
                    }
                    Err(error) => {
                        // The other apps do not wait for this one.
                        outcome = outcome.and(Err(error));
                        break;
                    }
                }
            }
        }
        outcome?;
        Ok(WorkerActivity::More)
    }
}
