//! The WAL file (`-wal`) that a process leaves behind when it ends without closing the database.
//!
//! The last sync of that file may have failed. The page cache then contains bytes that are not on
//! the disk but counts them as written, so a later sync succeeds without writing them. `SQLite`
//! would treat these bytes as committed, copy their pages into the database file, and rely on the
//! WAL to repair the database file after a power cut. So the WAL is rewritten byte for byte and
//! synced before `SQLite` may checkpoint it.
//!
//! Rewriting is safe only while no process has the database open, which an exclusive lock ensures.
//! If another process has the database open, that process has already rewritten the WAL.

use crate::connection::SqliteOpenError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes rewritten at a time.
const CHUNK_BYTES: usize = 1024 * 1024;

/// How long to wait for the lock. A process that has the database open keeps its lock; a process
/// that is closing the database releases the lock soon.
const LOCK_WAIT: Duration = Duration::from_millis(100);

/// The WAL file found beside a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftoverWal {
    /// Another process has the database open.
    InUse,
    /// The database is not in use, and the WAL file is missing or empty.
    Absent,
    /// The database is not in use, and its WAL is durable now.
    MadeDurable,
}

/// Returns the path of a database's WAL file.
pub(crate) fn wal_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

/// Makes a database's leftover WAL durable. The database must exist.
pub(crate) fn make_durable(database: &Path) -> Result<LeftoverWal, SqliteOpenError> {
    let Some(_exclusive) = lock(database)? else {
        return Ok(LeftoverWal::InUse);
    };
    let log = wal_path(database);
    match std::fs::metadata(&log) {
        Ok(found) if found.len() > 0 => {
            rewrite(&log).map_err(SqliteOpenError::Log)?;
            sync_folder(database).map_err(SqliteOpenError::Folder)?;
            Ok(LeftoverWal::MadeDurable)
        }
        Ok(_) => Ok(LeftoverWal::Absent),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(LeftoverWal::Absent),
        Err(error) => Err(SqliteOpenError::Log(error)),
    }
}

/// Locks the database exclusively. Returns `None` if another process has the database open. Closing
/// the returned connection does not run a checkpoint.
fn lock(database: &Path) -> Result<Option<Connection>, SqliteOpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(LOCK_WAIT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    // The first access takes the lock.
    let read: Result<i64, _> =
        connection.query_row("select count(*) from sqlite_schema", (), |row| row.get(0));
    match read {
        Ok(_) => Ok(Some(connection)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Rewrites a file in place and syncs it, so that the operating system has to write all bytes to
/// the disk.
fn rewrite(path: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    loop {
        file.seek(SeekFrom::Start(at))?;
        let length = file.read(&mut chunk)?;
        if length == 0 {
            return file.sync_all();
        }
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&chunk[..length])?;
        at += u64::try_from(length).unwrap_or(0);
    }
}

/// Syncs the folder that contains a database. `SQLite` does this after creating the WAL file but
/// ignores a failure; a power cut could then remove the WAL with all its commits.
pub(crate) fn sync_folder(database: &Path) -> std::io::Result<()> {
    let folder = match database.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::open_for_writing;

    #[test]
    fn a_leftover_log_keeps_its_bytes_and_commits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let writer = open_for_writing(&path).unwrap();
        writer
            .execute_batch(
                "create table t (x blob) strict; insert into t values (zeroblob(3000000))",
            )
            .unwrap();
        assert_eq!(make_durable(&path).unwrap(), LeftoverWal::InUse);
        // A killed process leaves its files behind but no connection.
        let left = folder.path().join("left.db");
        std::fs::copy(&path, &left).unwrap();
        std::fs::copy(wal_path(&path), wal_path(&left)).unwrap();
        let before = std::fs::read(wal_path(&left)).unwrap();
        assert!(before.len() > 3_000_000);
        assert_eq!(make_durable(&left).unwrap(), LeftoverWal::MadeDurable);
        assert_eq!(std::fs::read(wal_path(&left)).unwrap(), before);
        let length: i64 = open_for_writing(&left)
            .unwrap()
            .query_row("select length(x) from t", (), |row| row.get(0))
            .unwrap();
        assert_eq!(length, 3_000_000);
    }

    #[test]
    fn a_closed_database_has_no_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        drop(open_for_writing(&path).unwrap());
        assert_eq!(make_durable(&path).unwrap(), LeftoverWal::Absent);
    }
}
