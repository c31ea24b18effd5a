//! The writer's thread: it commits batches, and sees to the log.

use crate::batch::{Batch, Remembered};
use crate::checkpoints::{self, Carrier, Checkpoints};
use crate::connection;
use crate::job::{Job, Undo};
use crate::left_log::{self, Found};
use crate::lost_pages::{LostPages, keep_log_on_close};
use crate::readers::Readers;
use crate::soundness::{Soundness, is_damage};
use crate::{Failure, rollups};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tributary_store::StoreError;

/// Jobs of one commit. More would make the first one wait for the last without saving a sync.
const BATCH_JOBS_MAX: usize = 1_024;
/// The pause before another attempt to open a database that could not be opened.
const REOPEN_PAUSE: Duration = Duration::from_millis(200);
/// How often all connections are closed in vain, at most, while the log has to be copied again.
const START_OVER_INTERVAL: Duration = Duration::from_secs(5);

/// The connection that writes, and its log.
pub(crate) struct Open {
    connection: Connection,
    checkpoints: Checkpoints,
    /// Goes with the connection: a batch that fails may have read what was never committed.
    remembered: Remembered,
}

impl Open {
    pub(crate) fn new(mut connection: Connection) -> Result<Self, rusqlite::Error> {
        let checkpoints = Checkpoints::of(&mut connection)?;
        Ok(Self {
            connection,
            checkpoints,
            remembered: Remembered::default(),
        })
    }
}

/// The writer's thread, and what it shares.
pub(crate) struct Batches {
    pub(crate) path: PathBuf,
    pub(crate) runtime: Option<Handle>,
    pub(crate) carrier: Carrier,
    pub(crate) readers: Readers,
    pub(crate) soundness: Arc<Soundness>,
    pub(crate) lost: Arc<LostPages>,
}

impl Batches {
    /// Commits what is sent until the inbox is closed.
    pub(crate) fn write(self, open: Open, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
        let mut open = Some(open);
        let mut tried = None;
        while let Some(first) = jobs.blocking_recv() {
            crate::metrics::batch(1 + jobs.len());
            let mut batch = vec![first];
            while batch.len() < BATCH_JOBS_MAX {
                let Ok(job) = jobs.try_recv() else { break };
                batch.push(job);
            }
            if self.lost.found()
                && tried.is_none_or(|at: Instant| at.elapsed() > START_OVER_INTERVAL)
            {
                open = self.start_over(open);
                tried = Some(Instant::now());
            }
            if open.is_none() {
                open = reopen(&self.path);
            }
            open = open.and_then(|open| self.write_batch(open, &mut batch));
            self.answer(batch, open.is_some());
            // After the answers: only the next batch waits for this.
            if let Some(Open {
                connection,
                checkpoints,
                ..
            }) = &mut open
            {
                checkpoints.after_commit(connection, &self.carrier, &self.lost);
            }
        }
        self.end(open);
    }

    /// Commits a batch; gives the connection back if that succeeded.
    fn write_batch(&self, open: Open, batch: &mut [Box<dyn Job>]) -> Option<Open> {
        let Err(failure) = commit(&open.connection, &open.remembered, batch) else {
            return Some(open);
        };
        if let Failure::Sqlite(error) = &failure
            && is_damage(error)
        {
            self.soundness.report_damage(&error.to_string());
        }
        let error = failure.into_store_error("a batch");
        let error = std::error::Error::source(&error).unwrap_or(&error);
        tracing::error!(%error, jobs = batch.len(), "a batch could not be committed");
        None
    }

    /// Closes every connection of this process after a checkpoint lost pages. The log is made durable as it is after a
    /// kill, and the next connection copies all of it. Tried again later while a long read is under way, or another
    /// process has the database open.
    fn start_over(&self, open: Option<Open>) -> Option<Open> {
        let mut turn = self.lost.turn();
        let Some(closed) = self.readers.close_for_now(self.runtime.as_ref()) else {
            return open;
        };
        *turn = None;
        if let Some(open) = open {
            keep_log_on_close(&open.connection);
            drop(open);
        }
        let is_durable = match left_log::make_durable(&self.path) {
            Ok(Found::Log | Found::NoLog) => true,
            Ok(Found::InUse) => {
                tracing::warn!("another process keeps the log from being copied again");
                false
            }
            Err(error) => {
                tracing::error!(%error, "the log cannot be made durable");
                false
            }
        };
        let open = reopen(&self.path);
        match closed.open_again(&self.path) {
            Ok(()) if is_durable => self.lost.forget(),
            Ok(()) => {}
            Err(error) => {
                tracing::error!(%error, "the database cannot be opened for reading");
            }
        }
        open
    }

    /// Moves the log into the database file and closes it.
    fn end(self, open: Option<Open>) {
        self.carrier.close();
        let Some(Open { connection, .. }) = open else {
            return;
        };
        if self.lost.found() {
            keep_log_on_close(&connection);
        } else {
            // Another process may keep the database open; then the log stays, but empty.
            let turn = self.lost.turn();
            match checkpoints::truncate(&connection) {
                Ok(true) => {}
                Ok(false) => tracing::warn!("the log is kept: another process reads the database"),
                Err(error) => {
                    self.lost.note(&connection, &error);
                    tracing::error!(%error, "failed to move the log into the database");
                }
            }
            drop(turn);
        }
        if let Err((_, error)) = connection.close() {
            tracing::error!(%error, "the database could not be closed");
        }
    }

    /// Answers every job of a batch, from a worker of the runtime where there is one: waking a task costs a worker next
    /// to nothing, and the writer's thread one system call per task.
    fn answer(&self, jobs: Vec<Box<dyn Job>>, committed: bool) {
        let answer_all = move || {
            for job in jobs {
                job.answer(committed);
            }
        };
        match &self.runtime {
            Some(runtime) => drop(runtime.spawn(async move { answer_all() })),
            None => answer_all(),
        }
    }
}

/// Commits jobs together.
fn commit(
    connection: &Connection,
    remembered: &Remembered,
    jobs: &mut [Box<dyn Job>],
) -> Result<(), Failure> {
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
    Ok(())
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
    // Readers stay connected, so the log's index stays as it is: it ends with the last commit whose sync succeeded.
    let opened =
        connection::open_for_writing(path).and_then(|connection| Ok(Open::new(connection)?));
    match opened {
        Ok(open) => {
            tracing::warn!("reopened the database after a failed commit");
            Some(open)
        }
        Err(error) => {
            tracing::error!(%error, "the database cannot be opened");
            std::thread::sleep(REOPEN_PAUSE);
            None
        }
    }
}
