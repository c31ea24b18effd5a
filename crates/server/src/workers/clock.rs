//! Ends mistaken waits after this node's clock was set back.
//!
//! While a clock is ahead, the node stores leases and back-offs that end hours or days late. Once the
//! clock is right again, they would block the queues until then.

use super::periodic::{Worker, WorkerActivity};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_domain::forwarding::waits::ClockWatch;
use tributary_domain::runtime::Runtime;
use tributary_store::Outbox;

/// Looks at the clock.
pub(super) struct ClockWorker {
    store: Arc<dyn Outbox>,
    runtime: Runtime,
    started_at: Instant,
    watch: ClockWatch,
}

impl ClockWorker {
    pub(super) fn new(store: Arc<dyn Outbox>, runtime: Runtime) -> Self {
        Self {
            store,
            runtime,
            started_at: Instant::now(),
            watch: ClockWatch::default(),
        }
    }
}

impl Worker for ClockWorker {
    const NAME: &'static str = "clock";
    /// Comparing the clocks costs nothing.
    const PERIOD: Duration = Duration::from_secs(1);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let (now, since_start) = (self.runtime.now(), self.started_at.elapsed());
        if !self.watch.is_look_due(now, since_start) {
            return Ok(WorkerActivity::Idle);
        }
        let ended = self.store.end_mistaken_waits(now).await?;
        self.watch.looked(since_start);
        if ended > 0 {
            tracing::warn!(
                ended,
                "ended waits of queues that a clock ahead of time has stored"
            );
        }
        Ok(WorkerActivity::Done)
    }
}
