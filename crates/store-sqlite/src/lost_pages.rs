//! Pages lost when a sync of the database file failed.
//!
//! A checkpoint may stop before the end of the WAL, because a reader still needs a part of it. The
//! checkpoint then copies pages without syncing the database file, and `SQLite` remembers how far
//! it got. The checkpoint that reaches the end syncs the file. If that sync fails, the operating
//! system drops the pages from all these checkpoints but counts them as written, and `SQLite`
//! repeats only the last checkpoint. The repeated sync succeeds, the WAL restarts, and after a
//! power cut the file lacks the other pages.
//!
//! So after a failed sync, no checkpoint runs until all connections have been closed. The next
//! connection then copies the whole WAL again.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ffi};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Whether pages were lost, and the lock for checkpoints.
#[derive(Default)]
pub(crate) struct LostPages {
    lost: AtomicBool,
    /// The checkpoint thread's connection. Locked during every checkpoint, so that no checkpoint
    /// starts between a failed sync and the moment it is noted.
    checkpointer: Mutex<Option<Connection>>,
}

impl LostPages {
    /// Returns whether a sync failed, which forbids further checkpoints.
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
                "failed to sync the database file during a checkpoint; keeping the WAL"
            );
            self.lost.store(true, Ordering::SeqCst);
            keep_log_on_close(connection);
        }
    }

    /// Allows checkpoints again, after all connections have been closed.
    pub(crate) fn clear(&self) {
        self.lost.store(false, Ordering::SeqCst);
    }
}

/// Prevents a checkpoint when this connection closes, even if it is the last connection.
pub(crate) fn keep_log_on_close(connection: &Connection) {
    let result = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    if let Err(error) = result {
        tracing::error!(%error, "failed to disable the checkpoint on close");
    }
}
