//! Counts paused integrations for the metrics.

use super::periodic::{Activity, Worker};
use crate::metrics;
use std::sync::Arc;
use std::time::Duration;
use tributary_store::Outbox;

/// Counts them.
pub(super) struct PausedWorker {
    store: Arc<dyn Outbox>,
}

impl PausedWorker {
    pub(super) fn new(store: Arc<dyn Outbox>) -> Self {
        Self { store }
    }
}

impl Worker for PausedWorker {
    const NAME: &'static str = "paused";
    const PERIOD: Duration = Duration::from_secs(15);

    async fn activate(&mut self) -> anyhow::Result<Activity> {
        for (network, count) in self.store.paused_integrations().await? {
            metrics::integrations_paused(network, count);
        }
        Ok(Activity::Done)
    }
}
