//! The writer: one thread owns the write connection and commits changes in groups.
//!
//! Callers wait until their change is durable, not for a lock. Changes that queue up during one
//! batch form the next batch, so durability costs one sync per batch instead of one per change.
//! `SQLite` syncs the WAL inside the commit (`synchronous=FULL`). A commit whose sync failed never
//! becomes part of the WAL index: no reader sees it, no checkpoint copies it, and the next commit
//! overwrites it (docs/adr/0020).
//!
//! A job runs in a savepoint, so a refusal rolls back only that job. A job that decides before it
//! writes needs no savepoint, which saves a copy of every page it changes. If such a job fails
//! after writing, the whole batch fails. The increments from all jobs are summed and written once,
//! because most of them update the same rows.
//!
//! A full disk or an I/O error may roll back the whole transaction; the connection then reports
//! that no transaction is open. Every request in an uncommitted batch fails as unavailable, and the
//! connection is reopened.

use crate::Failure;
use crate::checkpoints::CheckpointThread;
use crate::connection::SqliteOpenError;
use crate::execution::Execution;
use crate::integrity::IntegrityState;
use crate::job::{self, CacheEffect, JobIsolation};
use crate::readers::Readers;
#[cfg(feature = "stepped")]
use crate::stepped::{AnswerTime, SqliteSteps, SteppedLoops};
use crate::waiting_line::{QueuedJob, WaitingLine};
use crate::write_batch::WriteBatch;
use crate::writer_thread::{WriterConnection, WriterThread};
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tributary_domain::report::Increments;
use tributary_store::{DatabaseDamaged, StoreError};

/// How long a caller waits for its commit. After that, the caller gets an error, although the
/// commit may still succeed.
const COMMIT_WAIT_MAX: Duration = Duration::from_secs(10);

/// A handle to the writer thread.
pub(crate) struct Writer {
    /// `None` after closing. The thread ends once the queue is empty.
    inbox: Mutex<Option<mpsc::UnboundedSender<QueuedJob>>>,
    line: Arc<WaitingLine>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The loops that a test steps instead of the thread.
    #[cfg(feature = "stepped")]
    stepped: Option<SqliteSteps>,
    /// Set by an erasure: the WAL must be truncated.
    truncation: Arc<AtomicBool>,
    integrity: Arc<IntegrityState>,
}

impl Writer {
    /// A writer that rejects all jobs.
    #[cfg(test)]
    pub(crate) fn closed(integrity: Arc<IntegrityState>) -> Self {
        Self {
            inbox: Mutex::new(None),
            line: Arc::default(),
            thread: Mutex::new(None),
            #[cfg(feature = "stepped")]
            stepped: None,
            truncation: Arc::default(),
            integrity,
        }
    }

    /// Starts the thread.
    pub(crate) fn start(
        connection: Connection,
        path: &Path,
        readers: Readers,
        integrity: Arc<IntegrityState>,
    ) -> Result<Self, SqliteOpenError> {
        let (inbox, jobs) = mpsc::unbounded_channel();
        let (truncation, lost) = (Arc::default(), Arc::default());
        let checkpoint_thread =
            CheckpointThread::start(path, Arc::clone(&truncation), Arc::clone(&lost))?;
        let execution = Execution::THREADS;
        let batches = WriterThread {
            path: path.to_owned(),
            runtime: Handle::try_current().ok(),
            checkpoint_thread,
            readers,
            integrity: integrity.clone(),
            lost,
            open: Some(WriterConnection::new(connection, execution.log_pages_max)?),
            tried_at: None,
            execution,
        };
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || batches.run(jobs))?;
        Ok(Self {
            inbox: Mutex::new(Some(inbox)),
            line: Arc::default(),
            thread: Mutex::new(Some(thread)),
            #[cfg(feature = "stepped")]
            stepped: None,
            truncation,
            integrity,
        })
    }

    /// Like [`Self::start`], for a test that steps the loops.
    #[cfg(feature = "stepped")]
    pub(crate) fn stepped(
        connection: Connection,
        path: &Path,
        readers: Readers,
        integrity: Arc<IntegrityState>,
        execution: Execution,
    ) -> Result<(Self, SqliteSteps), SqliteOpenError> {
        let (inbox, jobs) = mpsc::unbounded_channel();
        let (truncation, lost) = (Arc::default(), Arc::default());
        let (checkpoint_thread, checkpointer) =
            CheckpointThread::new(path, Arc::clone(&truncation), Arc::clone(&lost));
        let writer = WriterThread {
            path: path.to_owned(),
            runtime: None,
            checkpoint_thread,
            readers,
            integrity: integrity.clone(),
            lost,
            open: Some(WriterConnection::new(connection, execution.log_pages_max)?),
            tried_at: None,
            execution,
        };
        let loops = SteppedLoops {
            writer,
            jobs,
            checkpointer,
            answer_time: AnswerTime::AfterCommit,
        };
        let steps = SqliteSteps(Arc::new(Mutex::new(Some(loops))));
        let writer = Self {
            inbox: Mutex::new(Some(inbox)),
            line: Arc::default(),
            thread: Mutex::new(None),
            stepped: Some(steps.clone()),
            truncation,
            integrity,
        };
        Ok((writer, steps))
    }

    /// Submits a job and waits for its commit.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        name: &'static str,
        cache_effect: CacheEffect,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let in_batch = |batch: &WriteBatch<'_>| work(batch.connection);
        let kind = (JobIsolation::Savepoint, cache_effect);
        self.submit(name, kind, in_batch).await
    }

    /// Like [`Self::run`], for work that merges increments. Increments from earlier jobs are stored
    /// first.
    pub(crate) async fn run_after_increments<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let in_batch = |batch: &WriteBatch<'_>| work(batch.connection);
        let kind = (JobIsolation::SavepointAfterIncrements, CacheEffect::Clears);
        self.submit(name, kind, in_batch).await
    }

    /// Like [`Self::run_after_increments`], for work that erases personal data. The WAL still
    /// contains the old pages, so it is truncated soon after the commit.
    pub(crate) async fn run_erasing<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let truncation = self.truncation.clone();
        let in_batch = move |batch: &WriteBatch<'_>| {
            let value = work(batch.connection)?;
            // Set inside the transaction, so that a concurrent truncation cannot succeed before the
            // commit.
            truncation.store(true, Ordering::SeqCst);
            Ok(value)
        };
        let kind = (JobIsolation::SavepointAfterIncrements, CacheEffect::Clears);
        self.submit(name, kind, in_batch).await
    }

    /// Like [`Self::run`], for work that records something and returns increments for the writer to
    /// store. It changes no configuration.
    pub(crate) async fn run_counted<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<(T, Increments), Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let in_batch = |batch: &WriteBatch<'_>| {
            let (value, counted) = work(batch.connection)?;
            batch.count(|all| all.merge(counted));
            Ok(value)
        };
        let kind = (JobIsolation::Savepoint, CacheEffect::Keeps);
        self.submit(name, kind, in_batch).await
    }

    /// Like [`Self::run`], for work that may only be refused before it writes or counts anything.
    pub(crate) async fn run_without_savepoint<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&WriteBatch<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let kind = (JobIsolation::NoSavepoint, CacheEffect::Keeps);
        self.submit(name, kind, work).await
    }

    async fn submit<T: Send + 'static>(
        &self,
        name: &'static str,
        kind: (JobIsolation, CacheEffect),
        work: impl FnOnce(&WriteBatch<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.integrity.is_damaged() {
            return Err(StoreError::unavailable(name, DatabaseDamaged));
        }
        let (job, answer) = job::new_job(name, kind, work);
        let closed = || StoreError::unavailable(name, "the store is closed");
        let inbox = self.inbox().ok_or_else(closed)?;
        let queued = self
            .line
            .join(job, Instant::now())
            .ok_or_else(|| StoreError::unavailable(name, "too many queued changes"))?;
        inbox.send(queued).map_err(|_| closed())?;
        match tokio::time::timeout(COMMIT_WAIT_MAX, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(StoreError::unavailable(name, "the writer stopped")),
            Err(_) => Err(StoreError::unavailable(
                name,
                "timed out waiting for the commit",
            )),
        }
    }

    fn inbox(&self) -> Option<mpsc::UnboundedSender<QueuedJob>> {
        self.inbox.lock().ok()?.clone()
    }

    /// Runs the queued jobs and stops the thread.
    pub(crate) async fn close(&self) {
        let inbox = self.inbox.lock().ok().and_then(|mut inbox| inbox.take());
        drop(inbox);
        #[cfg(feature = "stepped")]
        if let Some(stepped) = &self.stepped {
            stepped.close();
        }
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        let Some(thread) = thread else { return };
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("writer thread panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection;

    const CLEARS: CacheEffect = CacheEffect::Clears;

    fn store() -> (Arc<Writer>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = connection::open_for_writing(&path).unwrap();
        connection
            .execute_batch("create table t (x integer primary key) strict")
            .unwrap();
        let readers = Readers::open(&path).unwrap();
        (
            Arc::new(Writer::start(connection, &path, readers, Arc::default()).unwrap()),
            folder,
        )
    }

    fn insert(number: i64) -> impl FnOnce(&Connection) -> Result<i64, Failure> + Send {
        move |connection| {
            connection.execute("insert into t values (?1)", [number])?;
            Ok(number)
        }
    }

    async fn count(writer: &Writer) -> i64 {
        writer
            .run("count", CLEARS, |c| {
                Ok(c.query_row("select count(*) from t", (), |row| row.get(0))?)
            })
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_failed_job_is_rolled_back_alone() {
        let (writer, _folder) = store();
        let mut tasks = Vec::new();
        for number in 0..200 {
            let writer = writer.clone();
            tasks.push(tokio::spawn(async move {
                writer
                    .run("mixed", CLEARS, move |connection| {
                        insert(number)(connection)?;
                        if number % 2 == 0 {
                            Ok(())
                        } else {
                            Err(tributary_domain::refusal::Refusal::AppNotFound.into())
                        }
                    })
                    .await
            }));
        }
        let mut accepted = 0;
        for task in tasks {
            accepted += i64::from(task.await.unwrap().is_ok());
        }
        assert_eq!(accepted, 100);
        assert_eq!(count(&writer).await, 100);
    }

    #[tokio::test]
    async fn a_panicking_job_fails_alone() {
        let (writer, _folder) = store();
        let panicked = writer.run::<()>("bug", CLEARS, |_| panic!("a bug")).await;
        assert!(matches!(panicked, Err(StoreError::Unavailable { .. })));
        assert_eq!(writer.run("insert", CLEARS, insert(1)).await.unwrap(), 1);
        assert_eq!(count(&writer).await, 1);
    }

    #[tokio::test]
    async fn an_aborted_transaction_fails_its_batch_and_the_next_one_works() {
        let (writer, _folder) = store();
        let lost = writer
            .run::<()>("lost", CLEARS, |connection| {
                insert(1)(connection)?;
                // Simulates what a full disk does.
                connection.execute_batch("rollback")?;
                Err(StoreError::unavailable("lost", "disk full").into())
            })
            .await;
        assert!(lost.is_err());
        assert_eq!(count(&writer).await, 0);
        assert_eq!(writer.run("insert", CLEARS, insert(2)).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_job_without_savepoint_may_be_refused_alone() {
        let (writer, _folder) = store();
        let mut tasks = Vec::new();
        for number in 0..200 {
            let writer = writer.clone();
            tasks.push(tokio::spawn(async move {
                let work = move |batch: &WriteBatch<'_>| {
                    if number % 2 == 1 {
                        return Err(tributary_domain::refusal::Refusal::AppNotFound.into());
                    }
                    insert(number)(batch.connection)
                };
                writer.run_without_savepoint("decided", work).await
            }));
        }
        let mut accepted = 0;
        for task in tasks {
            accepted += i64::from(task.await.unwrap().is_ok());
        }
        assert_eq!(accepted, 100);
        assert_eq!(count(&writer).await, 100);
    }

    #[tokio::test]
    async fn a_job_without_savepoint_that_fails_after_writing_fails_its_batch() {
        let (writer, _folder) = store();
        let broken = writer
            .run_without_savepoint::<()>("broken", |batch| {
                insert(1)(batch.connection)?;
                Err(StoreError::unavailable("broken", "an I/O error").into())
            })
            .await;
        assert!(broken.is_err());
        assert_eq!(count(&writer).await, 0);
        assert_eq!(writer.run("insert", CLEARS, insert(2)).await.unwrap(), 2);
        assert_eq!(count(&writer).await, 1);
    }

    type Work = Box<dyn FnOnce(&Connection) -> Result<(), Failure> + Send>;

    #[tokio::test]
    async fn a_refusal_in_a_failed_batch_is_unavailable() {
        let (writer, _folder) = store();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let spawn = |work: Work| {
            let writer = writer.clone();
            tokio::spawn(async move { writer.run("test", CLEARS, work).await })
        };
        let (started, running) = tokio::sync::oneshot::channel();
        let holding = spawn(Box::new(move |_| {
            started.send(()).unwrap();
            held.recv().unwrap();
            Ok(())
        }));
        running.await.unwrap();
        // These jobs share the next batch, which fails as a whole.
        let refused = spawn(Box::new(|_| {
            Err(tributary_domain::refusal::Refusal::AppNotFound.into())
        }));
        let lost = spawn(Box::new(|connection| {
            connection.execute_batch("rollback")?;
            Err(StoreError::unavailable("lost", "disk full").into())
        }));
        tokio::task::yield_now().await;
        release.send(()).unwrap();
        assert!(holding.await.unwrap().is_ok());
        for task in [refused, lost] {
            let outcome = task.await.unwrap();
            assert!(
                matches!(outcome, Err(StoreError::Unavailable { .. })),
                "{outcome:?}"
            );
        }
    }

    #[tokio::test]
    async fn closing_writes_the_queued_items() {
        let (writer, folder) = store();
        let tasks: Vec<_> = (0..50)
            .map(|number| {
                let writer = writer.clone();
                tokio::spawn(async move { writer.run("insert", CLEARS, insert(number)).await })
            })
            .collect();
        tokio::task::yield_now().await;
        writer.close().await;
        let mut accepted = 0;
        for task in tasks {
            accepted += i64::from(task.await.unwrap().is_ok());
        }
        assert!(writer.run("late", CLEARS, insert(99)).await.is_err());
        let stored: i64 = Connection::open(folder.path().join("x.db"))
            .unwrap()
            .query_row("select count(*) from t", (), |row| row.get(0))
            .unwrap();
        assert_eq!(stored, accepted);
    }
}
