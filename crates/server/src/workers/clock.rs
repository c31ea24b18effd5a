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
    /// Whether the clock was set back, and the waits have not been ended yet.
    has_to_look: bool,
}

impl ClockWorker {
    pub(super) fn new(store: Arc<dyn Outbox>, runtime: Runtime) -> Self {
        Self {
            store,
            runtime,
            started_at: Instant::now(),
            watch: ClockWatch::default(),
            has_to_look: false,
        }
    }
}

impl Worker for ClockWorker {
    const NAME: &'static str = "clock";
    /// Comparing the clocks costs nothing.
    const PERIOD: Duration = Duration::from_secs(5);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let now = self.runtime.now();
        self.has_to_look |= self.watch.was_set_back(now, self.started_at.elapsed());
        if !self.has_to_look {
            return Ok(WorkerActivity::Idle);
        }
        let ended = self.store.end_mistaken_waits(now).await?;
        self.has_to_look = false;
        if ended > 0 {
            tracing::warn!(
                ended,
                "ended waits of queues that a clock ahead of time has stored"
            );
        }
        Ok(WorkerActivity::Done)
    }
}
