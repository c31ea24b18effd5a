//! The embedded storage: one SQLite file, one writer with group commit, and a few readers.
//!
//! A commit is synced before it is acknowledged, so it survives a power cut. Group commit makes
//! this affordable: changes that queue up during one batch form the next batch (see `writer`).

pub mod backup;
pub mod metrics;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transfer;

mod candidates;
mod checkpoints;
mod connection;
mod conversions;
mod execution;
mod integrity;
mod job;
mod leftover_wal;
mod lost_pages;
mod migrate;
mod outbox_table;
mod queue_leases;
mod queues;
mod readers;
mod rollups;
mod rows;
#[cfg(feature = "stepped")]
mod stepped;
mod vacuum_once;
mod waiting_line;
mod writer;
mod writer_thread;

mod accounts;
mod alerts;
mod app_table;
mod apps;
mod audit_log;
mod audit_streams;
mod audit_table;
mod billing;
mod clicks;
mod cost_sources;
mod deliveries;
mod devices;
mod due_kinds;
mod duplicates;
mod event_rows;
mod event_tables;
mod events;
mod factors;
mod imports;
mod instance;
mod integrations;
mod keys;
mod links;
mod members;
mod notices;
mod outbox;
mod person;
mod pivots;
mod postbacks;
mod rates;
mod reports;
mod sdk_events;
mod secret_keys;
mod sessions;
mod sign_ins;
mod single_sign_on;
mod skan;
mod store_ids;
mod tables;
mod tenants;
mod traffic;
mod views;
mod web_events;
mod what_if;
mod wipe;
mod write_batch;

use execution::Execution;
use job::CacheEffect;
use leftover_wal::LeftoverWal;
use readers::Readers;
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Increments;
use tributary_store::StoreError;
use write_batch::WriteBatch;
use writer::Writer;

pub use connection::SqliteOpenError;
#[cfg(feature = "stepped")]
pub use stepped::{AnswerTime, SqliteSteps};

/// The embedded storage.
pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    integrity_check: integrity::IntegrityCheck,
    /// Incremented by changes to keys, apps and links, so that callers invalidate their caches.
    changes: AtomicU64,
    /// Held while a batch of an import is stored, and while other processes then get the write lock.
    /// `None` if no other process, such as the server, had the file open when this one opened it.
    import_turn: Option<tokio::sync::Mutex<()>>,
}

impl SqliteStore {
    /// Opens or creates the file and migrates its schema. Checks the file after an unclean
    /// shutdown.
    pub fn open(path: &Path) -> Result<Self, SqliteOpenError> {
        Self::open_with(path, readers::REPORT_TIMEOUT_DEFAULT)
    }

    /// Like [`Self::open`], with a time limit for one query of a report.
    pub fn open_with(path: &Path, report_timeout: Duration) -> Result<Self, SqliteOpenError> {
        let mut store = Self::open_checked(path, integrity::STARTUP_CHECK_BYTES_MAX)?;
        store.readers.report_timeout = report_timeout;
        Ok(store)
    }

    /// Like [`Self::open`], but files larger than `before_max` bytes are checked in the background.
    fn open_checked(path: &Path, before_max: u64) -> Result<Self, SqliteOpenError> {
        Self::try_open(path, before_max).map_err(|error| match error {
            SqliteOpenError::Sqlite(error) if integrity::is_corruption(&error) => {
                SqliteOpenError::Damaged(error.to_string())
            }
            other => other,
        })
    }

    fn try_open(path: &Path, before_max: u64) -> Result<Self, SqliteOpenError> {
        let opened = OpenedDatabase::open(path, before_max, Execution::THREADS)?;
        let readers = opened.readers.clone();
        let integrity = opened.check.integrity.clone();
        let writer = Writer::start(opened.connection, path, readers, integrity)?;
        Ok(Self::new(
            writer,
            opened.readers,
            opened.check,
            opened.found,
        ))
    }

    /// Opens the file like [`Self::open`], but the caller steps the writer and the checkpoints, and
    /// reads run on the caller's thread. `log_pages_max` WAL pages trigger a checkpoint.
    #[cfg(feature = "stepped")]
    pub fn open_stepped(
        path: &Path,
        log_pages_max: u32,
    ) -> Result<(Self, SqliteSteps), SqliteOpenError> {
        let execution = Execution {
            is_stepped: true,
            log_pages_max,
        };
        let opened = OpenedDatabase::open(path, u64::MAX, execution)?;
        let readers = opened.readers.clone();
        let integrity = opened.check.integrity.clone();
        let (writer, steps) =
            Writer::stepped(opened.connection, path, readers, integrity, execution)?;
        let store = Self::new(writer, opened.readers, opened.check, opened.found);
        Ok((store, steps))
    }

    fn new(
        writer: Writer,
        readers: Readers,
        check: integrity::IntegrityCheck,
        found: LeftoverWal,
    ) -> Self {
        Self {
            writer,
            readers,
            integrity_check: check,
            changes: AtomicU64::new(0),
            import_turn: (found == LeftoverWal::InUse).then(tokio::sync::Mutex::default),
        }
    }

    /// Opens a database copy that no process is using, read-only. Every change fails as
    /// unavailable.
    #[cfg(test)]
    fn open_read_only(path: &Path) -> Result<Self, SqliteOpenError> {
        let check = integrity::IntegrityCheck::disabled(path);
        Ok(Self {
            writer: Writer::closed(check.integrity.clone()),
            readers: Readers::open_copy(path)?,
            integrity_check: check,
            changes: AtomicU64::new(0),
            import_turn: None,
        })
    }

    /// Runs `work` as a named job in the next batch. Returns after the commit; a failure rolls back
    /// only this job.
    async fn write<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write_with(name, CacheEffect::Clears, work).await
    }

    /// Like [`Self::write`], for work that changes no app, link, integration or click, so that the
    /// writer keeps its cache.
    async fn write_keeping_cache<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write_with(name, CacheEffect::Keeps, work).await
    }

    async fn write_with<T: Send + 'static>(
        &self,
        name: &'static str,
        cache_effect: CacheEffect,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let begun = Instant::now();
        let outcome = self.writer.run(name, cache_effect, work).await;
        tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
        outcome
    }

    /// Like [`Self::write`], for changes to cached configuration. Invalidates this process's caches
    /// unless the change was refused: a commit may succeed even if its confirmation is lost. If the
    /// caller stops waiting, the new version of the configuration invalidates them.
    async fn write_invalidating<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let outcome = self.write(name, work).await;
        if !matches!(outcome, Err(StoreError::Refused(_))) {
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
        outcome
    }

    /// Like [`Self::write_keeping_cache`], for work that also returns increments. The increments are
    /// written once per batch.
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

    /// Like [`Self::write`], for work that may only be refused before it writes or counts anything.
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

    /// Runs read-only `work` on a snapshot.
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

/// An open, migrated database, before the writer starts.
struct OpenedDatabase {
    connection: Connection,
    readers: Readers,
    check: integrity::IntegrityCheck,
    found: LeftoverWal,
}

impl OpenedDatabase {
    fn open(path: &Path, before_max: u64, execution: Execution) -> Result<Self, SqliteOpenError> {
        let is_new = std::fs::metadata(path).map_or(true, |file| file.len() == 0);
        if is_new && transfer::unfinished_path(path).exists() {
            return Err(SqliteOpenError::MoveUnfinished);
        }
        let found = if is_new {
            LeftoverWal::Absent
        } else {
            leftover_wal::make_durable(path)?
        };
        let mut connection = connection::open_for_writing(path)?;
        transfer::reject_moved(&connection)?;
        let check = integrity::IntegrityCheck::start(path, found, &connection, before_max)?;
        migrate::migrate(&mut connection)?;
        vacuum_once::run(&connection, path, is_new)?;
        let mut readers = Readers::open(path)?;
        readers.execution = execution;
        Ok(Self {
            connection,
            readers,
            check,
            found,
        })
    }
}

/// How work in a transaction fails: a rule refuses it, or the database fails.
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

/// Turns a violation of the named constraint into a refusal.
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

    /// Billing notifications, user links and transfers give the same result in any order.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[expect(
        clippy::disallowed_methods,
        reason = "the number of cases is configurable"
    )]
    async fn billing_histories_in_any_order() {
        use tributary_store::contract::billing_orders::{
            CASES, CASES_VARIABLE, arrival_order_changes_nothing,
        };
        let (store, _folder) = open().await;
        let cases = std::env::var(CASES_VARIABLE).ok();
        arrival_order_changes_nothing(&store, CASES, cases).await;
    }
}
