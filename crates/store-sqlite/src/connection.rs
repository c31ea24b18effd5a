//! Opening the file, and the settings that every promise rests on.

use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;
use tributary_store::migration::MigrationRefusal;

/// How long to wait for another process that is writing: `tributary admin` beside a running server.
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Statements kept prepared per connection.
const STATEMENTS_MAX: usize = 128;
/// The log is cut back to this after a checkpoint, so that one busy hour does not occupy the disk for ever.
const WAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// `SQLite` said no.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The schema is not one that this program may touch.
    #[error(transparent)]
    Migration(#[from] MigrationRefusal),
    /// A setting that durability rests on was not taken.
    #[error("the database did not accept {0}; is the file on a file system without shared memory?")]
    Setting(&'static str),
    /// No thread could be started.
    #[error(transparent)]
    Thread(#[from] std::io::Error),
}

/// The one connection that writes.
pub(crate) fn open_for_writing(path: &Path) -> Result<Connection, OpenError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_WAIT)?;
    let mode: String = connection.query_row("pragma journal_mode = wal", (), |row| row.get(0))?;
    if mode != "wal" {
        return Err(OpenError::Setting("journal_mode=WAL"));
    }
    // With NORMAL a power cut undoes commits that were already acknowledged.
    connection.pragma_update(None, "synchronous", "full")?;
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if synchronous != 2 {
        return Err(OpenError::Setting("synchronous=FULL"));
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// A connection that cannot write, whatever it is told.
pub(crate) fn open_for_reading(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
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
}
