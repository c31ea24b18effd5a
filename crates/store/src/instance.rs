//! The instance: its readiness, and the health of its database.

use crate::{Store, StoreResult};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::access::Actor;
use tributary_domain::vocabulary::id::AuditId;
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
    /// Time on the database server, if the database is a separate server.
    pub server_time: Option<Timestamp>,
    /// The standby that serves reports, if one is configured.
    pub standby: Option<StandbyReport>,
    /// Warnings about the configuration of the database.
    pub warnings: Vec<String>,
}

/// State of the standby that serves reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandbyReport {
    /// It serves reports unless it is further behind than allowed.
    Usable {
        /// How far it is behind the primary.
        lag: Duration,
        /// Lag beyond which the primary serves reports.
        lag_max: Duration,
    },
    /// The primary serves all reports. Contains the reason.
    Unusable(String),
}

/// A table that is partitioned by time once it is large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LargeTable {
    /// Clicks. Those that something refers to stay when their partition is dropped.
    Clicks,
    /// Finished deliveries.
    Deliveries,
}

/// The state of a table's partitions, and changes to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartitionReport {
    /// Whether the table has partitions. Rows past their retention period then wait until their
    /// partition is dropped.
    pub is_partitioned: bool,
    /// The time up to which partitions contain only the rows that stay.
    pub compacted_until: Option<Timestamp>,
    /// Number of partitions made ahead.
    pub created: u64,
    /// Number of dropped partitions.
    pub dropped: u64,
    /// Estimated number of rows removed with the dropped partitions, without those that stay.
    pub removed_rows: u64,
}

/// The instance.
#[async_trait]
pub trait Instance: Send + Sync {
    /// Commits a row. Readiness checks use this.
    async fn commit_probe(&self, at: Timestamp) -> StoreResult<()>;

    /// Returns a report about the database.
    async fn report(&self) -> StoreResult<InstanceReport>;

    /// Returns the version of the keys, apps and links, for invalidating caches: the id of the audit
    /// entry of the latest change to an existing one, by any process. `None` before the first
    /// change. Versions have no order.
    async fn configuration_version(&self) -> StoreResult<Option<AuditId>>;

    /// Returns the number of changes to existing keys, apps and links made through this store, for
    /// invalidating caches. The number increases before the changing call returns. Changes made by
    /// other processes are not counted.
    fn change_count(&self) -> u64;

    /// Notes that this caller has changed something. Later reports for the caller contain the change,
    /// even if a standby serves reports. Engines without a standby need not note anything.
    fn note_change(&self, _actor: &Actor) {}

    /// Returns the number of servers of a distributed database that do not respond. Only the apps on
    /// them are unavailable.
    fn unreachable_workers(&self) -> usize {
        0
    }

    /// Partitions a table by time once it is large, makes partitions ahead, and drops those whose rows
    /// are all past their retention period. Each change is a transaction. Engines without partitions
    /// do nothing.
    async fn maintain_partitions(
        &self,
        _table: LargeTable,
        _now: Timestamp,
        _retention: Duration,
    ) -> StoreResult<PartitionReport> {
        Ok(PartitionReport::default())
    }

    /// Finishes accepted work and closes the database. Later calls return
    /// [`crate::StoreError::Unavailable`].
    async fn close(&self);
}

/// Notes a caller's change when it is dropped, that is, when the request has been handled and before
/// it is answered. A request that was cancelled may have changed something, too.
pub struct ChangeNote {
    store: Arc<dyn Store>,
    actor: Actor,
}

impl ChangeNote {
    /// Creates the note for a request that may change something.
    pub fn new(store: Arc<dyn Store>, actor: Actor) -> Self {
        Self { store, actor }
    }
}

impl Drop for ChangeNote {
    fn drop(&mut self) {
        self.store.note_change(&self.actor);
    }
}

impl fmt::Debug for ChangeNote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ChangeNote")
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}
