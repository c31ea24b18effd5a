//! Asks the database which kinds of work are due, for the forwarder and the other workers.
//!
//! One statement answers for all of them. If each worker asked, an idle node would run dozens of
//! statements a second.

use crate::POLL_RETRY_WAIT;
use futures_util::FutureExt as _;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tributary_domain::due_work::WorkKind;
use tributary_domain::runtime::Runtime;
use tributary_store::DueKinds;

/// Interval between polls. Events accumulate for this long, so that they can share requests.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(750);

/// Polls the database.
pub struct Poller {
    store: Arc<dyn DueKinds>,
    runtime: Runtime,
    found: watch::Sender<BTreeSet<WorkKind>>,
}

/// Receives the result of each poll.
#[derive(Clone)]
pub struct DueReceiver(watch::Receiver<BTreeSet<WorkKind>>);

impl Poller {
    /// Creates a poller. It polls while it [runs](Self::run).
    pub fn new(store: Arc<dyn DueKinds>, runtime: Runtime) -> Self {
        Self {
            store,
            runtime,
            found: watch::Sender::default(),
        }
    }

    /// Returns a receiver for the polls to come.
    pub fn subscribe(&self) -> DueReceiver {
        DueReceiver(self.found.subscribe())
    }

    /// Polls until `stop` completes.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut is_failing = false;
        loop {
            let wait = if is_failing {
                POLL_RETRY_WAIT
            } else {
                POLL_INTERVAL
            };
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = tokio::time::sleep(wait) => {}
            }
            // A panic counts as a failure. If polling stopped, nothing would be sent.
            let poll = AssertUnwindSafe(self.store.due_kinds(self.runtime.now()));
            let failure = match poll.catch_unwind().await {
                Ok(Ok(kinds)) => {
                    self.found.send_replace(kinds);
                    None
                }
                Ok(Err(error)) => Some(error.to_string()),
                Err(_panic) => Some("the poll panicked".to_owned()),
            };
            log_change(is_failing, failure.as_deref());
            is_failing = failure.is_some();
        }
    }
}

/// Logs when polls begin to fail, and when they work again.
fn log_change(was_failing: bool, failure: Option<&str>) {
    match failure {
        Some(error) if !was_failing => {
            tracing::warn!(error, "failed to query due work; retrying");
        }
        None if was_failing => tracing::info!("due work can be queried again"),
        _ => {}
    }
}

impl DueReceiver {
    /// Waits for the next poll and returns the kinds that are due. Returns `None` once polling has
    /// ended.
    pub async fn next_poll(&mut self) -> Option<BTreeSet<WorkKind>> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }

    /// Waits for a poll that ends after this call and finds the kind due. Returns `None` once polling has
    /// ended.
    pub async fn wait_until_due(&mut self, kind: WorkKind) -> Option<()> {
        self.0.mark_unchanged();
        while !self.next_poll().await?.contains(&kind) {}
        Some(())
    }
}
