//! A few read-only connections, each reading a snapshot. In WAL mode, readers and the writer never
//! wait for each other.

use crate::Failure;
use crate::connection::{self, SqliteOpenError};

use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tributary_store::StoreError;
use tributary_store::connection_share::{ConnectionShare, ConnectionShares};

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
        let permits = self.permits(ConnectionShare::of(name)).clone();
        let permit = tokio::time::timeout(READER_WAIT_MAX, permits.acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(StoreError::unavailable(
                name,
                "timed out waiting for a read connection",
            ));
        };
        let idle = self.idle.clone();
        let span = tracing::Span::current();
        let done = tokio::task::spawn_blocking(move || {
            let _entered = span.enter();
            let _permit = permit;
            let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(connection) = lock().pop() else {
                return Err(StoreError::unavailable(name, "the store is closed"));
            };
            // A panic is a bug in one query; the connection is returned to the pool.
            let attempt = || run_in_snapshot(&connection, work);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
            lock().push(connection);
            let bug = |_| Err(StoreError::unavailable(name, "bug: the read panicked").into());
            outcome
                .unwrap_or_else(bug)
                .map_err(|failure| failure.into_store_error(name))
        });
        done.await
            .unwrap_or_else(|_| Err(StoreError::unavailable(name, "bug: the read panicked")))
    }

    /// Closes the connections until [`ClosedReaders::reopen`] is called. New reads wait meanwhile.
    /// Returns `None` if running reads take too long.
    pub(crate) fn close_temporarily(&self, runtime: Option<&Handle>) -> Option<ClosedReaders> {
        let all = async {
            let mut all = Vec::new();
            for (permits, count) in self.shares() {
                let count = u32::try_from(count).ok()?;
                all.push(permits.clone().acquire_many_owned(count).await.ok()?);
            }
            Some(all)
        };
        let waiting = async { tokio::time::timeout(READS_END_MAX, all).await };
        let permits = runtime?.block_on(waiting).ok()??;
        let idle = self.idle.clone();
        idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Some(ClosedReaders {
            idle,
            _permits: permits,
        })
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

/// Runs `work` in one read transaction. `begin` and `rollback` are cached statements, because
/// parsing them takes as long as a short read.
fn run_in_snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    connection.prepare_cached("begin deferred")?.execute(())?;
    let _ended = SnapshotGuard(connection);
    work(connection)
}

/// Ends the snapshot on drop. There is nothing to roll back.
struct SnapshotGuard<'a>(&'a Connection);

impl Drop for SnapshotGuard<'_> {
    fn drop(&mut self) {
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
