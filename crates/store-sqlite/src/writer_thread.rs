//! The writer thread: commits batches and maintains the WAL.

use crate::checkpoints::{self, CheckpointThread, Checkpoints};
use crate::connection;
use crate::execution::Execution;
use crate::integrity::{IntegrityState, is_corruption};
use crate::job::{CacheEffect, Job, JobIsolation};
use crate::leftover_wal::{self, LeftoverWal};
use crate::lost_pages::{LostPages, keep_log_on_close};
use crate::readers::Readers;
use crate::waiting_line::QueuedJob;
use crate::write_batch::{BatchCache, WriteBatch};
use crate::{Failure, rollups};
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tributary_store::StoreError;

/// Maximum number of jobs per commit. More would delay the first job without saving a sync.
pub(crate) const BATCH_JOBS_MAX: usize = 1_024;
/// Delay after a failed attempt to open the database.
const REOPEN_PAUSE: Duration = Duration::from_millis(200);
/// Minimum interval between attempts to close all connections after pages were lost.
const REOPEN_ALL_INTERVAL: Duration = Duration::from_secs(5);

/// The write connection and its checkpoint state.
pub(crate) struct WriterConnection {
    pub(crate) connection: Connection,
    checkpoints: Checkpoints,
    /// Dropped together with the connection, because a failed batch may have cached uncommitted
    /// data.
    pub(crate) cache: BatchCache,
}

impl WriterConnection {
    pub(crate) fn new(
        mut connection: Connection,
        log_pages_max: u32,
    ) -> Result<Self, rusqlite::Error> {
        // Keeps the pages that a savepoint may restore in memory. By default, `SQLite` moves them to
        // a temporary file once they exceed 64 KiB, for the rest of the transaction. That was half
        // of all writes under a load of first opens. Not set when the file is opened, because a
        // VACUUM would then copy the database into memory.
        connection.pragma_update(None, "temp_store", "memory")?;
        let checkpoints = Checkpoints::watch(&mut connection, log_pages_max)?;
        Ok(Self {
            connection,
            checkpoints,
            cache: BatchCache::default(),
        })
    }
}

/// The writer thread and its shared state.
pub(crate) struct WriterThread {
    pub(crate) path: PathBuf,
    pub(crate) runtime: Option<Handle>,
    pub(crate) checkpoint_thread: CheckpointThread,
    pub(crate) readers: Readers,
    pub(crate) integrity: Arc<IntegrityState>,
    pub(crate) lost: Arc<LostPages>,
    /// `None` after a failed batch.
    pub(crate) open: Option<WriterConnection>,
    /// The latest attempt to close all connections after pages were lost.
    pub(crate) tried_at: Option<Instant>,
    pub(crate) execution: Execution,
}

impl WriterThread {
    /// Commits jobs until the inbox is closed.
    pub(crate) fn run(mut self, mut jobs: mpsc::UnboundedReceiver<QueuedJob>) {
        while let Some(first) = jobs.blocking_recv() {
            self.commit_queued(first, &mut jobs);
        }
        self.close();
    }

    /// Commits a job and those queued behind it in one batch, and answers them.
    pub(crate) fn commit_queued(
        &mut self,
        first: QueuedJob,
        jobs: &mut mpsc::UnboundedReceiver<QueuedJob>,
    ) {
        let mut batch = take_batch(first, jobs);
        let mut open = self.take_connection();
        open = open.and_then(|open| self.write_batch(open, &mut batch));
        self.answer(batch, open.is_some());
        // After the replies, so that only the next batch waits for a checkpoint.
        if let Some(WriterConnection {
            connection,
            checkpoints,
            ..
        }) = &mut open
        {
            checkpoints.after_commit(connection, &self.checkpoint_thread, &self.lost);
        }
        self.open = open;
    }

    /// Takes the connection, which is reopened after a failed batch or after pages were lost.
    pub(crate) fn take_connection(&mut self) -> Option<WriterConnection> {
        let mut open = self.open.take();
        let tried_at = self.tried_at;
        if self.lost.any() && tried_at.is_none_or(|at| at.elapsed() > REOPEN_ALL_INTERVAL) {
            open = self.reopen_all(open);
            self.tried_at = Some(Instant::now());
        }
        open.or_else(|| self.reopen())
    }

    /// Commits a batch. Returns the connection if the commit succeeded.
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
            self.integrity.report_damage(&error.to_string());
        }
        let error = failure.into_store_error("commit_batch");
        let error = std::error::Error::source(&error).unwrap_or(&error);
        tracing::error!(%error, jobs = batch.len(), "failed to commit batch");
        None
    }

    /// Closes and reopens all connections in this process after a failed sync lost pages. The WAL
    /// is made durable as after a crash, and the next connection copies all of it. Retried later if
    /// a long read is running or another process has the database open.
    fn reopen_all(&self, open: Option<WriterConnection>) -> Option<WriterConnection> {
        let mut guard = self.lost.lock();
        let Some(closed) = self.readers.close_temporarily(self.runtime.as_ref()) else {
            return open;
        };
        *guard = None;
        if let Some(open) = open {
            keep_log_on_close(&open.connection);
            drop(open);
        }
        let is_durable = match leftover_wal::make_durable(&self.path) {
            Ok(LeftoverWal::MadeDurable | LeftoverWal::Absent) => true,
            Ok(LeftoverWal::InUse) => {
                tracing::warn!(
                    "cannot recover from the failed checkpoint yet: another process has the database open"
                );
                false
            }
            Err(error) => {
                tracing::error!(%error, "failed to make the WAL durable");
                false
            }
        };
        let open = self.reopen();
        match closed.reopen(&self.path) {
            Ok(()) if is_durable => self.lost.clear(),
            Ok(()) => {}
            Err(error) => {
                tracing::error!(%error, "failed to reopen the database for reading");
            }
        }
        open
    }

    /// Opens the connection again.
    fn reopen(&self) -> Option<WriterConnection> {
        // Readers stay connected, so the WAL index still ends with the last synced commit.
        let pages = self.execution.log_pages_max;
        let opened = connection::open_for_writing(&self.path)
            .and_then(|connection| Ok(WriterConnection::new(connection, pages)?));
        match opened {
            Ok(open) => {
                tracing::warn!("reopened the database after a failure");
                Some(open)
            }
            Err(error) => {
                tracing::error!(%error, "failed to open the database");
                self.execution.pause(REOPEN_PAUSE);
                None
            }
        }
    }

    /// Copies the WAL into the database file and closes the database.
    pub(crate) fn close(mut self) {
        let open = self.open.take();
        self.checkpoint_thread.close();
        let Some(WriterConnection { connection, .. }) = open else {
            return;
        };
        if self.lost.any() {
            keep_log_on_close(&connection);
        } else {
            // If another process has the database open, the WAL file remains but is empty.
            let guard = self.lost.lock();
            match checkpoints::truncate(&connection) {
                Ok(true) => {}
                Ok(false) => {
                    tracing::warn!("keeping the WAL: another process is reading the database");
                }
                Err(error) => {
                    self.lost.note_failure(&connection, &error);
                    tracing::error!(%error, "failed to copy the WAL into the database");
                }
            }
            drop(guard);
        }
        if let Err((_, error)) = connection.close() {
            tracing::error!(%error, "failed to close the database");
        }
    }

    /// Sends a batch's replies, from a runtime worker if possible. There, waking a task is cheap;
    /// on the writer thread, each wake-up costs a system call.
    pub(crate) fn answer(&self, jobs: Vec<Box<dyn Job>>, committed: bool) {
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

/// Takes a job and those queued behind it, up to the size of a batch.
pub(crate) fn take_batch(
    first: QueuedJob,
    jobs: &mut mpsc::UnboundedReceiver<QueuedJob>,
) -> Vec<Box<dyn Job>> {
    crate::metrics::batch(1 + jobs.len());
    let mut batch = vec![first.leave_line()];
    while batch.len() < BATCH_JOBS_MAX {
        let Ok(queued) = jobs.try_recv() else { break };
        batch.push(queued.leave_line());
    }
    batch
}

/// Commits jobs in one transaction.
pub(crate) fn commit(
    connection: &Connection,
    cache: &BatchCache,
    jobs: &mut [Box<dyn Job>],
) -> Result<(), Failure> {
    run_jobs(connection, cache, jobs)?;
    connection.prepare_cached("commit")?.execute(())?;
    Ok(())
}

/// Begins a transaction and runs jobs in it.
pub(crate) fn run_jobs(
    connection: &Connection,
    cache: &BatchCache,
    jobs: &mut [Box<dyn Job>],
) -> Result<(), Failure> {
    connection.prepare_cached("begin immediate")?.execute(())?;
    let mut batch = WriteBatch::new(connection, cache)?;
    for job in jobs {
        match job.isolation() {
            JobIsolation::Savepoint => run_in_savepoint(&mut batch, job)?,
            JobIsolation::SavepointAfterIncrements => {
                rollups::store_increments(connection, batch.take_increments())?;
                run_in_savepoint(&mut batch, job)?;
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
        if job.cache_effect() == CacheEffect::Clears {
            batch.clear_cache();
        }
    }
    rollups::store_increments(connection, batch.take_increments())
}

fn run_in_savepoint(batch: &mut WriteBatch<'_>, job: &mut Box<dyn Job>) -> Result<(), Failure> {
    let connection = batch.connection;
    batch.statements.release();
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

/// The error for a batch whose transaction was aborted or contains a partial job.
fn transaction_lost() -> StoreError {
    StoreError::unavailable("commit_batch", "the transaction was aborted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;

    #[tokio::test]
    async fn savepoints_are_kept_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
        let store = opened.unwrap().unwrap();
        let read = |connection: &Connection| {
            Ok(connection.pragma_query_value(None, "temp_store", |row| row.get::<_, i64>(0))?)
        };
        assert_eq!(store.write("test", read).await.unwrap(), 2);
    }
}
