//! Fills the pivots with clicks and events that were recorded by versions without pivots, and counts
//! the payers of installs that were recorded by versions without payers.
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

/// Fills the pivots and the payers.
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
        let without_payers = self
            .store
            .apps_without_payers(self.runtime.now(), APPS_MAX)
            .await?;
        if apps.is_empty() && without_payers.is_empty() {
            return Ok(WorkerActivity::Idle);
        }
        let mut outcome: StoreResult<()> = Ok(());
        // The other apps do not wait for one that fails.
        for app in apps {
            let filled = repeat(|| self.store.fill_pivots(app)).await;
            if matches!(filled, Ok(false)) {
                tracing::info!(%app, "pivots of earlier events are complete");
            }
            outcome = outcome.and(filled.map(drop));
        }
        for app in without_payers {
            let filled = repeat(|| self.store.fill_payers(app)).await;
            if matches!(filled, Ok(false)) {
                tracing::info!(%app, "payers of earlier installs are complete");
            }
            outcome = outcome.and(filled.map(drop));
        }
        outcome?;
        Ok(WorkerActivity::More)
    }
}

/// Runs a limited number of steps. Returns whether more are left.
async fn repeat<F: Future<Output = StoreResult<bool>>>(step: impl Fn() -> F) -> StoreResult<bool> {
    for _ in 0..STEPS_MAX {
        if !step().await? {
            return Ok(false);
        }
        tokio::time::sleep(STEP_PAUSE).await;
    }
    Ok(true)
}
