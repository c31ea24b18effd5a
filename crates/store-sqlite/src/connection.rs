//! Opening the file, and the settings that every promise rests on.

use crate::leftover_wal;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;
use tributary_store::migration::MigrationRefusal;

/// How long to wait for another process that is writing: `tributary admin` beside a running server.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Statements kept prepared per connection.
const STATEMENTS_MAX: usize = 256;
/// The log is cut back to this after a checkpoint, so that one busy hour does not occupy the disk for ever.
const WAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;
/// Pages that the writer keeps in memory, in KiB. Ids from outside are in no order: each is written to another page,
/// and one that is not at hand is read back from the log.
const WRITER_CACHE_KIB: i64 = 32 * 1024;

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SqliteOpenError {
    /// `SQLite` said no.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The schema is not one that this program may touch.
    #[error(transparent)]
    Migration(#[from] MigrationRefusal),
    /// A setting that durability rests on was not taken.
    #[error("the database did not accept {0}; is the file on a file system without shared memory?")]
    Setting(&'static str),
    /// The log that the last process left behind cannot be made durable.
    #[error("the database's log (-wal) cannot be written again: {0}")]
    Log(#[source] std::io::Error),
    /// The file is damaged.
    #[error("the database is damaged: {0}. {instructions}", instructions = crate::integrity::INSTRUCTIONS)]
    Damaged(String),
    /// The folder's names cannot be made durable.
    #[error("the folder of the database cannot be synced: {0}")]
    Folder(#[source] std::io::Error),
    /// The file cannot be made.
    #[error("the database's file cannot be made: {0}")]
    File(#[source] std::io::Error),
    /// No thread could be started.
    #[error(transparent)]
    Thread(#[from] std::io::Error),
}

impl SqliteOpenError {
    /// Whether trying again later may succeed without a change of this program's settings: the disk was full, another
    /// process held the database, or an I/O error occurred.
    pub fn is_transient(&self) -> bool {
        use rusqlite::ErrorCode::{
            DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory, SystemIoFailure,
        };
        match self {
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(DatabaseBusy | DatabaseLocked | DiskFull | OutOfMemory | SystemIoFailure)
            ),
            Self::Thread(_) => true,
            Self::File(error) | Self::Log(error) | Self::Folder(error) => {
                error.kind() == std::io::ErrorKind::StorageFull
            }
            Self::Migration(_) | Self::Setting(_) | Self::Damaged(_) => false,
        }
    }
}

/// Makes the file, where there is none, for nobody but its owner; `SQLite` gives its log the same mode. An
/// existing file is not even opened: to close it again would take the locks away that this process holds
/// on it.
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

/// The one connection that writes.
pub(crate) fn open_for_writing(path: &Path) -> Result<Connection, SqliteOpenError> {
    make_private(path)?;
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_WAIT)?;
    let mode: String = connection.query_row("pragma journal_mode = wal", (), |row| row.get(0))?;
    if mode != "wal" {
        return Err(SqliteOpenError::Setting("journal_mode=WAL"));
    }
    // With NORMAL a power cut undoes commits that were already acknowledged.
    connection.pragma_update(None, "synchronous", "full")?;
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if synchronous != 2 {
        return Err(SqliteOpenError::Setting("synchronous=FULL"));
    }
    // The first read creates the log.
    connection.query_row("select count(*) from sqlite_schema", (), |_| Ok(()))?;
    leftover_wal::sync_folder(path).map_err(SqliteOpenError::Folder)?;
    keep_plans(&connection)?;
    // Deleted rows are overwritten with zeros: what was erased must not stay in free space.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// A connection that cannot write, whatever it is told.
pub(crate) fn open_for_reading(path: &Path) -> Result<Connection, SqliteOpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    keep_plans(&connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// A statement keeps its plan, whatever values it is given. Otherwise one that compares a column with a value is
/// planned anew for every other value, which cost a quarter of what settling a subscription costs.
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
    fn a_file_that_is_no_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        std::fs::write(
            &path,
            "these are not the bytes of a database, but of a letter",
        )
        .unwrap();
        assert!(open_for_writing(&path).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_is_its_owners_alone_and_an_existing_one_keeps_its_mode() {
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
    fn a_file_in_a_folder_that_is_not_there_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = open_for_writing(&folder.path().join("none").join("x.db"));
        assert!(matches!(refused, Err(SqliteOpenError::File(_))));
    }
}
