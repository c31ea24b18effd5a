//! The writer: one thread owns the connection that writes, and commits in groups.
//!
//! Callers wait until their change lasts, not for a lock. Whatever queued up while the last batch was being written
//! becomes the next batch, so durable acceptance costs one sync per batch and not one per change; `syncs` does that
//! while the next batch is written.
//!
//! A job runs in a savepoint: a refused one is undone alone. One that decides before it writes needs none, which
//! spares a copy of every page it changes; should it break off in the middle all the same, the database is at
//! fault, and the batch ends as a whole. What jobs counted is added up and written once for all of them: they
//! mostly count into the same rows.
//!
//! A full disk or an I/O error may undo the
//! whole transaction behind our back; the connection then says that no transaction is open, everybody in
//! the batch is told so, and the connection is opened anew. So it is after a sync that failed.

use crate::batch::{Batch, Remembered};
use crate::checkpoints::{self, Carrier, Checkpoints};
use crate::connection::{self, OpenError};
use crate::job::{self, Job, Undo};
use crate::syncs::{Committed, Log, Syncs, answer};
use crate::{Failure, rollups};
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tributary_domain::report::Increments;
use tributary_store::StoreError;

/// Jobs that may wait. Beyond it a caller is told at once to come back later, rather than kept waiting
/// for an answer that its client will not stay for.
const QUEUE_JOBS_MAX: usize = 8_192;
/// Jobs of one commit. More would make the first one wait for the last without saving a sync.
const BATCH_JOBS_MAX: usize = 1_024;
/// How long a caller waits for its commit before it is told that the outcome is unknown.
const COMMIT_WAIT_MAX: Duration = Duration::from_secs(10);
/// The pause before another attempt to open a database that could not be opened.
const REOPEN_PAUSE: Duration = Duration::from_millis(200);

/// A handle to the writer's thread.
pub(crate) struct Writer {
    /// Taken away by closing; the thread ends when it has worked off what is in it.
    inbox: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(connection: Connection, path: &Path) -> Result<Self, OpenError> {
        let (inbox, jobs) = mpsc::channel(QUEUE_JOBS_MAX);
        let path = path.to_owned();
        let open = Open::new(connection, &path)?;
        let runtime = Handle::try_current().ok();
        let beside = Beside {
            syncs: Syncs::start(runtime.clone())?,
            carrier: Carrier::start(&path)?,
        };
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || write_batches(open, &path, runtime.as_ref(), beside, jobs))?;
        Ok(Self {
            inbox: Mutex::new(Some(inbox)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Hands a job over and waits for its commit.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let in_batch = |batch: &Batch<'_>| work(batch.connection);
        self.hand_over(name, Undo::Alone, in_batch).await
    }

    /// As [`Self::run`], for work that adds what was counted to the roll-ups: what the jobs before it counted is stored by
    /// then.
    pub(crate) async fn run_after_counts<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let in_batch = |batch: &Batch<'_>| work(batch.connection);
        self.hand_over(name, Undo::AloneAfterCounts, in_batch).await
    }

    /// As [`Self::run`], for work that leaves it to the writer to write down what it counted.
    pub(crate) async fn run_counted<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<(T, Increments), Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let in_batch = |batch: &Batch<'_>| {
            let (value, counted) = work(batch.connection)?;
            batch.count(|all| all.merge(counted));
            Ok(value)
        };
        self.hand_over(name, Undo::Alone, in_batch).await
    }

    /// As [`Self::run`], for work that refuses before it writes or counts anything.
    pub(crate) async fn run_decided<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Batch<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.hand_over(name, Undo::Nothing, work).await
    }

    async fn hand_over<T: Send + 'static>(
        &self,
        name: &'static str,
        undo: Undo,
        work: impl FnOnce(&Batch<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, answer) = job::task(name, undo, work);
        self.inbox()
            .ok_or_else(|| StoreError::unavailable(name, "the store is closed"))?
            .try_send(job)
            .map_err(|_| StoreError::unavailable(name, "too many changes are waiting"))?;
        match tokio::time::timeout(COMMIT_WAIT_MAX, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(StoreError::unavailable(name, "the writer ended")),
            Err(_) => Err(StoreError::unavailable(name, "the commit takes too long")),
        }
    }

    fn inbox(&self) -> Option<mpsc::Sender<Box<dyn Job>>> {
        self.inbox.lock().ok()?.clone()
    }

    /// Works off what is waiting and ends the thread.
    pub(crate) async fn close(&self) {
        let inbox = self.inbox.lock().ok().and_then(|mut inbox| inbox.take());
        drop(inbox);
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        let Some(thread) = thread else { return };
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("the writer's thread did not end as it should");
        }
    }
}

/// Who works beside the writer.
struct Beside {
    syncs: Syncs,
    carrier: Carrier,
}

/// The connection that writes, and its log.
struct Open {
    connection: Connection,
    checkpoints: Checkpoints,
    log: Arc<Log>,
    /// Goes with the connection: a batch that fails may have read what was never committed.
    remembered: Remembered,
}

impl Open {
    fn new(mut connection: Connection, path: &Path) -> Result<Self, rusqlite::Error> {
        let checkpoints = Checkpoints::of(&mut connection)?;
        // Commits are synced, but not by whoever commits.
        connection.pragma_update(None, "synchronous", "normal")?;
        Ok(Self {
            connection,
            checkpoints,
            log: Log::of(path),
            remembered: Remembered::default(),
        })
    }
}

fn write_batches(
    open: Open,
    path: &Path,
    runtime: Option<&Handle>,
    beside: Beside,
    mut jobs: mpsc::Receiver<Box<dyn Job>>,
) {
    let mut open = Some(open);
    while let Some(first) = jobs.blocking_recv() {
        crate::metrics::batch(1 + jobs.len());
        let mut batch = vec![first];
        while batch.len() < BATCH_JOBS_MAX {
            let Ok(job) = jobs.try_recv() else { break };
            batch.push(job);
        }
        if open.as_ref().is_none_or(|open| open.log.has_failed()) {
            drop(open.take());
            open = reopen(path);
        }
        let Some(writing) = &mut open else {
            answer(runtime, batch, false);
            continue;
        };
        match commit(&writing.connection, &writing.remembered, &mut batch) {
            Ok(changed) => {
                beside.syncs.hand_over(Committed {
                    jobs: batch,
                    log: writing.log.clone(),
                    changed,
                });
                // After the batch: nobody is to wait for this but the next one.
                writing
                    .checkpoints
                    .after_commit(&writing.connection, &beside.carrier);
            }
            Err(failure) => {
                let error = failure.into_store_error("a batch");
                let error = std::error::Error::source(&error).unwrap_or(&error);
                tracing::error!(%error, jobs = batch.len(), "a batch could not be committed");
                answer(runtime, batch, false);
                open = None;
            }
        }
    }
    beside.syncs.close();
    beside.carrier.close();
    if let Some(open) = open
        && let Err((_, error)) = open.connection.close()
    {
        tracing::error!(%error, "the database could not be closed");
    }
}

/// Commits jobs together; whether that changed anything.
fn commit(
    connection: &Connection,
    remembered: &Remembered,
    jobs: &mut [Box<dyn Job>],
) -> Result<bool, Failure> {
    let before = connection.total_changes();
    connection.prepare_cached("begin immediate")?.execute(())?;
    let batch = Batch::on(connection, remembered)?;
    for job in jobs {
        match job.undo() {
            Undo::Alone => {
                run_in_savepoint(&batch, job)?;
                batch.forget();
            }
            Undo::AloneAfterCounts => {
                rollups::keep(connection, batch.take_counted())?;
                run_in_savepoint(&batch, job)?;
                batch.forget();
            }
            Undo::Nothing => {
                let changes = connection.total_changes();
                if !job.run(&batch) && connection.total_changes() != changes {
                    return Err(broken_off().into());
                }
            }
        }
        if connection.is_autocommit() {
            return Err(broken_off().into());
        }
    }
    rollups::keep(connection, batch.take_counted())?;
    connection.prepare_cached("commit")?.execute(())?;
    Ok(connection.total_changes() != before)
}

fn run_in_savepoint(batch: &Batch<'_>, job: &mut Box<dyn Job>) -> Result<(), Failure> {
    let connection = batch.connection;
    connection.prepare_cached("savepoint job")?.execute(())?;
    if !job.run(batch) {
        if connection.is_autocommit() {
            return Err(broken_off().into());
        }
        connection.prepare_cached("rollback to job")?.execute(())?;
    }
    connection.prepare_cached("release job")?.execute(())?;
    Ok(())
}

/// What a batch ends with when the transaction is gone, or holds a part of something.
fn broken_off() -> StoreError {
    StoreError::unavailable("a batch", "the transaction broke off in the middle")
}

fn reopen(path: &Path) -> Option<Open> {
    let opened = connection::open_for_writing(path).and_then(|connection| {
        // What is in the log may be in memory alone. Brought home, it is synced with everything else.
        checkpoints::bring_home(&connection)?;
        Ok(Open::new(connection, path)?)
    });
    match opened {
        Ok(open) => {
            tracing::warn!("the database was opened anew after a failed commit");
            Some(open)
        }
        Err(error) => {
            tracing::error!(%error, "the database cannot be opened");
            std::thread::sleep(REOPEN_PAUSE);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn store() -> (Arc<Writer>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = connection::open_for_writing(&path).unwrap();
        connection
            .execute_batch("create table t (x integer primary key) strict")
            .unwrap();
        (Arc::new(Writer::start(connection, &path).unwrap()), folder)
    }

    fn insert(number: i64) -> impl FnOnce(&Connection) -> Result<i64, Failure> + Send {
        move |connection| {
            connection.execute("insert into t values (?1)", [number])?;
            Ok(number)
        }
    }

    async fn count(writer: &Writer) -> i64 {
        writer
            .run("count", |c| {
                Ok(c.query_row("select count(*) from t", (), |row| row.get(0))?)
            })
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_failed_job_is_undone_alone() {
        let (writer, _folder) = store();
        let mut tasks = Vec::new();
        for number in 0..200 {
            let writer = writer.clone();
            tasks.push(tokio::spawn(async move {
                writer
                    .run("mixed", move |connection| {
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
    async fn a_panicking_job_harms_nobody_else() {
        let (writer, _folder) = store();
        let panicked = writer.run::<()>("bug", |_| panic!("a bug")).await;
        assert!(matches!(panicked, Err(StoreError::Unavailable { .. })));
        assert_eq!(writer.run("insert", insert(1)).await.unwrap(), 1);
        assert_eq!(count(&writer).await, 1);
    }

    #[tokio::test]
    async fn a_transaction_that_vanished_fails_its_batch_and_the_next_one_works() {
        let (writer, _folder) = store();
        let lost = writer
            .run::<()>("lost", |connection| {
                insert(1)(connection)?;
                // What a full disk does behind our back.
                connection.execute_batch("rollback")?;
                Err(StoreError::unavailable("lost", "disk full").into())
            })
            .await;
        assert!(lost.is_err());
        assert_eq!(count(&writer).await, 0);
        assert_eq!(writer.run("insert", insert(2)).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn one_that_decides_first_may_be_refused_and_harms_nobody_else() {
        let (writer, _folder) = store();
        let mut tasks = Vec::new();
        for number in 0..200 {
            let writer = writer.clone();
            tasks.push(tokio::spawn(async move {
                let work = move |batch: &Batch<'_>| {
                    if number % 2 == 1 {
                        return Err(tributary_domain::refusal::Refusal::AppNotFound.into());
                    }
                    insert(number)(batch.connection)
                };
                writer.run_decided("decided", work).await
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
    async fn one_that_breaks_off_after_it_wrote_leaves_nothing_behind() {
        let (writer, _folder) = store();
        let broken = writer
            .run_decided::<()>("broken", |batch| {
                insert(1)(batch.connection)?;
                Err(StoreError::unavailable("broken", "an I/O error").into())
            })
            .await;
        assert!(broken.is_err());
        assert_eq!(count(&writer).await, 0);
        assert_eq!(writer.run("insert", insert(2)).await.unwrap(), 2);
        assert_eq!(count(&writer).await, 1);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_log_that_cannot_be_synced_is_told_and_the_next_one_can() {
        let (writer, folder) = store();
        // Before the writer has opened it: what it commits goes to a file that nobody can sync any more.
        std::fs::remove_file(folder.path().join("x.db-wal")).unwrap();
        let lost = writer.run("lost", insert(1)).await;
        assert!(matches!(lost, Err(StoreError::Unavailable { .. })));
        assert_eq!(writer.run("insert", insert(2)).await.unwrap(), 2);
        assert_eq!(writer.run("insert", insert(3)).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn closing_works_off_what_is_waiting() {
        let (writer, folder) = store();
        let tasks: Vec<_> = (0..50)
            .map(|number| {
                let writer = writer.clone();
                tokio::spawn(async move { writer.run("insert", insert(number)).await })
            })
            .collect();
        tokio::task::yield_now().await;
        writer.close().await;
        let mut accepted = 0;
        for task in tasks {
            accepted += i64::from(task.await.unwrap().is_ok());
        }
        assert!(writer.run("late", insert(99)).await.is_err());
        let stored: i64 = Connection::open(folder.path().join("x.db"))
            .unwrap()
            .query_row("select count(*) from t", (), |row| row.get(0))
            .unwrap();
        assert_eq!(stored, accepted);
    }
}
