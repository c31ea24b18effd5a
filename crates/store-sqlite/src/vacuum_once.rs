//! One VACUUM of a database from before `secure_delete`.
//!
//! Rows that were deleted without it stay in free pages and in the free space of pages. VACUUM writes the whole file
//! again without them. A row of `instance` records that it was done, or that the database never needed it.

use crate::checkpoints;
use crate::connection::SqliteOpenError;
use rusqlite::{Connection, OptionalExtension as _};
use std::path::Path;

/// The row of `instance` that records it.
const DONE_ROW: &str = "secure_delete";

/// Vacuums the database unless that is recorded. A failure (most likely a full disk) is logged, and the next start
/// tries again: the database is as sound as before.
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
            "rewriting the database once (VACUUM), so that free space holds nothing of deleted rows"
        );
        if let Err(error) = vacuum(connection, path) {
            tracing::warn!(
                %error,
                "the database could not be rewritten; free space may still hold deleted rows, and the next start tries \
                 again. It needs free disk space of twice the size of the database"
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
    // The temporary copy belongs into the data folder: a container may have no other one, and it holds the same data.
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

    const SECRET: &str = "somebody@example.com";

    fn holds_secret(folder: &Path) -> bool {
        std::fs::read_dir(folder).unwrap().any(|entry| {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            bytes
                .windows(SECRET.len())
                .any(|part| part == SECRET.as_bytes())
        })
    }

    #[tokio::test]
    async fn a_database_from_before_secure_delete_is_rewritten_once() {
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
        assert!(changed(&connection) > pages, "it is not vacuumed again");
    }
}
