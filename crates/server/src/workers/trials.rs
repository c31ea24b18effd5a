//! Lets trials count that are still alive when their hold is over. When that is stands in the database, so a restart
//! loses none.

use super::periodic::{Activity, Worker};
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::outside::Source;
use tributary_store::Store;

/// Trials of one transaction.
const BATCH: u32 = 100;
/// Batches of one activation.
const BATCHES_MAX: u32 = 1_000;

/// Lets trials count.
pub(super) struct TrialsWorker {
    store: Arc<dyn Store>,
    source: Source,
}

impl TrialsWorker {
    pub(super) fn new(store: Arc<dyn Store>, source: Source) -> Self {
        Self { store, source }
    }
}

impl Worker for TrialsWorker {
    const NAME: &'static str = "trials";
    const PERIOD: Duration = Duration::from_secs(5);

    async fn activate(&mut self) -> anyhow::Result<Activity> {
        let mut settled = 0;
        for _ in 0..BATCHES_MAX {
            let count = self.store.settle_trials(self.source.now(), BATCH).await?;
            settled += count;
            if count < u64::from(BATCH) {
                break;
            }
        }
        if settled == 0 {
            return Ok(Activity::Idle);
        }
        tracing::info!(settled, "trials were alive when they were due");
        Ok(Activity::Done)
    }
}
