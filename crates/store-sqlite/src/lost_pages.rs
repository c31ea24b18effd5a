//! Pages lost by a failed sync of the database file.
//!
//! A checkpoint may stop before the end of the log, because a reader still needs a part. It then
//! copies pages without syncing the database file, and `SQLite` remembers how far it got. The
//! checkpoint that reaches the end syncs. If that sync fails, the operating system drops the pages
//! of all these checkpoints and regards them as written, but `SQLite` repeats only the last one.
//! Then the sync succeeds, the log restarts, and after a power cut the file lacks the other pages.
//!
//! So after a failed sync no checkpoint runs until all connections were closed. The next connection
//! then copies the whole log again.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ffi};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Whether pages were lost, and the lock for checkpoints.
#[derive(Default)]
pub(crate) struct LostPages {
    lost: AtomicBool,
    /// The connection of the checkpoint thread. Locked during every checkpoint, so that none starts
    /// between a failed sync and its note.
    checkpointer: Mutex<Option<Connection>>,
}

impl LostPages {
    /// Whether a sync failed, which forbids further checkpoints.
    pub(crate) fn any(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Waits for the checkpoint lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        self.checkpointer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the checkpoint lock if it is free.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Option<Connection>>> {
        match self.checkpointer.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Notes lost pages if a checkpoint failed to sync. Call it while holding the checkpoint lock.
    pub(crate) fn note_failure(&self, connection: &Connection, error: &rusqlite::Error) {
        let code = error.sqlite_error().map(|error| error.extended_code);
        if code == Some(ffi::SQLITE_IOERR_FSYNC) {
            tracing::error!(
                %error,
                "failed to sync a checkpoint; keeping the log until it can be copied again"
            );
            self.lost.store(true, Ordering::SeqCst);
            keep_log_on_close(connection);
        }
    }

    /// Allows checkpoints again, after all connections were closed.
    pub(crate) fn clear(&self) {
        self.lost.store(false, Ordering::SeqCst);
    }
}

/// Prevents a checkpoint when this connection closes, even if it is the last one.
pub(crate) fn keep_log_on_close(connection: &Connection) {
    let result = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    if let Err(error) = result {
        tracing::error!(%error, "failed to disable the checkpoint on close");
    }
}
