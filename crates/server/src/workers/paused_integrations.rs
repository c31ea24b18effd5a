//! Counts paused integrations for the metrics.

use super::periodic::{Worker, WorkerActivity};
use crate::metrics;
use std::sync::Arc;
use std::time::Duration;
use tributary_store::Outbox;

/// Counts paused integrations.
pub(super) struct PausedIntegrationsWorker {
    store: Arc<dyn Outbox>,
}

impl PausedIntegrationsWorker {
    pub(super) fn new(store: Arc<dyn Outbox>) -> Self {
        Self { store }
    }
}

impl Worker for PausedIntegrationsWorker {
    const NAME: &'static str = "paused";
    const PERIOD: Duration = Duration::from_secs(15);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        for (network, count) in self.store.paused_integrations().await? {
            metrics::set_paused_integrations(network, count);
        }
        Ok(WorkerActivity::Done)
    }
}
