//! Bringing the log's pages home, so that the log can begin anew.
//!
//! `SQLite` does it by itself after a commit that finds the log long, but does not wait for anybody: while somebody
//! reads at every moment, which is every busy hour, the log never begins anew, grows without end, and every further
//! commit copies its pages and syncs twice more. Here it is done after the batch was answered, and those who still
//! read the log are waited for. They are few and quick, and whoever begins to read meanwhile does not use the log.
//! Somebody who reads for long is not waited for: then the log grows, and it is tried again some pages later.

use crate::connection::BUSY_WAIT;
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Pages of the log at which they are brought home: sixteen megabytes, which takes some ten milliseconds. A page that is
/// written again and again, as those of roll-ups are, is brought home once.
const LOG_PAGES_MAX: u32 = 4_000;
/// How long to wait for those who read the log. Nothing is written meanwhile.
const READERS_WAIT_MAX: Duration = Duration::from_millis(20);

/// When the log of a connection is due.
pub(crate) struct Checkpoints {
    /// Pages of the log, as of the last commit.
    pages: Arc<AtomicU32>,
    due_at: u32,
}

impl Checkpoints {
    /// Takes the matter out of `SQLite`'s hands.
    pub(crate) fn of(connection: &mut Connection) -> Result<Self, rusqlite::Error> {
        let pages = Arc::new(AtomicU32::new(0));
        let counted = pages.clone();
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            counted.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            pages,
            due_at: LOG_PAGES_MAX,
        })
    }

    /// Brings the pages home if it is time. What fails is tried again later: the log holds everything.
    pub(crate) fn after_commit(&mut self, connection: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.due_at {
            return;
        }
        self.due_at = match checkpoint(connection) {
            Ok(true) => LOG_PAGES_MAX,
            Ok(false) => pages.saturating_add(LOG_PAGES_MAX),
            Err(error) => {
                tracing::warn!(%error, pages, "the log's pages could not be brought home");
                pages.saturating_add(LOG_PAGES_MAX)
            }
        };
    }
}

/// Whether the log begins anew.
fn checkpoint(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.busy_timeout(READERS_WAIT_MAX)?;
    let busy = connection
        .prepare_cached("pragma wal_checkpoint(restart)")?
        .query_row((), |row| row.get::<_, i64>(0));
    connection.busy_timeout(BUSY_WAIT)?;
    Ok(busy? == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{open_for_reading, open_for_writing};

    fn write(connection: &Connection, checkpoints: &mut Checkpoints) {
        let sql = "insert into t values (zeroblob(1000000))";
        connection.execute(sql, ()).unwrap();
        checkpoints.after_commit(connection);
    }

    #[test]
    fn the_log_begins_anew_although_somebody_reads_at_every_moment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut connection = open_for_writing(&path).unwrap();
        connection
            .execute_batch("create table t (x blob) strict")
            .unwrap();
        let mut checkpoints = Checkpoints::of(&mut connection).unwrap();
        let length = || {
            std::fs::metadata(folder.path().join("x.db-wal"))
                .unwrap()
                .len()
        };

        let reader = open_for_reading(&path).unwrap();
        let held = reader.unchecked_transaction().unwrap();
        let count = |sql| reader.query_row(sql, (), |row| row.get::<_, i64>(0));
        assert_eq!(count("select count(*) from t").unwrap(), 0);
        for _ in 0..40 {
            write(&connection, &mut checkpoints);
        }
        let grown = length();
        assert!(grown > 35_000_000, "somebody reads for long: {grown}");
        held.finish().unwrap();

        for _ in 0..40 {
            let held = reader.unchecked_transaction().unwrap();
            assert!(count("select count(*) from t").unwrap() > 0);
            connection
                .execute("insert into t values (zeroblob(1000000))", ())
                .unwrap();
            held.finish().unwrap();
            checkpoints.after_commit(&connection);
        }
        assert!(length() <= grown + 20_000_000, "{}", length());
        let pages = checkpoints.pages.load(Ordering::Relaxed);
        assert!(pages <= LOG_PAGES_MAX + 300, "{pages}");
    }
}
