//! The writer: one thread owns the connection that writes, and commits in groups.
//!
//! Callers wait for the commit, not for a lock. Whatever queued up while the last batch was being synced
//! becomes the next batch, so durable acceptance costs one sync per batch and not one per change.
//!
//! A job runs in a savepoint: a refused one is undone alone. One that decides before it writes needs none, which
//! spares a copy of every page it changes; should it break off in the middle all the same, the database is at
//! fault, and the batch ends as a whole. What jobs counted is added up and written once for all of them: they
//! mostly count into the same rows.
//!
//! A full disk or an I/O error may undo the
//! whole transaction behind our back; the connection then says that no transaction is open, everybody in
//! the batch is told so, and the connection is opened anew. A sync that failed is never tried again on the
//! same connection: the operating system may have dropped the data and forgotten the error.

use crate::batch::Batch;
use crate::checkpoints::Checkpoints;
use crate::connection::{self, OpenError};
use crate::{Failure, rollups};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
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

/// How a job that fails is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undo {
    /// Alone, whatever it has written by then.
    Alone,
    /// As alone, by work that reads what the jobs before it counted: that is written first.
    AloneAfterCounts,
    /// There is nothing to undo: what can be refused is refused before anything is written.
    Nothing,
}

/// Something to be done in a transaction and answered after its commit.
trait Job: Send {
    /// How it is undone.
    fn undo(&self) -> Undo;
    /// Does it, and adds what it counted; false when its part must be undone.
    fn run(&mut self, batch: &Batch<'_>, counted: &mut Increments) -> bool;
    /// Answers. `committed` false: whatever was done is gone.
    fn answer(self: Box<Self>, committed: bool);
}

struct Task<T, F> {
    name: &'static str,
    undo: Undo,
    work: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Task<T, F>
where
    T: Send,
    F: FnOnce(&Batch<'_>) -> Result<(T, Increments), Failure> + Send,
{
    fn undo(&self) -> Undo {
        self.undo
    }

    fn run(&mut self, batch: &Batch<'_>, counted: &mut Increments) -> bool {
        let Some(work) = self.work.take() else {
            return false;
        };
        let name = self.name;
        // A panic is a bug in one job; the others, and the thread, go on.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(batch)))
            .unwrap_or_else(|_| Err(StoreError::unavailable(name, "a panic").into()));
        let done = outcome.is_ok();
        let outcome = outcome.map(|(value, increments)| {
            counted.merge(increments);
            value
        });
        self.outcome = Some(outcome.map_err(|failure| failure.into_store_error(name)));
        done
    }

    fn answer(self: Box<Self>, committed: bool) {
        let outcome = match self.outcome {
            // A refusal is true whether or not the others could be committed: nothing was changed.
            Some(Err(error)) => Err(error),
            Some(Ok(value)) if committed => Ok(value),
            _ => Err(StoreError::unavailable(
                self.name,
                "the batch could not be committed",
            )),
        };
        // Whoever asked may have gone away.
        let _gone = self.reply.send(outcome);
    }
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(connection: Connection, path: &Path) -> Result<Self, OpenError> {
        let (inbox, jobs) = mpsc::channel(QUEUE_JOBS_MAX);
        let path = path.to_owned();
        let open = Open::new(connection)?;
        let runtime = Handle::try_current().ok();
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || write_batches(open, &path, runtime, jobs))?;
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
        let counts_itself =
            |batch: &Batch<'_>| Ok((work(batch.connection)?, Increments::default()));
        self.hand_over(name, Undo::Alone, counts_itself).await
    }

    /// As [`Self::run`], for work that reads what others counted.
    pub(crate) async fn run_after_counts<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let counts_itself =
            |batch: &Batch<'_>| Ok((work(batch.connection)?, Increments::default()));
        self.hand_over(name, Undo::AloneAfterCounts, counts_itself)
            .await
    }

    /// As [`Self::run`], for work that leaves it to the writer to write down what it counted.
    pub(crate) async fn run_counted<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<(T, Increments), Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let in_batch = |batch: &Batch<'_>| work(batch.connection);
        self.hand_over(name, Undo::Alone, in_batch).await
    }

    /// As [`Self::run`], for work that refuses before it writes anything, and leaves it to the writer to write
    /// down what it counted.
    pub(crate) async fn run_decided<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Batch<'_>) -> Result<(T, Increments), Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.hand_over(name, Undo::Nothing, work).await
    }

    async fn hand_over<T: Send + 'static>(
        &self,
        name: &'static str,
        undo: Undo,
        work: impl FnOnce(&Batch<'_>) -> Result<(T, Increments), Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let task = Task {
            name,
            undo,
            work: Some(work),
            outcome: None,
            reply,
        };
        self.inbox()
            .ok_or_else(|| StoreError::unavailable(name, "the store is closed"))?
            .try_send(Box::new(task))
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

/// The connection that writes, and when its log is due.
struct Open {
    connection: Connection,
    checkpoints: Checkpoints,
}

impl Open {
    fn new(mut connection: Connection) -> Result<Self, rusqlite::Error> {
        let checkpoints = Checkpoints::of(&mut connection)?;
        Ok(Self {
            connection,
            checkpoints,
        })
    }
}

/// Answers everybody: from a worker of the runtime, where there is one. To wake somebody up costs a worker next to
/// nothing, and this thread a call of the operating system for each.
fn answer(runtime: Option<&Handle>, batch: Vec<Box<dyn Job>>, committed: bool) {
    let answer_all = move || {
        for job in batch {
            job.answer(committed);
        }
    };
    match runtime {
        Some(runtime) => drop(runtime.spawn(async move { answer_all() })),
        None => answer_all(),
    }
}

fn write_batches(
    open: Open,
    path: &Path,
    runtime: Option<Handle>,
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
        let mut committed = open.take().or_else(|| reopen(path));
        if let Some(Open { connection, .. }) = &committed
            && let Err(failure) = commit(connection, &mut batch)
        {
            let error = failure.into_store_error("a batch");
            let error = std::error::Error::source(&error).unwrap_or(&error);
            tracing::error!(%error, jobs = batch.len(), "a batch could not be committed");
            committed = None;
        }
        answer(runtime.as_ref(), batch, committed.is_some());
        // After the answers: nobody is to wait for this but the next batch.
        if let Some(open) = &mut committed {
            open.checkpoints.after_commit(&open.connection);
        }
        open = committed;
    }
    if let Some(open) = open
        && let Err((_, error)) = open.connection.close()
    {
        tracing::error!(%error, "the database could not be closed");
    }
}

fn commit(connection: &Connection, jobs: &mut [Box<dyn Job>]) -> Result<(), Failure> {
    connection.prepare_cached("begin immediate")?.execute(())?;
    let batch = Batch::on(connection);
    let mut counted = Increments::default();
    for job in jobs {
        match job.undo() {
            Undo::Alone => {
                run_in_savepoint(&batch, job, &mut counted)?;
                batch.forget();
            }
            Undo::AloneAfterCounts => {
                rollups::add(connection, &std::mem::take(&mut counted))?;
                run_in_savepoint(&batch, job, &mut counted)?;
                batch.forget();
            }
            Undo::Nothing => {
                let changes = connection.total_changes();
                if !job.run(&batch, &mut counted) && connection.total_changes() != changes {
                    return Err(broken_off().into());
                }
            }
        }
        if connection.is_autocommit() {
            return Err(broken_off().into());
        }
    }
    rollups::add(connection, &counted)?;
    connection.prepare_cached("commit")?.execute(())?;
    Ok(())
}

fn run_in_savepoint(
    batch: &Batch<'_>,
    job: &mut Box<dyn Job>,
    counted: &mut Increments,
) -> Result<(), Failure> {
    let connection = batch.connection;
    connection.prepare_cached("savepoint job")?.execute(())?;
    if !job.run(batch, counted) {
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
    let opened = connection::open_for_writing(path).and_then(|it| Ok(Open::new(it)?));
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
                    Ok((insert(number)(batch.connection)?, Increments::default()))
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
