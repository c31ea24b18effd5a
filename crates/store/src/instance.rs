//! The instance: its secret, readiness and health of the database.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::vocabulary::time::Timestamp;

/// Report about the database for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceReport {
    /// `SQLite` or `PostgreSQL`, with its version.
    pub engine: String,
    /// Number of the newest applied migration.
    pub schema: i64,
    /// Time of the newest record, to detect a wrong clock.
    pub newest_record_at: Option<Timestamp>,
    /// Time of the database server, if it runs on another machine.
    pub server_time: Option<Timestamp>,
    /// Warnings about the configuration of the database.
    pub warnings: Vec<String>,
}

/// The instance.
#[async_trait]
pub trait Instance: Send + Sync {
    /// Compares the check value of the secret with the stored one, and stores it if there is none.
    /// Returns false when the database was set up with another secret.
    async fn secret_fits(&self, check_value: [u8; 32]) -> StoreResult<bool>;

    /// Returns whether the check value of a secret is stored.
    async fn has_secret(&self) -> StoreResult<bool>;

    /// Commits a row. Readiness checks use this.
    async fn commit_probe(&self, at: Timestamp) -> StoreResult<()>;

    /// Returns a report about the database.
    async fn report(&self) -> StoreResult<InstanceReport>;

    /// Returns the number of changes to existing keys and apps made through this store, for
    /// invalidating caches. It increases before the change returns. Changes by other processes are
    /// not counted.
    fn change_count(&self) -> u64;

    /// Finishes accepted work and closes the database. Later calls return unavailable.
    async fn close(&self);
}
