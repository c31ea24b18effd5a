//! Pages that a failed sync of the database file lost.
//!
//! A checkpoint that does not get to the end of the log, because a reader still needs a part of it, copies pages into the
//! database file without syncing it, and `SQLite` remembers how far it got. The checkpoint that gets to the end syncs. When
//! that sync fails, the operating system drops the pages of all of them and regards them as written, but `SQLite` repeats
//! only the last one. The sync succeeds then, the log starts over, and after a power cut the file lacks the other pages.
//!
//! So after a failed sync no checkpoint runs until every connection was closed once: the connection that opens the database next
//! copies the whole log again.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ffi};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Whether pages were lost, and the right to checkpoint.
#[derive(Default)]
pub(crate) struct LostPages {
    lost: AtomicBool,
    /// The connection of the thread that checkpoints. It is locked during every checkpoint, so none begins
    /// between a failed sync and the note of it.
    checkpointer: Mutex<Option<Connection>>,
}

impl LostPages {
    /// Whether a sync failed, so that nothing may be checkpointed.
    pub(crate) fn any(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Waits for the right to checkpoint.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        self.checkpointer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to checkpoint, if no other thread has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Option<Connection>>> {
        match self.checkpointer.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Looks at why a checkpoint on this connection failed. Call it while the turn is held.
    pub(crate) fn note_failure(&self, connection: &Connection, error: &rusqlite::Error) {
        let code = error.sqlite_error().map(|error| error.extended_code);
        if code == Some(ffi::SQLITE_IOERR_FSYNC) {
            tracing::error!(%error, "a checkpoint could not be synced; the log is kept until it can be copied again");
            self.lost.store(true, Ordering::SeqCst);
            keep_log_on_close(connection);
        }
    }

    /// Every connection was closed: the whole log is copied again.
    pub(crate) fn clear(&self) {
        self.lost.store(false, Ordering::SeqCst);
    }
}

/// Closing this connection does not checkpoint, although it may be the last one.
pub(crate) fn keep_log_on_close(connection: &Connection) {
    let kept = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    if let Err(error) = kept {
        tracing::error!(%error, "a connection does not take a setting");
    }
}
