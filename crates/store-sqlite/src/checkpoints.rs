//! Bringing the log's pages home, so that the log can begin anew.
//!
//! `SQLite` does it by itself after a commit that finds the log long, and nothing is written until the disk has taken all
//! of it. Here a thread with a connection of its own does it while the writer goes on.
//!
//! That alone would never let the log begin anew: during every busy hour something is added to it, and somebody reads it,
//! at every moment, and `SQLite` waits for nobody. It would grow without end, and every further commit copies its pages
//! and syncs twice more. So the writer does the last of it, once the thread has left it only a little: the few pages
//! that were added since, and then those who still read the log are waited for. They are few and quick, and whoever
//! begins to read meanwhile does not use the log. Somebody who reads for long is not waited for: then the log grows,
//! and it is tried again some pages later.

use crate::connection::{self, BUSY_WAIT};
use crate::lost_pages::{LostPages, keep_log_on_close};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pages of the log at which they are brought home: sixteen megabytes. A page that is written again and again, as those of
/// roll-ups are, is brought home once.
const LOG_PAGES_MAX: u32 = 4_000;
/// Pages that may be left to the writer: a millisecond or two.
const PAGES_LEFT_MAX: i64 = 200;
/// How often the thread goes after what was added meanwhile. Each time there is less, unless the disk is slower than the
/// writer; then the writer has to wait for it.
const ROUNDS_MAX: u32 = 3;
/// How long to wait for those who read the log. Nothing is written meanwhile.
const READERS_WAIT_MAX: Duration = Duration::from_millis(20);
/// How often the thread looks whether an erasure wants the log truncated, and tries again while a reader blocks that.
const TRUNCATION_INTERVAL: Duration = Duration::from_millis(500);
/// How long a truncation waits for the writer and for readers. The writer waits meanwhile.
const TRUNCATION_WAIT_MAX: Duration = Duration::from_millis(100);

/// A handle to the thread that brings pages home.
pub(crate) struct CheckpointThread {
    due: SyncSender<()>,
    is_busy: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl CheckpointThread {
    /// Starts the thread.
    pub(crate) fn start(
        path: &Path,
        truncation: Arc<AtomicBool>,
        lost: Arc<LostPages>,
    ) -> std::io::Result<Self> {
        let (due, calls) = sync_channel(1);
        let is_busy = Arc::new(AtomicBool::new(false));
        let (busy, path) = (is_busy.clone(), path.to_owned());
        let thread = std::thread::Builder::new()
            .name("sqlite-carrier".to_owned())
            .spawn(move || run_checkpoints(&calls, &busy, &truncation, &lost, &path))?;
        Ok(Self {
            due,
            is_busy,
            thread,
        })
    }

    fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Acquire) && !self.thread.is_finished()
    }

    /// Has it done beside the writer; false when it cannot be.
    fn request_checkpoint(&self) -> bool {
        self.is_busy.store(true, Ordering::Release);
        let called = self.due.try_send(()).is_ok();
        if !called {
            self.is_busy.store(false, Ordering::Release);
        }
        called
    }

    /// Ends the thread.
    pub(crate) fn close(self) {
        drop(self.due);
        if self.thread.join().is_err() {
            tracing::error!("the thread that empties the log did not end as it should");
        }
    }
}

fn run_checkpoints(
    calls: &Receiver<()>,
    is_busy: &AtomicBool,
    truncation: &AtomicBool,
    lost: &LostPages,
    path: &Path,
) {
    loop {
        let is_called = match calls.recv_timeout(TRUNCATION_INTERVAL) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if is_called {
            checkpoint(lost, path, checkpoint_passively);
            is_busy.store(false, Ordering::Release);
        }
        if truncation.swap(false, Ordering::SeqCst)
            && checkpoint(lost, path, truncate) != Some(true)
        {
            // A reader still uses the log.
            truncation.store(true, Ordering::SeqCst);
        }
    }
}

/// Runs a checkpoint on the thread's connection, which is opened when there is none and dropped after an error; none
/// while pages are lost.
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
            tracing::warn!(%error, "failed to checkpoint the log");
            None
        }
    }
}

/// Moves everything in the log into the database file and cuts the log to nothing; false when a reader or another
/// process is in the way.
pub(crate) fn truncate(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.busy_timeout(TRUNCATION_WAIT_MAX)?;
    let busy = connection
        .prepare_cached("pragma wal_checkpoint(truncate)")?
        .query_row((), |row| row.get::<_, i64>(0));
    connection.busy_timeout(BUSY_WAIT)?;
    Ok(busy? == 0)
}

/// Brings pages home until little is left.
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

/// How far bringing pages home has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is no need yet.
    Idle,
    /// The thread is at it.
    Checkpointing,
}

/// When the log of a connection is due.
pub(crate) struct Checkpoints {
    /// Pages of the log, as of the last commit.
    pages: Arc<AtomicU32>,
    due_at: u32,
    stage: Stage,
}

impl Checkpoints {
    /// Takes the matter out of `SQLite`'s hands.
    pub(crate) fn watch(connection: &mut Connection) -> Result<Self, rusqlite::Error> {
        let pages = Arc::new(AtomicU32::new(0));
        let counted = pages.clone();
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            counted.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            pages,
            due_at: LOG_PAGES_MAX,
            stage: Stage::Idle,
        })
    }

    /// Sees to the log, if it is time. What fails is tried again later: the log holds everything.
    pub(crate) fn after_commit(
        &mut self,
        connection: &Connection,
        carrier: &CheckpointThread,
        lost: &LostPages,
    ) {
        let pages = self.pages.load(Ordering::Relaxed);
        if carrier.is_busy() || (self.stage == Stage::Idle && pages < self.due_at) {
            return;
        }
        if self.stage == Stage::Idle && carrier.request_checkpoint() {
            self.stage = Stage::Checkpointing;
            return;
        }
        // The thread may be truncating the log.
        let Some(_turn) = lost.try_lock() else { return };
        if lost.any() {
            return;
        }
        self.stage = Stage::Idle;
        self.due_at = match restart_log(connection) {
            Ok(true) => LOG_PAGES_MAX,
            Ok(false) => pages.saturating_add(LOG_PAGES_MAX),
            Err(error) => {
                lost.note_failure(connection, &error);
                tracing::warn!(%error, pages, "the log could not begin anew");
                pages.saturating_add(LOG_PAGES_MAX)
            }
        };
    }
}

/// Brings the rest home; whether the log begins anew.
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

    fn write(connection: &Connection, checkpoints: &mut Checkpoints, carrier: &CheckpointThread) {
        let sql = "insert into t values (zeroblob(1000000))";
        connection.execute(sql, ()).unwrap();
        settle(connection, checkpoints, carrier);
    }

    /// What the writer does after a batch, and once more when the thread is through.
    fn settle(connection: &Connection, checkpoints: &mut Checkpoints, carrier: &CheckpointThread) {
        checkpoints.after_commit(connection, carrier, &LostPages::default());
        while carrier.is_busy() {
            std::thread::yield_now();
        }
        if checkpoints.stage == Stage::Checkpointing {
            checkpoints.after_commit(connection, carrier, &LostPages::default());
        }
    }

    #[test]
    fn the_log_begins_anew_although_somebody_reads_at_every_moment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut connection = open_for_writing(&path).unwrap();
        connection
            .execute_batch("create table t (x blob) strict")
            .unwrap();
        let mut checkpoints = Checkpoints::watch(&mut connection).unwrap();
        let carrier = CheckpointThread::start(&path, Arc::default(), Arc::default()).unwrap();
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
            write(&connection, &mut checkpoints, &carrier);
        }
        let grown = length();
        assert!(grown > 35_000_000, "somebody reads for long: {grown}");
        held.finish().unwrap();

        for _ in 0..40 {
            let held = reader.unchecked_transaction().unwrap();
            assert!(count("select count(*) from t").unwrap() > 0);
            connection
                .execute("insert into t values (zeroblob(1000000))", ())
                .unwrap();
            held.finish().unwrap();
            settle(&connection, &mut checkpoints, &carrier);
        }
        assert!(length() <= grown + 20_000_000, "{}", length());
        let pages = checkpoints.pages.load(Ordering::Relaxed);
        assert!(pages <= LOG_PAGES_MAX + 300, "{pages}");
        carrier.close();
    }
}
