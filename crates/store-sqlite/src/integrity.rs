//! Checking the file after an unclean stop.
//!
//! A marker file beside the database exists while a process has it open, and stays when that process ends without closing
//! it. A log that is not empty says the same. The first process that opens the database after that runs `quick_check`:
//! before it serves, or beside serving where the file is so large that the check would take long. The marker is removed by
//! a clean stop, and only after a check that found nothing, so damage is found again at every start.

use crate::connection::{self, SqliteOpenError};
use crate::leftover_wal::{self, LeftoverWal};
use rusqlite::{Connection, ErrorCode, InterruptHandle};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The largest file that is checked before serving: some seconds on a slow disk. Larger ones are checked beside serving.
pub(crate) const STARTUP_CHECK_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// What `SQLite` says of a sound file.
const SOUND: &str = "ok";
/// What an operator has to do. The document has the details.
pub(crate) const INSTRUCTIONS: &str = "Stop the server and copy the whole data folder before anything else. \
     Then restore the newest backup into an empty folder (tributary restore), or recover what is readable with \
     `sqlite3 tributary.db .recover`. See \"A damaged database\" in docs/OPERATIONS.md";

/// The path of a database's marker.
pub(crate) fn marker_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-unclean");
    path.into()
}

/// What is known about the file.
#[derive(Debug, Default)]
pub(crate) struct IntegrityState {
    /// Nothing is accepted any more.
    damaged: AtomicBool,
    /// No check is outstanding.
    passed: AtomicBool,
}

impl IntegrityState {
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::SeqCst)
    }

    fn mark_passed(&self) {
        self.passed.store(true, Ordering::SeqCst);
    }

    /// Stops accepting, and says what to do.
    pub(crate) fn report_damage(&self, found: &str) {
        if !self.damaged.swap(true, Ordering::SeqCst) {
            tracing::error!(
                found,
                "the database is damaged; nothing is accepted any more. {INSTRUCTIONS}"
            );
        }
    }
}

/// Whether a failure means that the file is damaged.
pub(crate) fn is_corruption(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// The check of a file, and the marker beside it.
pub(crate) struct IntegrityCheck {
    marker: PathBuf,
    database: PathBuf,
    pub(crate) soundness: Arc<IntegrityState>,
    background: Mutex<Option<(InterruptHandle, JoinHandle<()>)>>,
}

impl IntegrityCheck {
    /// No check, and no marker.
    #[cfg(test)]
    pub(crate) fn disabled(path: &Path) -> Self {
        Self {
            marker: PathBuf::new(),
            database: path.to_owned(),
            soundness: Arc::default(),
            background: Mutex::new(None),
        }
    }

    /// Sets the marker and runs the check, if one is due. Files above `before_max` bytes are checked by a thread.
    pub(crate) fn start(
        path: &Path,
        found: LeftoverWal,
        connection: &Connection,
        before_max: u64,
    ) -> Result<Self, SqliteOpenError> {
        let check = Self {
            marker: marker_path(path),
            database: path.to_owned(),
            soundness: Arc::default(),
            background: Mutex::new(None),
        };
        let is_marked = check.marker.exists();
        if !is_marked {
            let set = std::fs::File::create(&check.marker).and_then(|file| file.sync_all());
            set.map_err(SqliteOpenError::File)?;
            leftover_wal::sync_folder(path).map_err(SqliteOpenError::Folder)?;
        }
        let is_due = match found {
            LeftoverWal::InUse => false,
            LeftoverWal::MadeDurable => true,
            LeftoverWal::Absent => is_marked,
        };
        let size = std::fs::metadata(path)
            .map_err(SqliteOpenError::File)?
            .len();
        if !is_due {
            check.soundness.mark_passed();
        } else if size <= before_max {
            tracing::info!(size, "checking the database after an unclean stop");
            if let Some(damage) = quick_check(connection)? {
                return Err(SqliteOpenError::Damaged(damage));
            }
            check.soundness.mark_passed();
        } else {
            check.run_in_background()?;
        }
        Ok(check)
    }

    fn run_in_background(&self) -> Result<(), SqliteOpenError> {
        tracing::info!("checking the database after an unclean stop, beside serving");
        let connection = connection::open_for_reading(&self.database)?;
        let interrupt = connection.get_interrupt_handle();
        let soundness = self.soundness.clone();
        let thread = std::thread::Builder::new()
            .name("sqlite-check".to_owned())
            .spawn(move || match quick_check(&connection) {
                Ok(None) => {
                    tracing::info!("the database is sound");
                    soundness.mark_passed();
                }
                Ok(Some(damage)) => soundness.report_damage(&damage),
                Err(error) => tracing::warn!(%error, "the check of the database did not finish"),
            })?;
        let mut beside = self
            .background
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *beside = Some((interrupt, thread));
        Ok(())
    }

    /// Ends a check that is under way. Call it before the readers are closed.
    pub(crate) fn stop(&self) {
        let mut beside = self
            .background
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((interrupt, thread)) = beside.take() {
            interrupt.interrupt();
            if thread.join().is_err() {
                tracing::error!("the thread that checks the database panicked");
            }
        }
    }

    /// Removes the marker after the last connection was closed. Where a log is left, another process has the database
    /// open, or closing failed; then the marker stays.
    pub(crate) fn remove_marker(&self) {
        let passed = self.soundness.passed.load(Ordering::SeqCst);
        let has_log = std::fs::metadata(leftover_wal::wal_path(&self.database))
            .is_ok_and(|log| log.len() > 0);
        if !passed || self.soundness.is_damaged() || has_log {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.marker)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "the marker of an unclean stop could not be removed");
        }
    }
}

/// What is wrong with the file, if anything is.
fn quick_check(connection: &Connection) -> Result<Option<String>, rusqlite::Error> {
    match connection.query_row("pragma quick_check(1)", (), |row| row.get::<_, String>(0)) {
        Ok(found) if found == SOUND => Ok(None),
        Ok(found) => Ok(Some(found)),
        Err(error) if is_corruption(&error) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;
    use tributary_domain::vocabulary::time::Timestamp;
    use tributary_store::Instance as _;

    async fn open(path: &Path, before_max: u64) -> Result<SqliteStore, SqliteOpenError> {
        let path = path.to_owned();
        let opened =
            tokio::task::spawn_blocking(move || SqliteStore::open_checked(&path, before_max));
        opened.await.unwrap()
    }

    /// A database whose pages in the middle are not what was written, with the marker of an unclean stop.
    async fn damaged(folder: &Path) -> PathBuf {
        let path = folder.join("tributary.db");
        open(&path, u64::MAX).await.unwrap().close().await;
        assert!(
            !folder.join("tributary.db-unclean").exists(),
            "a clean stop leaves no marker"
        );
        // In a table that nothing else reads.
        let connection = connection::open_for_writing(&path).unwrap();
        let bulk = "create table bulk (x blob) strict; insert into bulk values (zeroblob(400000))";
        connection.execute_batch(bulk).unwrap();
        drop(connection);
        let mut bytes = std::fs::read(&path).unwrap();
        let from = bytes.len() - 50 * 4_096;
        bytes[from..from + 40_960].fill(0xff);
        std::fs::write(&path, bytes).unwrap();
        std::fs::write(folder.join("tributary.db-unclean"), "").unwrap();
        path
    }

    #[tokio::test]
    async fn damage_is_found_before_serving_at_every_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = damaged(folder.path()).await;
        for _ in 0..2 {
            let refused = open(&path, u64::MAX).await;
            assert!(matches!(refused, Err(SqliteOpenError::Damaged(_))));
        }
    }

    #[tokio::test]
    async fn damage_in_a_large_file_is_found_beside_serving_and_nothing_is_accepted_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = damaged(folder.path()).await;
        let store = open(&path, 0).await.unwrap();
        let begun = std::time::Instant::now();
        while store.commit_probe(Timestamp::from_millis(1)).await.is_ok() {
            assert!(begun.elapsed() < std::time::Duration::from_secs(20));
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        store.close().await;
        assert!(folder.path().join("tributary.db-unclean").exists());
    }

    #[tokio::test]
    async fn a_sound_file_is_checked_after_an_unclean_stop_and_served() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        drop(open(&path, u64::MAX).await.unwrap());
        let marker = folder.path().join("tributary.db-unclean");
        assert!(marker.exists());
        for before_max in [0, u64::MAX] {
            let store = open(&path, before_max).await.unwrap();
            store.commit_probe(Timestamp::from_millis(1)).await.unwrap();
            drop(store);
        }
        open(&path, u64::MAX).await.unwrap().close().await;
        assert!(!marker.exists());
    }
}
