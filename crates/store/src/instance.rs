//! The instance itself: which secret it was set up with, whether it can commit.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::vocabulary::time::Timestamp;

/// What an operator wants to know of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceReport {
    /// `SQLite` or `PostgreSQL`, with its version.
    pub engine: String,
    /// The newest migration applied.
    pub schema: i64,
    /// The newest time that anything was stored at, to hold the clock against.
    pub newest_record_at: Option<Timestamp>,
    /// The time the database server has, where it is another machine's.
    pub server_time: Option<Timestamp>,
    /// What is legal but unwise about how the database is run.
    pub warnings: Vec<String>,
}

/// The instance itself.
#[async_trait]
pub trait Instance: Send + Sync {
    /// Compares the check value of a secret with the one the database keeps, and keeps it when there is
    /// none yet. False: the database was set up with another secret.
    async fn secret_fits(&self, check_value: [u8; 32]) -> StoreResult<bool>;

    /// Whether the database keeps the check value of a secret already. Changes nothing.
    async fn has_secret(&self) -> StoreResult<bool>;

    /// Commits something. Whoever asks whether the service is ready wants to know just this.
    async fn commit_probe(&self, at: Timestamp) -> StoreResult<()>;

    /// What an operator wants to know.
    async fn report(&self) -> StoreResult<InstanceReport>;

    /// How many changes of keys and apps that are there already were made through this value, so far. It has grown
    /// by the time a change is answered. What other processes change does not show.
    fn change_count(&self) -> u64;

    /// Finishes what was accepted and lets go of the database. Whatever is asked afterwards is unavailable.
    async fn close(&self);
}
