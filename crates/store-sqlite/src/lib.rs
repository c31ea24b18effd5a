//! The embedded storage: one SQLite file, one writer with group commit, a few readers.
//!
//! A commit is synced before it is answered: that, and nothing less, survives a power cut. What makes it affordable is
//! that whatever queued up while one batch was being written is the next batch (see `writer`).

pub mod backup;
pub mod metrics;

mod candidates;
mod checkpoints;
mod connection;
mod conversions;
mod integrity;
mod job;
mod leftover_wal;
mod lost_pages;
mod migrate;
mod outbox_table;
mod queues;
mod readers;
mod rollups;
mod rows;
mod vacuum_once;
mod writer;
mod writer_thread;

mod alerts;
mod app_table;
mod apps;
mod audit_log;
mod billing;
mod clicks;
mod deliveries;
mod devices;
mod duplicates;
mod event_tables;
mod events;
mod instance;
mod integrations;
mod links;
mod members;
mod outbox;
mod postbacks;
mod rates;
mod reports;
mod sessions;
mod skan;
mod skipped;
mod tables;
mod tenants;
mod web_events;
mod write_batch;

use leftover_wal::LeftoverWal;
use readers::Readers;
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Increments;
use tributary_store::StoreError;
use write_batch::WriteBatch;
use writer::Writer;

pub use connection::SqliteOpenError;

/// The embedded storage.
pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    integrity_check: integrity::IntegrityCheck,
    /// Changes of keys and apps, for whoever keeps what was read of them.
    changes: AtomicU64,
}

impl SqliteStore {
    /// Opens the file, creates it when it does not exist, and brings its schema up to date. After an unclean stop the
    /// file is checked.
    pub fn open(path: &Path) -> Result<Self, SqliteOpenError> {
        Self::open_checked(path, integrity::STARTUP_CHECK_BYTES_MAX)
    }

    /// As [`Self::open`]; files of more than `before_max` bytes are checked beside serving.
    fn open_checked(path: &Path, before_max: u64) -> Result<Self, SqliteOpenError> {
        Self::try_open(path, before_max).map_err(|error| match error {
            SqliteOpenError::Sqlite(error) if integrity::is_corruption(&error) => {
                SqliteOpenError::Damaged(error.to_string())
            }
            other => other,
        })
    }

    fn try_open(path: &Path, before_max: u64) -> Result<Self, SqliteOpenError> {
        let is_new = std::fs::metadata(path).map_or(true, |file| file.len() == 0);
        let found = if is_new {
            LeftoverWal::Absent
        } else {
            leftover_wal::make_durable(path)?
        };
        let mut connection = connection::open_for_writing(path)?;
        let check = integrity::IntegrityCheck::start(path, found, &connection, before_max)?;
        migrate::migrate(&mut connection)?;
        vacuum_once::run(&connection, path, is_new)?;
        let readers = Readers::open(path)?;
        Ok(Self {
            writer: Writer::start(connection, path, readers.clone(), check.soundness.clone())?,
            readers,
            integrity_check: check,
            changes: AtomicU64::new(0),
        })
    }

    /// Opens a copy that no process writes to, and writes nothing itself: every change is answered as unavailable.
    #[cfg(test)]
    fn open_read_only(path: &Path) -> Result<Self, SqliteOpenError> {
        let check = integrity::IntegrityCheck::disabled(path);
        Ok(Self {
            writer: Writer::closed(check.soundness.clone()),
            readers: Readers::open_copy(path)?,
            integrity_check: check,
            changes: AtomicU64::new(0),
        })
    }

    /// Runs something in a transaction of its own name, together with whatever else is waiting. It is
    /// answered after the commit; a failure undoes its own part and nobody else's.
    async fn write<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let begun = Instant::now();
        let outcome = self.writer.run(name, work).await;
        tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
        outcome
    }

    /// As [`Self::write`], for a change of a key or an app. It counts whatever became of it: a commit whose answer
    /// was lost is one all the same.
    async fn write_invalidating<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let outcome = self.write(name, work).await;
        self.changes.fetch_add(1, Ordering::SeqCst);
        outcome
    }

    /// As [`Self::write`], for work that gives what it counted beside its value: that is written once for all that is
    /// committed together.
    async fn write_counted<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<(T, Increments), Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let begun = Instant::now();
        let outcome = self.writer.run_counted(name, work).await;
        tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
        outcome
    }

    /// As [`Self::write`], for work that refuses before it writes or counts anything.
    async fn write_decided<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&WriteBatch<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let begun = Instant::now();
        let outcome = self.writer.run_without_savepoint(name, work).await;
        tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
        outcome
    }

    /// Runs something that only reads, on a snapshot of its own.
    async fn read<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let begun = Instant::now();
        let outcome = self.readers.run(name, work).await;
        tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
        outcome
    }
}

/// How work inside a transaction fails: by a rule, or by the database.
#[derive(Debug)]
enum Failure {
    Store(StoreError),
    Sqlite(rusqlite::Error),
}

impl Failure {
    fn into_store_error(self, during: &'static str) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sqlite(error) => StoreError::unavailable(during, error),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Store(refusal.into())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Turns the violation of one named constraint into a refusal.
fn refuse_duplicate(
    outcome: Result<usize, rusqlite::Error>,
    column: &str,
    refusal: Refusal,
) -> Result<(), Failure> {
    match outcome {
        Ok(_) => Ok(()),
        Err(rusqlite::Error::SqliteFailure(code, Some(message)))
            if code.code == rusqlite::ErrorCode::ConstraintViolation
                && message.ends_with(column) =>
        {
            Err(refusal.into())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tributary_store::Store;

    async fn open() -> (Arc<dyn Store>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
        (Arc::new(opened.unwrap().unwrap()), folder)
    }

    tributary_store::contract_suite!(super::open);

    /// The order of billing notifications, joins and transfers changes nothing.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test asks how long it may take"
    )]
    async fn billing_histories_in_any_order() {
        use tributary_store::contract::billing_orders::{
            CASES, CASES_VARIABLE, arrival_order_changes_nothing,
        };
        let (store, _folder) = open().await;
        let asked = std::env::var(CASES_VARIABLE).ok();
        arrival_order_changes_nothing(&store, CASES, asked).await;
    }
}
