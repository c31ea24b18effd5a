//! Runs workers periodically until the server stops.
//!
//! Runs are idempotent and the next run picks up unfinished work, so a run may be cancelled, fail
//! or panic. A shutdown therefore cancels the current run, unless the run has leased something: other
//! nodes would have to wait for the end of the lease.

use crate::metrics;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tracing::Instrument as _;
use tributary_domain::due_work::WorkKind;
use tributary_domain::node_role::NodeRole;
use tributary_domain::runtime::Runtime;
use tributary_forwarder::DueReceiver;

/// Upper bound for the random delay before the first run, so that nodes started together do not all
/// act at the same moment.
const JITTER_MAX: Duration = Duration::from_secs(5);

/// Whether a run found something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerActivity {
    /// There was nothing to do, so it is unknown whether the run would have succeeded.
    Idle,
    /// The run did something successfully.
    Done,
    /// Same as [`Self::Done`], but more is due: the next run starts at once.
    More,
}

/// A task that runs periodically.
pub(super) trait Worker: Send {
    /// Name in logs and metrics.
    const NAME: &'static str;
    /// Time from the end of one run to the start of the next.
    const PERIOD: Duration;
    /// The kind of work that the worker does. After the period it waits until a poll finds such
    /// work. A worker without a kind runs every period.
    const KIND: Option<WorkKind> = None;
    /// Role of the nodes that run the worker.
    const ROLE: NodeRole = NodeRole::Forward;
    /// How long a shutdown waits for the current run. Not zero for workers that lease what they work
    /// on.
    const DRAIN: Duration = Duration::ZERO;

    /// Does what is due now. Must be safe to repeat or to cancel.
    fn run_once(&mut self) -> impl Future<Output = anyhow::Result<WorkerActivity>> + Send;
}

/// Runs a worker every period, or when its kind of work is due, until `stop` completes.
pub(super) async fn run<W: Worker>(
    mut worker: W,
    runtime: Runtime,
    mut due: DueReceiver,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let span = tracing::error_span!("worker", worker = W::NAME);
    let mut is_failing = false;
    let mut wait = jitter(
        W::PERIOD.min(JITTER_MAX),
        u64::from_be_bytes(runtime.random_bytes()),
    );
    let mut is_more_due = false;
    loop {
        let next_run = async {
            tokio::time::sleep(wait).await;
            match W::KIND {
                Some(kind) if !is_more_due => due.wait_until_due(kind).await,
                _ => Some(()),
            }
        };
        tokio::select! {
            () = &mut stop => return,
            next = next_run => if next.is_none() {
                return;
            }
        }
        let mut activation = pin!(catch_panic(worker.run_once()).instrument(span.clone()));
        let (outcome, is_stopping) = tokio::select! {
            outcome = &mut activation => (outcome, false),
            () = &mut stop => match tokio::time::timeout(W::DRAIN, activation).await {
                Ok(outcome) => (outcome, true),
                Err(_cancelled) => return,
            },
        };
        is_more_due = matches!(outcome, Ok(WorkerActivity::More));
        wait = if is_more_due {
            Duration::ZERO
        } else {
            W::PERIOD
        };
        is_failing = span.in_scope(|| record_outcome(W::NAME, is_failing, outcome));
        if is_stopping {
            return;
        }
    }
}

/// Scales a random number to a delay of at most `longest`.
fn jitter(longest: Duration, random: u64) -> Duration {
    let millis = longest.as_millis() * u128::from(random) / u128::from(u64::MAX);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// Turns a panic into an error, because a worker that stopped silently would go unnoticed.
async fn catch_panic(
    activation: impl Future<Output = anyhow::Result<WorkerActivity>>,
) -> anyhow::Result<WorkerActivity> {
    let mut activation = pin!(activation);
    std::future::poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| activation.as_mut().poll(context)))
            .unwrap_or_else(|_panic| Poll::Ready(Err(anyhow::anyhow!("the worker panicked"))))
    })
    .await
}

/// Counts a run's outcome, and logs when a worker starts or stops failing. Returns whether the
/// worker is failing now.
fn record_outcome(
    name: &'static str,
    was_failing: bool,
    outcome: anyhow::Result<WorkerActivity>,
) -> bool {
    match outcome {
        Ok(WorkerActivity::Idle) => was_failing,
        Ok(WorkerActivity::Done | WorkerActivity::More) => {
            metrics::record_worker_run(name, "ok");
            if was_failing {
                tracing::info!("worker recovered");
            }
            false
        }
        Err(error) => {
            metrics::record_worker_run(name, "failed");
            if was_failing {
                tracing::debug!(error = format!("{error:#}"), "worker failed again");
            } else {
                tracing::warn!(error = format!("{error:#}"), "worker failed; will retry");
            }
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RetentionConfig;
    use crate::workers::retention::RetentionWorker;
    use crate::{system, testing};
    use async_trait::async_trait;
    use rstest::rstest;
    use std::collections::BTreeSet;
    use std::fs::{self, File};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::time::Instant;
    use tracing::subscriber::NoSubscriber;
    use tributary_domain::vocabulary::time::Timestamp;
    use tributary_forwarder::Poller;
    use tributary_store::{DueKinds, StoreResult};

    /// Always finds the same kind of work due.
    struct AlwaysDue(Option<WorkKind>);

    #[async_trait]
    impl DueKinds for AlwaysDue {
        async fn due_kinds(&self, _: Timestamp) -> StoreResult<BTreeSet<WorkKind>> {
            Ok(self.0.into_iter().collect())
        }
    }

    /// Starts polls that find this kind of work due.
    fn due(kind: Option<WorkKind>) -> DueReceiver {
        let poller = Poller::new(Arc::new(AlwaysDue(kind)), system::runtime());
        let receiver = poller.subscribe();
        tokio::spawn(poller.run(std::future::pending()));
        receiver
    }

    /// Counts its runs.
    struct CountingWorker(Arc<AtomicU32>);

    impl Worker for CountingWorker {
        const NAME: &'static str = "counting";
        const PERIOD: Duration = Duration::from_secs(10);
        const KIND: Option<WorkKind> = Some(WorkKind::Alerts);

        async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(WorkerActivity::Done)
        }
    }

    #[rstest]
    #[case::due(Some(WorkKind::Alerts), 9..=10)]
    #[case::another_kind(Some(WorkKind::Trials), 0..=0)]
    #[case::nothing(None, 0..=0)]
    #[tokio::test(start_paused = true)]
    async fn a_worker_waits_until_its_kind_of_work_is_due(
        #[case] kind: Option<WorkKind>,
        #[case] expected: std::ops::RangeInclusive<u32>,
    ) {
        let runs = Arc::new(AtomicU32::new(0));
        let stop = tokio::time::sleep(Duration::from_secs(100));
        let worker = CountingWorker(runs.clone());
        run(worker, system::runtime(), due(kind), stop).await;
        let runs = runs.load(Ordering::SeqCst);
        assert!(expected.contains(&runs), "{runs}");
    }

    /// Fails, panics, then succeeds.
    struct FlakyWorker(Arc<AtomicU32>);

    impl Worker for FlakyWorker {
        const NAME: &'static str = "flaky";
        const PERIOD: Duration = Duration::from_hours(1);

        async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => anyhow::bail!("a failure"),
                1 => panic!("a bug"),
                _ => Ok(WorkerActivity::Done),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_survives_failures_and_panics_until_stopped() {
        let runs = Arc::new(AtomicU32::new(0));
        let started_at = Instant::now();
        let stop = tokio::time::sleep(Duration::from_hours(3) - Duration::from_mins(1));
        run(
            FlakyWorker(runs.clone()),
            system::runtime(),
            due(None),
            stop,
        )
        .await;
        assert_eq!(
            runs.load(Ordering::SeqCst),
            3,
            "once at the start, then hourly"
        );
        assert_eq!(started_at.elapsed().as_secs(), 3 * 3600 - 60);
    }

    /// Never finishes.
    struct HangingWorker;

    impl Worker for HangingWorker {
        const NAME: &'static str = "hanging";
        const PERIOD: Duration = Duration::from_secs(1);

        async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_does_not_wait_for_a_run() {
        let stop = tokio::time::sleep(Duration::from_secs(10));
        run(HangingWorker, system::runtime(), due(None), stop).await;
    }

    /// Holds a lease during its run, which takes a second. More is always due.
    struct LeasingWorker(Arc<AtomicU32>);

    impl Worker for LeasingWorker {
        const NAME: &'static str = "leasing";
        const PERIOD: Duration = Duration::from_hours(1);
        const DRAIN: Duration = Duration::from_secs(2);

        async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(WorkerActivity::More)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_for_a_run_that_holds_a_lease_and_starts_no_other() {
        let runs = Arc::new(AtomicU32::new(0));
        let (started_at, stopped_at) = (Instant::now(), Duration::from_millis(60_500));
        let stop = tokio::time::sleep(stopped_at);
        run(
            LeasingWorker(runs.clone()),
            system::runtime(),
            due(None),
            stop,
        )
        .await;
        let late = started_at.elapsed().saturating_sub(stopped_at);
        assert!(late <= Duration::from_secs(1), "{late:?}");
        // The first run begins within the jitter; each takes a second, and the last one ends late.
        let runs = runs.load(Ordering::SeqCst);
        assert!((56..=61).contains(&runs), "{runs}");
    }

    #[tokio::test]
    async fn a_failing_store_is_logged_once_and_retried() {
        let (store, folder) = testing::store().await;
        store.close().await;
        // tracing caches whether a call site is enabled when it is first reached, and another test
        // may reach it without a subscriber. With two subscribers in the process, tracing asks
        // both.
        let _second = tracing::Dispatch::new(NoSubscriber::default());
        let log = folder.path().join("log");
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(Arc::new(File::create(&log).unwrap()))
            .finish();
        let listening = tracing::subscriber::set_default(subscriber);
        let settings = RetentionConfig {
            click_addresses: Duration::from_hours(1),
            clicks: Duration::from_hours(1),
            deliveries: Duration::from_hours(1),
            notifications: Duration::from_hours(30 * 24),
            audit: Duration::from_hours(365 * 24),
            postbacks: Duration::from_hours(90 * 24),
            unclaimed_postbacks: Duration::from_hours(30 * 24),
            attributions: Duration::from_hours(400 * 24),
        };
        let runtime = system::runtime();
        let worker = RetentionWorker::new(store, runtime.clone(), settings);
        tokio::time::pause();
        let stop = tokio::time::sleep(Duration::from_hours(3) - Duration::from_mins(1));
        run(worker, runtime, due(None), stop).await;
        drop(listening);

        let log = fs::read_to_string(&log).unwrap();
        let count_lines = |level: &str| log.lines().filter(|line| line.contains(level)).count();
        assert_eq!(
            (count_lines("WARN "), count_lines("DEBUG ")),
            (1, 2),
            "{log}"
        );
        let reason = "the database is unavailable (remove_clicks)";
        assert_eq!(count_lines(reason), 3, "{log}");
    }

    #[rstest]
    #[case::least(0, 0)]
    #[case::half(u64::MAX / 2, 2_499)]
    #[case::most(u64::MAX, 5_000)]
    fn the_jitter_scales_with_the_random_number(#[case] random: u64, #[case] millis: u64) {
        let found = jitter(Duration::from_secs(5), random);
        assert_eq!(found, Duration::from_millis(millis));
    }

    #[rstest]
    #[case::fails(false, Err(()), true)]
    #[case::still_fails(true, Err(()), true)]
    #[case::works_again(true, Ok(WorkerActivity::Done), false)]
    #[case::works_again_with_more_to_do(true, Ok(WorkerActivity::More), false)]
    #[case::idle_keeps_the_state(true, Ok(WorkerActivity::Idle), true)]
    #[case::nothing_to_do(false, Ok(WorkerActivity::Idle), false)]
    fn tracks_whether_a_worker_is_failing(
        #[case] before: bool,
        #[case] outcome: Result<WorkerActivity, ()>,
        #[case] after: bool,
    ) {
        let outcome = outcome.map_err(|()| anyhow::anyhow!("broken"));
        assert_eq!(record_outcome("test", before, outcome), after);
    }
}
