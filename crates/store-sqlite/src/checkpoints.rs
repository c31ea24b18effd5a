//! Checkpoints: copying pages from the WAL into the database file, so that the WAL can restart from
//! its beginning.
//!
//! By default, `SQLite` runs a checkpoint after a commit that finds the WAL too long, and all
//! writes wait for the disk. Here, a thread with its own connection runs checkpoints while the
//! writer continues.
//!
//! The thread alone would never let the WAL restart. Under load the WAL always has new pages and
//! readers, and a passive checkpoint does not wait for either. The WAL would grow without limit,
//! and every later commit would cause another copy of its pages and two more syncs. So once the
//! thread has left only a few pages, the writer copies those and waits briefly for the remaining
//! readers. By then, new readers no longer use the WAL. The writer does not wait for a long read:
//! the WAL grows, and the next attempt comes some pages later.

use crate::connection::{self, BUSY_WAIT};
use crate::lost_pages::{LostPages, keep_log_on_close};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Number of WAL pages that triggers a checkpoint: 16 MB. A page that was written repeatedly, such
/// as a roll-up page, is copied once.
pub(crate) const LOG_PAGES_MAX: u32 = 4_000;
/// Number of pages that may be left for the writer: one or two milliseconds of work.
const PAGES_LEFT_MAX: i64 = 200;
/// Passive checkpoints per request. Each one has fewer pages to copy, unless the disk is slower
/// than the writer; then the writer has to wait.
const ROUNDS_MAX: u32 = 3;
/// How long the writer waits for readers of the WAL. Nothing is written meanwhile.
const READERS_WAIT_MAX: Duration = Duration::from_millis(20);
/// How often the thread checks for a truncation request, or retries a truncation that a reader
/// blocked.
const TRUNCATION_INTERVAL: Duration = Duration::from_millis(500);
/// How long a truncation waits for the writer and the readers. The writer is blocked meanwhile.
const TRUNCATION_WAIT_MAX: Duration = Duration::from_millis(100);

/// A handle to the checkpoint thread.
pub(crate) struct CheckpointThread {
    due: SyncSender<()>,
    is_busy: Arc<AtomicBool>,
    /// `None` if the caller steps the checkpointer.
    thread: Option<JoinHandle<()>>,
}

impl CheckpointThread {
    /// Creates a handle and the checkpointer that it calls, which needs a thread or a caller that
    /// steps it.
    pub(crate) fn new(
        path: &Path,
        truncation: Arc<AtomicBool>,
        lost: Arc<LostPages>,
    ) -> (Self, Checkpointer) {
        let (due, calls) = sync_channel(1);
        let is_busy = Arc::new(AtomicBool::new(false));
        let checkpointer = Checkpointer {
            calls,
            is_busy: is_busy.clone(),
            truncation,
            lost,
            path: path.to_owned(),
        };
        let handle = Self {
            due,
            is_busy,
            thread: None,
        };
        (handle, checkpointer)
    }

    /// Starts the thread.
    pub(crate) fn start(
        path: &Path,
        truncation: Arc<AtomicBool>,
        lost: Arc<LostPages>,
    ) -> std::io::Result<Self> {
        let (mut handle, checkpointer) = Self::new(path, truncation, lost);
        let thread = std::thread::Builder::new().name("sqlite-ckpt".to_owned());
        handle.thread = Some(thread.spawn(move || checkpointer.run())?);
        Ok(handle)
    }

    fn is_busy(&self) -> bool {
        let is_gone = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        self.is_busy.load(Ordering::Acquire) && !is_gone
    }

    /// Requests a checkpoint. Returns false if the thread cannot accept the request.
    fn request_checkpoint(&self) -> bool {
        self.is_busy.store(true, Ordering::Release);
        let called = self.due.try_send(()).is_ok();
        if !called {
            self.is_busy.store(false, Ordering::Release);
        }
        called
    }

    /// Stops the thread.
    pub(crate) fn close(self) {
        drop(self.due);
        if let Some(thread) = self.thread
            && thread.join().is_err()
        {
            tracing::error!("checkpoint thread panicked");
        }
    }
}

/// Runs the requested checkpoints.
pub(crate) struct Checkpointer {
    calls: Receiver<()>,
    is_busy: Arc<AtomicBool>,
    truncation: Arc<AtomicBool>,
    lost: Arc<LostPages>,
    path: PathBuf,
}

impl Checkpointer {
    /// Serves requests until the handle is dropped.
    fn run(self) {
        loop {
            match self.calls.recv_timeout(TRUNCATION_INTERVAL) {
                Ok(()) => self.serve(true),
                Err(RecvTimeoutError::Timeout) => self.serve(false),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Serves the requests so far.
    #[cfg(feature = "stepped")]
    pub(crate) fn serve_queued(&self) {
        self.serve(self.calls.try_recv().is_ok());
    }

    fn serve(&self, is_called: bool) {
        if is_called {
            checkpoint(&self.lost, &self.path, checkpoint_passively);
            self.is_busy.store(false, Ordering::Release);
        }
        if self.truncation.swap(false, Ordering::SeqCst)
            && checkpoint(&self.lost, &self.path, truncate) != Some(true)
        {
            // A reader still uses the WAL.
            self.truncation.store(true, Ordering::SeqCst);
        }
    }
}

/// Runs a checkpoint on the thread's connection, which is opened on demand and dropped after an
/// error. Does nothing after a failed sync has lost pages.
fn checkpoint<T>(
    lost: &LostPages,
    path: &Path,
    work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
) -> Option<T> {
    let mut open = lost.lock();
    if lost.any() {
        return None;
    }
    let done = match open.take() {
        Some(connection) => Ok(connection),
        None => connection::open_for_writing(path).inspect(keep_log_on_close),
    }
    .and_then(|connection| {
        let value = work(&connection).inspect_err(|error| lost.note_failure(&connection, error))?;
        Ok((connection, value))
    });
    match done {
        Ok((connection, value)) => {
            *open = Some(connection);
            Some(value)
        }
        Err(error) => {
            tracing::warn!(%error, "failed to checkpoint the WAL");
            None
        }
    }
}

/// Copies the whole WAL into the database file and truncates the WAL. Returns false if a reader or
/// another process prevents this.
pub(crate) fn truncate(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.busy_timeout(TRUNCATION_WAIT_MAX)?;
    let busy = connection
        .prepare_cached("pragma wal_checkpoint(truncate)")?
        .query_row((), |row| row.get::<_, i64>(0));
    connection.busy_timeout(BUSY_WAIT)?;
    Ok(busy? == 0)
}

/// Copies pages until only a few are left.
fn checkpoint_passively(connection: &Connection) -> Result<(), rusqlite::Error> {
    for _ in 0..ROUNDS_MAX {
        let (pages, carried): (i64, i64) = connection
            .prepare_cached("pragma wal_checkpoint(passive)")?
            .query_row((), |row| Ok((row.get(1)?, row.get(2)?)))?;
        if pages - carried <= PAGES_LEFT_MAX {
            break;
        }
    }
    Ok(())
}

/// Progress of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No checkpoint is needed yet.
    Idle,
    /// The checkpoint thread is working.
    Checkpointing,
}

/// Decides when a connection's WAL needs a checkpoint.
pub(crate) struct Checkpoints {
    /// Number of WAL pages after the last commit.
    pages: Arc<AtomicU32>,
    /// Number of pages that triggers a checkpoint.
    pages_max: u32,
    due_at: u32,
    stage: Stage,
}

impl Checkpoints {
    /// Installs a commit hook, which also disables `SQLite`'s automatic checkpoints.
    pub(crate) fn watch(
        connection: &mut Connection,
        pages_max: u32,
    ) -> Result<Self, rusqlite::Error> {
        let pages = Arc::new(AtomicU32::new(0));
        let counted = pages.clone();
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            counted.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            pages,
            pages_max,
            due_at: pages_max,
            stage: Stage::Idle,
        })
    }

    /// Runs a checkpoint if one is due. A failure is retried later, because the WAL still contains
    /// everything.
    pub(crate) fn after_commit(
        &mut self,
        connection: &Connection,
        thread: &CheckpointThread,
        lost: &LostPages,
    ) {
        let pages = self.pages.load(Ordering::Relaxed);
        if thread.is_busy() || (self.stage == Stage::Idle && pages < self.due_at) {
            return;
        }
        if self.stage == Stage::Idle && thread.request_checkpoint() {
            self.stage = Stage::Checkpointing;
            return;
        }
        // The checkpoint thread may be truncating the WAL.
        let Some(_guard) = lost.try_lock() else {
            return;
        };
        if lost.any() {
            return;
        }
        self.stage = Stage::Idle;
        self.due_at = match restart_log(connection) {
            Ok(true) => self.pages_max,
            Ok(false) => pages.saturating_add(self.pages_max),
            Err(error) => {
                lost.note_failure(connection, &error);
                tracing::warn!(%error, pages, "failed to restart the WAL");
                pages.saturating_add(self.pages_max)
            }
        };
    }
}

/// Copies the remaining pages. Returns whether the WAL can restart.
fn restart_log(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.busy_timeout(READERS_WAIT_MAX)?;
    let busy = connection
        .prepare_cached("pragma wal_checkpoint(restart)")?
        .query_row((), |row| row.get::<_, i64>(0));
    connection.busy_timeout(BUSY_WAIT)?;
    Ok(busy? == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{open_for_reading, open_for_writing};

    fn write(connection: &Connection, checkpoints: &mut Checkpoints, thread: &CheckpointThread) {
        let sql = "insert into t values (zeroblob(1000000))";
        connection.execute(sql, ()).unwrap();
        settle(connection, checkpoints, thread);
    }

    /// Does what the writer does after a batch, until the checkpoint thread is done.
    fn settle(connection: &Connection, checkpoints: &mut Checkpoints, thread: &CheckpointThread) {
        checkpoints.after_commit(connection, thread, &LostPages::default());
        while thread.is_busy() {
            std::thread::yield_now();
        }
        if checkpoints.stage == Stage::Checkpointing {
            checkpoints.after_commit(connection, thread, &LostPages::default());
        }
    }

    #[test]
    fn the_log_restarts_despite_continuous_readers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut connection = open_for_writing(&path).unwrap();
        connection
            .execute_batch("create table t (x blob) strict")
            .unwrap();
        let mut checkpoints = Checkpoints::watch(&mut connection, LOG_PAGES_MAX).unwrap();
        let thread = CheckpointThread::start(&path, Arc::default(), Arc::default()).unwrap();
        let length = || {
            std::fs::metadata(folder.path().join("x.db-wal"))
                .unwrap()
                .len()
        };

        let reader = open_for_reading(&path).unwrap();
        let held = reader.unchecked_transaction().unwrap();
        let count = |sql| reader.query_row(sql, (), |row| row.get::<_, i64>(0));
        assert_eq!(count("select count(*) from t").unwrap(), 0);
        for _ in 0..40 {
            write(&connection, &mut checkpoints, &thread);
        }
        let grown = length();
        assert!(
            grown > 35_000_000,
            "a long read prevents a restart of the WAL: {grown}"
        );
        held.finish().unwrap();

        for _ in 0..40 {
            let held = reader.unchecked_transaction().unwrap();
            assert!(count("select count(*) from t").unwrap() > 0);
            connection
                .execute("insert into t values (zeroblob(1000000))", ())
                .unwrap();
            held.finish().unwrap();
            settle(&connection, &mut checkpoints, &thread);
        }
        assert!(length() <= grown + 20_000_000, "{}", length());
        let pages = checkpoints.pages.load(Ordering::Relaxed);
        assert!(pages <= LOG_PAGES_MAX + 300, "{pages}");
        thread.close();
    }
}
