//! What all workers have in common: they do a small thing again and again until the server stops.
//!
//! An activation that is cut off, fails or panics does no harm: each is idempotent, and what it did not get
//! to is found again by the next. So a stop drops whatever is under way and waits for nothing.

use crate::metrics;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tracing::Instrument as _;
use tributary_domain::runtime::Runtime;

/// The first activation waits for up to a period, and for no more than this, so that nodes which were
/// started together do not all ask for the same thing at the same moment.
const JITTER_MAX: Duration = Duration::from_secs(5);

/// Whether an activation found something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerActivity {
    /// There was nothing to do, so nothing is known about whether it would work.
    Idle,
    /// It did something, and that worked.
    Done,
}

/// Something that is done again and again.
pub(super) trait Worker: Send {
    /// What it is called in the log and the metrics.
    const NAME: &'static str;
    /// From the end of one activation to the next.
    const PERIOD: Duration;

    /// Does what is to be done now. Doing it twice, or half, does no harm.
    fn run_once(&mut self) -> impl Future<Output = anyhow::Result<WorkerActivity>> + Send;
}

/// Activates a worker every period until told to stop.
pub(super) async fn run<W: Worker>(mut worker: W, source: Runtime, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    let span = tracing::error_span!("worker", worker = W::NAME);
    let mut is_failing = false;
    let mut wait = jitter(
        W::PERIOD.min(JITTER_MAX),
        u64::from_be_bytes(source.random_bytes()),
    );
    loop {
        let activation = async {
            tokio::time::sleep(wait).await;
            catch_panic(worker.run_once()).await
        }
        .instrument(span.clone());
        let outcome = tokio::select! {
            () = &mut stop => return,
            outcome = activation => outcome,
        };
        is_failing = span.in_scope(|| record_outcome(W::NAME, is_failing, outcome));
        wait = W::PERIOD;
    }
}

/// A part of the longest wait, as large a part as the number is of all numbers.
fn jitter(longest: Duration, random: u64) -> Duration {
    let millis = longest.as_millis() * u128::from(random) / u128::from(u64::MAX);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// A panic is a failure like any other: it must not end the worker, since nobody would notice.
async fn catch_panic(
    activation: impl Future<Output = anyhow::Result<WorkerActivity>>,
) -> anyhow::Result<WorkerActivity> {
    let mut activation = pin!(activation);
    std::future::poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| activation.as_mut().poll(context)))
            .unwrap_or_else(|_panic| Poll::Ready(Err(anyhow::anyhow!("it panicked"))))
    })
    .await
}

/// Counts and logs how an activation ended: a failure when it begins, and when it is over. Gives whether the
/// worker is failing now.
fn record_outcome(
    name: &'static str,
    was_failing: bool,
    outcome: anyhow::Result<WorkerActivity>,
) -> bool {
    match outcome {
        Ok(WorkerActivity::Idle) => was_failing,
        Ok(WorkerActivity::Done) => {
            metrics::record_worker_run(name, "ok");
            if was_failing {
                tracing::info!("the worker works again");
            }
            false
        }
        Err(error) => {
            metrics::record_worker_run(name, "failed");
            if was_failing {
                tracing::debug!("the worker failed again: {error:#}");
            } else {
                tracing::warn!("the worker failed and tries again later: {error:#}");
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
    use rstest::rstest;
    use std::fs::{self, File};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::time::Instant;
    use tracing::subscriber::NoSubscriber;

    /// Fails, panics, then works.
    struct Moody(Arc<AtomicU32>);

    impl Worker for Moody {
        const NAME: &'static str = "moody";
        const PERIOD: Duration = Duration::from_hours(1);

        async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => anyhow::bail!("not today"),
                1 => panic!("a bug"),
                _ => Ok(WorkerActivity::Done),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn neither_a_failure_nor_a_panic_ends_a_worker_but_a_stop_does() {
        let runs = Arc::new(AtomicU32::new(0));
        let begun = Instant::now();
        let stop = tokio::time::sleep(Duration::from_hours(3) - Duration::from_mins(1));
        run(Moody(runs.clone()), system::runtime(), stop).await;
        assert_eq!(
            runs.load(Ordering::SeqCst),
            3,
            "at the start and every hour"
        );
        assert_eq!(begun.elapsed().as_secs(), 3 * 3600 - 60);
    }

    /// Never comes to an end.
    struct Endless;

    impl Worker for Endless {
        const NAME: &'static str = "endless";
        const PERIOD: Duration = Duration::from_secs(1);

        async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_does_not_wait_for_an_activation() {
        let stop = tokio::time::sleep(Duration::from_secs(10));
        run(Endless, system::runtime(), stop).await;
    }

    #[tokio::test]
    async fn a_store_that_fails_is_told_once_and_asked_again() {
        let (store, folder) = testing::store().await;
        store.close().await;
        // Where a line is met first decides whether it is ever listened to, and another test may meet it
        // where nobody listens. With two subscribers in the process, both are asked.
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
        let source = system::runtime();
        let worker = RetentionWorker::new(store, source.clone(), settings);
        tokio::time::pause();
        let stop = tokio::time::sleep(Duration::from_hours(3) - Duration::from_mins(1));
        run(worker, source, stop).await;
        drop(listening);

        let log = fs::read_to_string(&log).unwrap();
        let told = |level: &str| log.lines().filter(|line| line.contains(level)).count();
        assert_eq!((told("WARN "), told("DEBUG ")), (1, 2), "{log}");
        let reason = "the database is unavailable (remove_clicks)";
        assert_eq!(told(reason), 3, "{log}");
    }

    #[rstest]
    #[case::least(0, 0)]
    #[case::half(u64::MAX / 2, 2_499)]
    #[case::most(u64::MAX, 5_000)]
    fn the_first_wait_is_a_part_of_the_longest(#[case] random: u64, #[case] millis: u64) {
        let found = jitter(Duration::from_secs(5), random);
        assert_eq!(found, Duration::from_millis(millis));
    }

    #[rstest]
    #[case::fails(false, Err(()), true)]
    #[case::still_fails(true, Err(()), true)]
    #[case::works_again(true, Ok(WorkerActivity::Done), false)]
    #[case::nothing_to_do_is_no_proof(true, Ok(WorkerActivity::Idle), true)]
    #[case::nothing_to_do(false, Ok(WorkerActivity::Idle), false)]
    fn when_a_worker_counts_as_failing(
        #[case] before: bool,
        #[case] outcome: Result<WorkerActivity, ()>,
        #[case] after: bool,
    ) {
        let outcome = outcome.map_err(|()| anyhow::anyhow!("broken"));
        assert_eq!(record_outcome("test", before, outcome), after);
    }
}
