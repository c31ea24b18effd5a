//! The writer's thread: it commits batches, and sees to the log.

use crate::checkpoints::{self, CheckpointThread, Checkpoints};
use crate::connection;
use crate::integrity::{IntegrityState, is_corruption};
use crate::job::{Job, JobIsolation};
use crate::leftover_wal::{self, LeftoverWal};
use crate::lost_pages::{LostPages, keep_log_on_close};
use crate::readers::Readers;
use crate::write_batch::{BatchCache, WriteBatch};
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
const REOPEN_ALL_INTERVAL: Duration = Duration::from_secs(5);

/// The connection that writes, and its log.
pub(crate) struct WriterConnection {
    connection: Connection,
    checkpoints: Checkpoints,
    /// Goes with the connection: a batch that fails may have read what was never committed.
    cache: BatchCache,
}

impl WriterConnection {
    pub(crate) fn new(mut connection: Connection) -> Result<Self, rusqlite::Error> {
        let checkpoints = Checkpoints::watch(&mut connection)?;
        Ok(Self {
            connection,
            checkpoints,
            cache: BatchCache::default(),
        })
    }
}

/// The writer's thread, and what it shares.
pub(crate) struct WriterThread {
    pub(crate) path: PathBuf,
    pub(crate) runtime: Option<Handle>,
    pub(crate) checkpoint_thread: CheckpointThread,
    pub(crate) readers: Readers,
    pub(crate) soundness: Arc<IntegrityState>,
    pub(crate) lost: Arc<LostPages>,
}

impl WriterThread {
    /// Commits what is sent until the inbox is closed.
    pub(crate) fn run(self, open: WriterConnection, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
        let mut open = Some(open);
        let mut tried = None;
        while let Some(first) = jobs.blocking_recv() {
            crate::metrics::batch(1 + jobs.len());
            let mut batch = vec![first];
            while batch.len() < BATCH_JOBS_MAX {
                let Ok(job) = jobs.try_recv() else { break };
                batch.push(job);
            }
            if self.lost.any() && tried.is_none_or(|at: Instant| at.elapsed() > REOPEN_ALL_INTERVAL)
            {
                open = self.reopen_all(open);
                tried = Some(Instant::now());
            }
            if open.is_none() {
                open = reopen(&self.path);
            }
            open = open.and_then(|open| self.write_batch(open, &mut batch));
            self.answer(batch, open.is_some());
            // After the answers: only the next batch waits for this.
            if let Some(WriterConnection {
                connection,
                checkpoints,
                ..
            }) = &mut open
            {
                checkpoints.after_commit(connection, &self.checkpoint_thread, &self.lost);
            }
        }
        self.close(open);
    }

    /// Commits a batch; gives the connection back if that succeeded.
    fn write_batch(
        &self,
        open: WriterConnection,
        batch: &mut [Box<dyn Job>],
    ) -> Option<WriterConnection> {
        let Err(failure) = commit(&open.connection, &open.cache, batch) else {
            return Some(open);
        };
        if let Failure::Sqlite(error) = &failure
            && is_corruption(error)
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
    fn reopen_all(&self, open: Option<WriterConnection>) -> Option<WriterConnection> {
        let mut turn = self.lost.lock();
        let Some(closed) = self.readers.close_temporarily(self.runtime.as_ref()) else {
            return open;
        };
        *turn = None;
        if let Some(open) = open {
            keep_log_on_close(&open.connection);
            drop(open);
        }
        let is_durable = match leftover_wal::make_durable(&self.path) {
            Ok(LeftoverWal::MadeDurable | LeftoverWal::Absent) => true,
            Ok(LeftoverWal::InUse) => {
                tracing::warn!("another process keeps the log from being copied again");
                false
            }
            Err(error) => {
                tracing::error!(%error, "the log cannot be made durable");
                false
            }
        };
        let open = reopen(&self.path);
        match closed.reopen(&self.path) {
            Ok(()) if is_durable => self.lost.clear(),
            Ok(()) => {}
            Err(error) => {
                tracing::error!(%error, "the database cannot be opened for reading");
            }
        }
        open
    }

    /// Moves the log into the database file and closes it.
    fn close(self, open: Option<WriterConnection>) {
        self.checkpoint_thread.close();
        let Some(WriterConnection { connection, .. }) = open else {
            return;
        };
        if self.lost.any() {
            keep_log_on_close(&connection);
        } else {
            // Another process may keep the database open; then the log stays, but empty.
            let turn = self.lost.lock();
            match checkpoints::truncate(&connection) {
                Ok(true) => {}
                Ok(false) => tracing::warn!("the log is kept: another process reads the database"),
                Err(error) => {
                    self.lost.note_failure(&connection, &error);
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
    remembered: &BatchCache,
    jobs: &mut [Box<dyn Job>],
) -> Result<(), Failure> {
    connection.prepare_cached("begin immediate")?.execute(())?;
    let batch = WriteBatch::new(connection, remembered)?;
    for job in jobs {
        match job.isolation() {
            JobIsolation::Savepoint => {
                run_in_savepoint(&batch, job)?;
                batch.clear_cache();
            }
            JobIsolation::SavepointAfterIncrements => {
                rollups::store_increments(connection, batch.take_increments())?;
                run_in_savepoint(&batch, job)?;
                batch.clear_cache();
            }
            JobIsolation::NoSavepoint => {
                let changes = connection.total_changes();
                if !job.run(&batch) && connection.total_changes() != changes {
                    return Err(transaction_lost().into());
                }
            }
        }
        if connection.is_autocommit() {
            return Err(transaction_lost().into());
        }
    }
    rollups::store_increments(connection, batch.take_increments())?;
    connection.prepare_cached("commit")?.execute(())?;
    Ok(())
}

fn run_in_savepoint(batch: &WriteBatch<'_>, job: &mut Box<dyn Job>) -> Result<(), Failure> {
    let connection = batch.connection;
    connection.prepare_cached("savepoint job")?.execute(())?;
    if !job.run(batch) {
        if connection.is_autocommit() {
            return Err(transaction_lost().into());
        }
        connection.prepare_cached("rollback to job")?.execute(())?;
    }
    connection.prepare_cached("release job")?.execute(())?;
    Ok(())
}

/// What a batch ends with when the transaction is gone, or holds a part of something.
fn transaction_lost() -> StoreError {
    StoreError::unavailable("a batch", "the transaction broke off in the middle")
}

fn reopen(path: &Path) -> Option<WriterConnection> {
    // Readers stay connected, so the log's index stays as it is: it ends with the last commit whose sync succeeded.
    let opened = connection::open_for_writing(path)
        .and_then(|connection| Ok(WriterConnection::new(connection)?));
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
