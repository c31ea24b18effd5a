//! A few read-only connections, each reading a snapshot. In WAL mode, readers and the writer never
//! wait for each other.

use crate::Failure;
use crate::connection::{self, SqliteOpenError};
use crate::execution::Execution;

use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tributary_store::connection_share::{ConnectionShare, ConnectionShares};
use tributary_store::{ReportTimeout, StoreError};

/// Read connections per share. More connections would not be faster; they would only wait for each
/// other.
const SHARES: ConnectionShares = ConnectionShares {
    public: 2,
    worker: 1,
    report: 2,
};
const READERS: usize = SHARES.public + SHARES.worker + SHARES.report;
/// How long a caller waits for a free connection.
const READER_WAIT_MAX: Duration = Duration::from_secs(5);
/// Time limit for one read of a report, unless the caller sets another.
pub(crate) const REPORT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// Virtual machine steps between two checks of a report's time limit: a fraction of a millisecond.
const STEPS_PER_CHECK: i32 = 10_000;
/// How much lower the priority of reports is. They get about a tenth of a processor that the public
/// endpoints need, and all of an idle one.
#[cfg(target_os = "linux")]
const REPORT_NICENESS: i32 = 10;
/// How long to wait for running reads to end when all connections must be closed. Nothing is
/// written meanwhile.
const READS_END_MAX: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(crate) struct Readers {
    /// Permits per share; in total as many as there are connections.
    public: Arc<Semaphore>,
    worker: Arc<Semaphore>,
    report: Arc<Semaphore>,
    /// A std mutex, because it is never held across an await.
    idle: Arc<Mutex<Vec<Connection>>>,
    /// Time limit for one read of a report.
    pub(crate) report_timeout: Duration,
    pub(crate) execution: Execution,
}

impl Readers {
    pub(crate) fn open(path: &Path) -> Result<Self, SqliteOpenError> {
        Self::open_each(|| connection::open_for_reading(path))
    }

    /// Like [`Self::open`], for a copy that is not in use.
    #[cfg(test)]
    pub(crate) fn open_copy(path: &Path) -> Result<Self, SqliteOpenError> {
        use rusqlite::OpenFlags;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let uri = format!("file:{}?immutable=1", path.display());
        Self::open_each(|| Ok(Connection::open_with_flags(&uri, flags)?))
    }

    fn open_each(
        connection: impl Fn() -> Result<Connection, SqliteOpenError>,
    ) -> Result<Self, SqliteOpenError> {
        let idle = open_all(connection)?;
        Ok(Self {
            public: Arc::new(Semaphore::new(SHARES.public)),
            worker: Arc::new(Semaphore::new(SHARES.worker)),
            report: Arc::new(Semaphore::new(SHARES.report)),
            idle: Arc::new(Mutex::new(idle)),
            report_timeout: REPORT_TIMEOUT_DEFAULT,
            execution: Execution::THREADS,
        })
    }

    fn permits(&self, share: ConnectionShare) -> &Arc<Semaphore> {
        match share {
            ConnectionShare::Public => &self.public,
            ConnectionShare::Worker => &self.worker,
            ConnectionShare::Report => &self.report,
        }
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let share = ConnectionShare::of(name);
        let (wait_max, limit) = match share {
            ConnectionShare::Report => {
                let limit = ReadLimit::new(self.report_timeout);
                (READER_WAIT_MAX.max(self.report_timeout), Some(limit))
            }
            ConnectionShare::Public | ConnectionShare::Worker => (READER_WAIT_MAX, None),
        };
        let permits = self.permits(share).clone();
        let permit = tokio::time::timeout(wait_max, permits.acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(StoreError::unavailable(
                name,
                "timed out waiting for a read connection",
            ));
        };
        let idle = self.idle.clone();
        let span = tracing::Span::current();
        // Stops the read when the caller stops waiting, for example because its client disconnects.
        let _waiting = limit.as_ref().map(ReadLimit::waiting_caller);
        let read = move || {
            let _entered = span.enter();
            let _permit = permit;
            let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(mut connection) = lock().pop() else {
                return Err(StoreError::unavailable(name, "the store is closed"));
            };
            // A panic is a bug in one query; the connection is returned to the pool.
            let is_limited = limit.is_some();
            let attempt = || run_in_snapshot(&mut connection, limit, work);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
            lock().push(connection);
            let bug = |_| Err(StoreError::unavailable(name, "bug: the read panicked").into());
            outcome.unwrap_or_else(bug).map_err(|failure| {
                if is_limited && is_interruption(&failure) {
                    return StoreError::unavailable(name, ReportTimeout);
                }
                failure.into_store_error(name)
            })
        };
        let done = match share {
            _ if self.execution.is_stepped => Some(read()),
            ConnectionShare::Report => run_with_low_priority(read).await,
            ConnectionShare::Public | ConnectionShare::Worker => {
                tokio::task::spawn_blocking(read).await.ok()
            }
        };
        done.unwrap_or_else(|| Err(StoreError::unavailable(name, "the read did not run")))
    }

    /// Closes the connections until [`ClosedReaders::reopen`] is called. New reads wait meanwhile.
    /// Returns `None` if running reads take too long.
    pub(crate) fn close_temporarily(&self, runtime: Option<&Handle>) -> Option<ClosedReaders> {
        let permits = if self.execution.is_stepped {
            // A read on the caller's thread has ended by now.
            self.try_all_permits()?
        } else {
            let waiting = async { tokio::time::timeout(READS_END_MAX, self.all_permits()).await };
            runtime?.block_on(waiting).ok()??
        };
        let idle = self.idle.clone();
        idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Some(ClosedReaders {
            idle,
            _permits: permits,
        })
    }

    /// Waits for all permits.
    async fn all_permits(&self) -> Option<Vec<OwnedSemaphorePermit>> {
        let mut all = Vec::new();
        for (permits, count) in self.shares() {
            let count = u32::try_from(count).ok()?;
            all.push(permits.clone().acquire_many_owned(count).await.ok()?);
        }
        Some(all)
    }

    /// Takes all permits if they are free.
    fn try_all_permits(&self) -> Option<Vec<OwnedSemaphorePermit>> {
        let take = |(permits, count): (&Arc<Semaphore>, usize)| {
            let count = u32::try_from(count).ok()?;
            permits.clone().try_acquire_many_owned(count).ok()
        };
        self.shares().into_iter().map(take).collect()
    }

    fn shares(&self) -> [(&Arc<Semaphore>, usize); 3] {
        [
            (&self.public, SHARES.public),
            (&self.worker, SHARES.worker),
            (&self.report, SHARES.report),
        ]
    }

    /// Closes the connections after running reads have ended.
    pub(crate) async fn close(&self) {
        for (permits, count) in self.shares() {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            if let Ok(all) = permits.acquire_many(count).await {
                permits.close();
                drop(all);
            }
        }
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// Readers whose connections are closed. Dropping this value lets waiting reads continue.
pub(crate) struct ClosedReaders {
    idle: Arc<Mutex<Vec<Connection>>>,
    _permits: Vec<OwnedSemaphorePermit>,
}

impl ClosedReaders {
    pub(crate) fn reopen(self, path: &Path) -> Result<(), SqliteOpenError> {
        let opened = open_all(|| connection::open_for_reading(path))?;
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = opened;
        Ok(())
    }
}

fn open_all(
    connection: impl Fn() -> Result<Connection, SqliteOpenError>,
) -> Result<Vec<Connection>, SqliteOpenError> {
    (0..READERS).map(|_| connection()).collect()
}

/// Runs a report's read on a separate thread with low priority, so that it leaves the processor to
/// the public endpoints. A thread cannot raise its priority again, so it is not reused; starting one
/// takes a fraction of a report's time. Returns `None` if no thread can be started.
async fn run_with_low_priority<T: Send + 'static>(
    read: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, done) = oneshot::channel();
    let thread = std::thread::Builder::new().name("report".to_owned());
    let started = thread.spawn(move || {
        // On other systems, this would change the priority of the whole process.
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::process::nice(REPORT_NICENESS) {
            tracing::debug!(%error, "failed to lower the priority of a report");
        }
        let _abandoned = sender.send(read());
    });
    if let Err(error) = started {
        tracing::error!(%error, "failed to start a thread for a report");
        return None;
    }
    done.await.ok()
}

/// Runs `work` in one read transaction. `begin` and `rollback` are cached statements, because
/// parsing them takes as long as a short read.
fn run_in_snapshot<T>(
    connection: &mut Connection,
    limit: Option<ReadLimit>,
    work: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    connection.prepare_cached("begin deferred")?.execute(())?;
    let snapshot = SnapshotGuard(connection);
    if let Some(limit) = limit {
        let deadline = Instant::now() + limit.timeout;
        let is_over = move || limit.is_abandoned() || Instant::now() >= deadline;
        snapshot
            .0
            .progress_handler(STEPS_PER_CHECK, Some(is_over))?;
    }
    work(snapshot.0)
}

/// Limit for a read of a report: a duration, and the caller that waits for it.
#[derive(Clone)]
struct ReadLimit {
    timeout: Duration,
    is_abandoned: Arc<AtomicBool>,
}

impl ReadLimit {
    fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            is_abandoned: Arc::default(),
        }
    }

    fn waiting_caller(&self) -> WaitingCaller {
        WaitingCaller(self.is_abandoned.clone())
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }
}

/// Marks the read as abandoned on drop.
struct WaitingCaller(Arc<AtomicBool>);

impl Drop for WaitingCaller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn is_interruption(failure: &Failure) -> bool {
    let Failure::Sqlite(error) = failure else {
        return false;
    };
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted)
}

/// Ends the snapshot and its time limit on drop. There is nothing to roll back.
struct SnapshotGuard<'a>(&'a mut Connection);

impl Drop for SnapshotGuard<'_> {
    fn drop(&mut self) {
        // First, so that the limit does not interrupt the rollback.
        if let Err(error) = self.0.progress_handler(0, None::<fn() -> bool>) {
            tracing::error!(%error, "failed to remove the time limit of a read");
        }
        let ended = self
            .0
            .prepare_cached("rollback")
            .and_then(|mut statement| statement.execute(()));
        if let Err(error) = ended {
            tracing::error!(%error, "failed to end a snapshot");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A query that would run for hours.
    fn count_for_hours(connection: &Connection) -> Result<i64, Failure> {
        let sql = "with recursive n(x) as (select 1 union all select x + 1 from n)
                   select count(*) from n";
        Ok(connection.query_row(sql, (), |row| row.get(0))?)
    }

    fn open_readers(report_timeout: Duration) -> (Readers, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        drop(crate::SqliteStore::open(&path).unwrap());
        let mut readers = Readers::open(&path).unwrap();
        readers.report_timeout = report_timeout;
        (readers, folder)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_report_past_its_time_limit_is_stopped() {
        let (readers, _folder) = open_readers(Duration::from_millis(100));
        for _ in 0..SHARES.report * 2 {
            let stopped = readers.run("stats", count_for_hours).await.unwrap_err();
            assert!(stopped.is_report_timeout(), "{stopped:?}");
        }
        // The connection has no limit left.
        let one = |connection: &Connection| {
            Ok(connection.query_row("select 1", (), |row| row.get::<_, i64>(0))?)
        };
        assert_eq!(readers.run("stats", one).await.unwrap(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_report_whose_caller_left_is_stopped() {
        let (readers, _folder) = open_readers(Duration::from_hours(1));
        for _ in 0..SHARES.report * 2 {
            let report = readers.run("stats", count_for_hours);
            let left = tokio::time::timeout(Duration::from_millis(50), report).await;
            assert!(left.is_err(), "still running");
        }
        let ends = tokio::time::timeout(Duration::from_secs(20), readers.run("stats", |_| Ok(())));
        ends.await.expect("a reader is free again").unwrap();
    }

    /// Number of concurrent reports: more than the reports' share has connections.
    const BLOCKED_REPORTS: usize = 4;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn blocked_reports_do_not_delay_public_endpoints() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        drop(crate::SqliteStore::open(&path).unwrap());
        let readers = Arc::new(Readers::open(&path).unwrap());
        let (begun, has_begun) = mpsc::channel();
        let mut releases = Vec::new();
        let mut reports = Vec::new();
        for _ in 0..BLOCKED_REPORTS {
            let (release, released) = mpsc::channel::<()>();
            releases.push(release);
            let (readers, begun) = (readers.clone(), begun.clone());
            reports.push(tokio::spawn(async move {
                let blocked = move |_: &Connection| {
                    begun.send(()).unwrap();
                    // Returns an error when the test drops the sender.
                    released.recv().unwrap_err();
                    Ok(())
                };
                readers.run("stats", blocked).await
            }));
        }
        for _ in 0..SHARES.report {
            has_begun.recv().unwrap();
        }
        for name in ["sdk_app", "gather_conversions"] {
            readers.run(name, |_| Ok(())).await.unwrap();
        }
        assert!(reports.iter().all(|report| !report.is_finished()));
        drop(releases);
        for report in reports {
            report.await.unwrap().unwrap();
        }
    }
}
