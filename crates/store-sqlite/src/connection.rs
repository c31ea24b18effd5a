//! Opens the database file with the settings that durability requires.

use crate::leftover_wal;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;
use tributary_store::migration::MigrationRefusal;

/// How long to wait for another process that is writing, such as `tributary admin` beside a running
/// server.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Prepared statements cached per connection.
const STATEMENTS_MAX: usize = 256;
/// The WAL file is truncated to this size after a checkpoint, so that one busy hour does not occupy
/// the disk forever.
const WAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;
/// The writer's page cache in KiB. External ids are random, so each one is on a different page, and
/// pages that are not cached are read back from the WAL. A larger cache has a price: while the
/// database is smaller than 1 GiB, `SQLite` walks the whole cache after each commit that split a
/// page. (`balance_nonroot` swaps page numbers through the one at 1 GiB, and the commit then looks
/// for cached pages beyond the end of the file.)
const WRITER_CACHE_KIB: i64 = 32 * 1024;

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SqliteOpenError {
    /// An error from `SQLite`.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The schema is unknown to this version.
    #[error(transparent)]
    Migration(#[from] MigrationRefusal),
    /// A setting that durability requires was rejected.
    #[error("the database rejected {0}; put the data folder on a local file system")]
    Setting(&'static str),
    /// The WAL that the last process left behind cannot be made durable.
    #[error("cannot rewrite the database's WAL file (-wal): {0}")]
    Log(#[source] std::io::Error),
    /// The database file is damaged.
    #[error(
        "the database is damaged: {0}. {instructions}",
        instructions = crate::integrity::INSTRUCTIONS
    )]
    Damaged(String),
    /// The data was moved to another database.
    #[error(
        "the data was moved to another database; set database_url to that one. To use this file \
         again without the changes made since, run `tributary move --cancel` on it"
    )]
    Moved,
    /// Another database is being moved to this path.
    #[error(
        "`tributary move` has not finished copying to this file; finish it with --cut-over, or remove \
         the unfinished file (.moving)"
    )]
    MoveUnfinished,
    /// The folder cannot be synced.
    #[error("cannot sync the database folder: {0}")]
    Folder(#[source] std::io::Error),
    /// The file cannot be created.
    #[error("cannot create the database file: {0}")]
    File(#[source] std::io::Error),
    /// A thread cannot be started.
    #[error(transparent)]
    Thread(#[from] std::io::Error),
}

impl SqliteOpenError {
    /// Returns whether a retry may succeed without a change to this program's settings: the disk
    /// was full, another process held the database, or an I/O error occurred.
    pub fn is_transient(&self) -> bool {
        use rusqlite::ErrorCode::{
            DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory, SystemIoFailure,
        };
        match self {
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(DatabaseBusy | DatabaseLocked | DiskFull | OutOfMemory | SystemIoFailure)
            ),
            Self::Thread(_) | Self::MoveUnfinished => true,
            Self::File(error) | Self::Log(error) | Self::Folder(error) => is_disk_failure(error),
            Self::Migration(_) | Self::Setting(_) | Self::Damaged(_) | Self::Moved => false,
        }
    }
}

/// Returns whether the disk was full or failed, like the codes of `SQLite` for its own files.
fn is_disk_failure(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::StorageFull
        || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// Creates a missing file, readable only by its owner; `SQLite` gives the WAL file the same mode.
/// An existing file is not opened, because closing it would release this process's locks on it.
fn make_private(path: &Path) -> Result<(), SqliteOpenError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(SqliteOpenError::File(error))
        }
        _ => Ok(()),
    }
}

/// Opens the writing connection.
pub(crate) fn open_for_writing(path: &Path) -> Result<Connection, SqliteOpenError> {
    make_private(path)?;
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_WAIT)?;
    let mode: String = connection.query_row("pragma journal_mode = wal", (), |row| row.get(0))?;
    if mode != "wal" {
        return Err(SqliteOpenError::Setting("journal_mode=WAL"));
    }
    // With `synchronous = NORMAL`, a power cut loses acknowledged commits.
    connection.pragma_update(None, "synchronous", "full")?;
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if synchronous != 2 {
        return Err(SqliteOpenError::Setting("synchronous=FULL"));
    }
    // The first read creates the WAL file.
    connection.query_row("select count(*) from sqlite_schema", (), |_| Ok(()))?;
    leftover_wal::sync_folder(path).map_err(SqliteOpenError::Folder)?;
    keep_plans(&connection)?;
    // Overwrites deleted rows with zeros, so that erased data does not remain in free space.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// Opens a read-only connection.
pub(crate) fn open_for_reading(path: &Path) -> Result<Connection, SqliteOpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    keep_plans(&connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// Keeps query plans stable. Otherwise `SQLite` plans a statement again when its bound values
/// change, which took a quarter of the time for settling a subscription.
fn keep_plans(connection: &Connection) -> Result<(), SqliteOpenError> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let writer = open_for_writing(&path).unwrap();
        writer
            .execute_batch("create table t (x integer) strict")
            .unwrap();
        let reader = open_for_reading(&path).unwrap();
        assert!(reader.execute("insert into t values (1)", ()).is_err());
    }

    #[test]
    fn rejects_a_file_that_is_not_a_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        std::fs::write(&path, "this file is not a database").unwrap();
        assert!(open_for_writing(&path).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_is_private_and_an_existing_one_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let with_mode = std::fs::Permissions::from_mode;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), with_mode(0o755)).unwrap();
        let path = folder.path().join("x.db");
        let writer = open_for_writing(&path).unwrap();
        writer
            .execute_batch("create table t (x integer) strict")
            .unwrap();
        for file in ["x.db", "x.db-wal", "x.db-shm"] {
            assert_eq!(mode(&folder.path().join(file)), 0o600, "{file}");
        }
        drop(writer);
        std::fs::set_permissions(&path, with_mode(0o640)).unwrap();
        drop(open_for_writing(&path).unwrap());
        assert_eq!(mode(&path), 0o640);
    }

    #[test]
    fn rejects_a_path_in_a_missing_folder() {
        let folder = tempfile::tempdir().unwrap();
        let refused = open_for_writing(&folder.path().join("none").join("x.db"));
        assert!(matches!(refused, Err(SqliteOpenError::File(_))));
    }
}
