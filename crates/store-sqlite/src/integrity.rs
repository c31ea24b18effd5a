//! Integrity check of the database file after an unclean shutdown.
//!
//! A marker file exists while a process has the database open. It remains if that process ends
//! without closing the database. A leftover WAL also shows that the database was not closed. The
//! next process to open the database runs `quick_check`: at start-up, or in the background if the
//! file is large. A clean shutdown removes the marker only if the check passed, so damage is found
//! again at every start.

use crate::connection::{self, SqliteOpenError};
use crate::leftover_wal::{self, LeftoverWal};
use rusqlite::{Connection, ErrorCode, InterruptHandle};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Maximum size of a file that is checked at start-up. Checking a file of this size takes some
/// seconds on a slow disk. Larger files are checked in the background.
pub(crate) const STARTUP_CHECK_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// What SQLite reports when a check finds no errors.
const SOUND: &str = "ok";
/// What `SQLite` writes before the error code when a check cannot read a page.
const READ_FAILURE: &str = "unable to get the page. error code=";
/// The same for an overflow page, without the code. `SQLite` has checked the page's number before, so only
/// the read can have failed.
const OVERFLOW_READ_FAILURE: &str = "failed to get page ";
/// Instructions for operators. docs/OPERATIONS.md has the details.
pub(crate) const INSTRUCTIONS: &str = "Stop the server and copy the whole data folder first. \
     Then restore the newest backup into an empty folder (tributary restore), or recover readable \
     data with `sqlite3 tributary.db .recover`. See \"A damaged database\" in docs/OPERATIONS.md";

/// Returns the path of a database's marker file.
pub(crate) fn marker_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-unclean");
    path.into()
}

/// Results of the integrity check so far.
#[derive(Debug, Default)]
pub(crate) struct IntegrityState {
    /// Damage was found; all writes are rejected.
    damaged: AtomicBool,
    /// The check passed, or no check was due.
    passed: AtomicBool,
}

impl IntegrityState {
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::SeqCst)
    }

    fn mark_passed(&self) {
        self.passed.store(true, Ordering::SeqCst);
    }

    /// Rejects all further writes and logs what to do.
    pub(crate) fn report_damage(&self, found: &str) {
        if !self.damaged.swap(true, Ordering::SeqCst) {
            tracing::error!(
                found,
                "the database is damaged; rejecting all changes. {INSTRUCTIONS}"
            );
        }
    }
}

/// Returns whether an error means that the file is damaged.
pub(crate) fn is_corruption(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// The integrity check of a database file, and the marker file.
pub(crate) struct IntegrityCheck {
    marker: PathBuf,
    database: PathBuf,
    pub(crate) integrity: Arc<IntegrityState>,
    background: Mutex<Option<(InterruptHandle, JoinHandle<()>)>>,
}

impl IntegrityCheck {
    /// Creates neither a check nor a marker.
    #[cfg(test)]
    pub(crate) fn disabled(path: &Path) -> Self {
        Self {
            marker: PathBuf::new(),
            database: path.to_owned(),
            integrity: Arc::default(),
            background: Mutex::new(None),
        }
    }

    /// Creates the marker and runs the check if one is due. If the file has more than `before_max`
    /// bytes, a thread runs the check.
    pub(crate) fn start(
        path: &Path,
        found: LeftoverWal,
        connection: &Connection,
        before_max: u64,
    ) -> Result<Self, SqliteOpenError> {
        let check = Self {
            marker: marker_path(path),
            database: path.to_owned(),
            integrity: Arc::default(),
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
            check.integrity.mark_passed();
        } else if size <= before_max {
            tracing::info!(size, "checking the database after an unclean shutdown");
            if let Some(damage) = quick_check(connection)? {
                return Err(SqliteOpenError::Damaged(damage));
            }
            check.integrity.mark_passed();
        } else {
            check.run_in_background()?;
        }
        Ok(check)
    }

    fn run_in_background(&self) -> Result<(), SqliteOpenError> {
        tracing::info!("checking the database in the background after an unclean shutdown");
        let connection = connection::open_for_reading(&self.database)?;
        let interrupt = connection.get_interrupt_handle();
        let integrity = self.integrity.clone();
        let thread = std::thread::Builder::new()
            .name("sqlite-check".to_owned())
            .spawn(move || match quick_check(&connection) {
                Ok(None) => {
                    tracing::info!("database check passed");
                    integrity.mark_passed();
                }
                Ok(Some(damage)) => integrity.report_damage(&damage),
                Err(error) => tracing::warn!(%error, "database check did not finish"),
            })?;
        let mut background = self
            .background
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *background = Some((interrupt, thread));
        Ok(())
    }

    /// Stops a running check. Call it before closing the readers.
    pub(crate) fn stop(&self) {
        let mut background = self
            .background
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((interrupt, thread)) = background.take() {
            interrupt.interrupt();
            if thread.join().is_err() {
                tracing::error!("database check thread panicked");
            }
        }
    }

    /// Removes the marker after the last connection was closed. If a WAL remains, another process
    /// has the database open or closing failed; then the marker stays.
    pub(crate) fn remove_marker(&self) {
        let passed = self.integrity.passed.load(Ordering::SeqCst);
        let has_log = std::fs::metadata(leftover_wal::wal_path(&self.database))
            .is_ok_and(|log| log.len() > 0);
        if !passed || self.integrity.is_damaged() || has_log {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.marker)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "failed to remove the unclean-shutdown marker");
        }
    }
}

/// Returns the first damage that the check finds in the file, if any.
fn quick_check(connection: &Connection) -> Result<Option<String>, rusqlite::Error> {
    match connection.query_row("pragma quick_check(1)", (), |row| row.get::<_, String>(0)) {
        Ok(found) if found == SOUND => Ok(None),
        Ok(found) => match read_failure(&found) {
            Some(error) => Err(error),
            None => Ok(Some(found)),
        },
        Err(error) if is_corruption(&error) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Returns the error that kept the check from reading a page. `SQLite` reports it like damage, but
/// a disk that fails for a moment has lost nothing, so no backup must be restored.
fn read_failure(found: &str) -> Option<rusqlite::Error> {
    let code = if let Some((_, code)) = found.split_once(READ_FAILURE) {
        let digits = code.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()?
    } else if found.contains(OVERFLOW_READ_FAILURE) {
        rusqlite::ffi::SQLITE_IOERR_READ
    } else {
        return None;
    };
    let message = format!("the integrity check cannot read the database; check the disk: {found}");
    let error = rusqlite::ffi::Error::new(code);
    let error = rusqlite::Error::SqliteFailure(error, Some(message));
    (!is_corruption(&error)).then_some(error)
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

    #[rstest::rstest]
    #[case::io_error(266, Some(ErrorCode::SystemIoFailure))]
    #[case::out_of_memory(7, Some(ErrorCode::OutOfMemory))]
    #[case::damaged_page(11, None)]
    fn a_page_that_cannot_be_read_is_not_damage(
        #[case] code: i32,
        #[case] expected: Option<ErrorCode>,
    ) {
        let found = format!(
            "*** in database main ***\nTree 96 page 96: unable to get the page. error code={code}\nx"
        );
        let error = read_failure(&found);
        assert_eq!(error.and_then(|error| error.sqlite_error_code()), expected);
    }

    #[test]
    fn an_overflow_page_that_cannot_be_read_is_not_damage() {
        let error = read_failure("Tree 27 page 140 cell 3: failed to get page 139").unwrap();
        let code = error.sqlite_error_code();
        assert_eq!(code, Some(ErrorCode::SystemIoFailure));
    }

    #[test]
    fn other_findings_are_damage() {
        for found in [
            "row 3 missing from index x",
            "Tree 2 page 2: btreeInitPage() returns error code 11",
        ] {
            assert!(read_failure(found).is_none(), "{found}");
        }
    }

    /// Creates a database with damaged pages in the middle, and the marker of an unclean shutdown.
    async fn damaged(folder: &Path) -> PathBuf {
        let path = folder.join("tributary.db");
        open(&path, u64::MAX).await.unwrap().close().await;
        assert!(
            !folder.join("tributary.db-unclean").exists(),
            "a clean shutdown removes the marker"
        );
        // The damage is in a table that nothing else reads.
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
    async fn finds_damage_at_every_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = damaged(folder.path()).await;
        for _ in 0..2 {
            let refused = open(&path, u64::MAX).await;
            assert!(matches!(refused, Err(SqliteOpenError::Damaged(_))));
        }
    }

    #[tokio::test]
    async fn damage_found_in_the_background_rejects_all_changes() {
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
    async fn checks_and_serves_an_intact_file_after_an_unclean_stop() {
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
