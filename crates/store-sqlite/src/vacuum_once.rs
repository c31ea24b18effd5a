//! One-time VACUUM of a database that was created before `secure_delete` was turned on.
//!
//! Rows deleted without `secure_delete` remain in free pages and in free space within pages. VACUUM
//! rewrites the file without them. A row of `instance` records that this was done or is not needed.

use crate::checkpoints;
use crate::connection::SqliteOpenError;
use rusqlite::{Connection, OptionalExtension as _};
use std::path::Path;

/// The row of `instance` that records the VACUUM.
pub(crate) const DONE_ROW: &str = "secure_delete";

/// Vacuums the database unless this is recorded as done. A failure, most likely a full disk, is
/// logged and retried at the next start; the database stays intact.
pub(crate) fn run(
    connection: &Connection,
    path: &Path,
    is_new: bool,
) -> Result<(), SqliteOpenError> {
    let done: Option<i64> = connection
        .query_row(
            "select 1 from instance where name = ?1",
            [DONE_ROW],
            |row| row.get(0),
        )
        .optional()?;
    if done.is_some() {
        return Ok(());
    }
    if !is_new {
        tracing::info!(
            "rewriting the database once (VACUUM) to remove deleted rows from free space"
        );
        if let Err(error) = vacuum(connection, path) {
            tracing::warn!(
                %error,
                "failed to rewrite the database (VACUUM); free space may still hold deleted rows. \
                 The next start retries; VACUUM needs free disk space of twice the database size"
            );
            return Ok(());
        }
    }
    connection.execute(
        "insert into instance (name, value) values (?1, x'01') on conflict (name) do nothing",
        [DONE_ROW],
    )?;
    checkpoints::truncate(connection)?;
    Ok(())
}

fn vacuum(connection: &Connection, path: &Path) -> Result<(), rusqlite::Error> {
    // The temporary copy goes into the data folder: a container may have no other writable folder,
    // and the copy holds the same data anyway.
    let folder = path.parent().and_then(Path::to_str).unwrap_or_default();
    connection.pragma_update(None, "temp_store_directory", folder)?;
    let vacuumed = connection.execute_batch("vacuum");
    connection.pragma_update(None, "temp_store_directory", "")?;
    vacuumed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteStore, connection, migrate};

    const SECRET: &str = "erased@example.com";

    fn holds_secret(folder: &Path) -> bool {
        std::fs::read_dir(folder).unwrap().any(|entry| {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            bytes
                .windows(SECRET.len())
                .any(|part| part == SECRET.as_bytes())
        })
    }

    #[tokio::test]
    async fn vacuums_a_database_older_than_secure_delete_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        let mut old = connection::open_for_writing(&path).unwrap();
        migrate::migrate(&mut old).unwrap();
        old.pragma_update(None, "secure_delete", false).unwrap();
        old.execute(
            "insert into instance values ('old', ?1)",
            [SECRET.repeat(500).as_bytes()],
        )
        .unwrap();
        old.execute("delete from instance where name = 'old'", ())
            .unwrap();
        drop(old);
        assert!(holds_secret(folder.path()), "free pages keep deleted rows");

        for _ in 0..2 {
            let opened = path.clone();
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
            let store = opened.unwrap().unwrap();
            assert!(!holds_secret(folder.path()));
            tributary_store::Instance::close(&store).await;
        }
        let connection = connection::open_for_writing(&path).unwrap();
        let changed = |connection: &Connection| -> i64 {
            run(connection, &path, false).unwrap();
            connection
                .query_row("pragma page_count", (), |row| row.get(0))
                .unwrap()
        };
        let pages = changed(&connection);
        connection
            .execute_batch("create table t (x blob) strict; insert into t values (zeroblob(100000)); drop table t")
            .unwrap();
        assert!(changed(&connection) > pages, "not vacuumed again");
    }
}
