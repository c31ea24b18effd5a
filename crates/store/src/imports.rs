//! Imports of events that another database exported.

use crate::StoreResult;
use async_trait::async_trait;
use std::sync::Arc;
use tributary_domain::event::import::{ImportOutcome, ImportedEvent};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum number of events that are imported in one transaction. Larger batches are hardly faster,
/// and other transactions wait longer for the rows that a batch locks. On `SQLite`, they wait for the
/// whole batch.
pub const IMPORT_BATCH_EVENTS_MAX: usize = 4_000;

/// Whether an import changes the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportMode {
    /// The events are stored.
    Write,
    /// Nothing is stored. The outcomes are those that storing the batch would have now.
    DryRun,
}

/// Imports.
#[async_trait]
pub trait Imports: Send + Sync {
    /// Stores an app's exported events, once per id, with their devices and figures, in one
    /// transaction. Plans no deliveries. Returns one outcome per event, in order.
    async fn import_events(
        &self,
        app: AppId,
        batch: Arc<[ImportedEvent]>,
        mode: ImportMode,
        at: Timestamp,
    ) -> StoreResult<Vec<ImportOutcome>>;
}
