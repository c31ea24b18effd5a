//! Wiping the test data of an app.

mod tables;

pub use tables::{AppTableWipe, WIPE_TABLES, WipeScope};

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{Authorized, TestDataWipe};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::wipe::{WipeStep, WipedRows};

/// Maximum number of rows that a transaction removes, except figures of a day. The app's billing
/// notifications and `identify` calls wait until it ends, so it must be short.
pub const WIPED_AT_ONCE_MAX: usize = 500;
/// Maximum number of clicks that a transaction reads to find those of the test environment.
pub const WIPE_CLICKS_SCANNED_MAX: usize = 5_000;

/// Result of a transaction of a wipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WipeBatch {
    /// Rows that were removed.
    pub removed: WipedRows,
    /// What to do next; `None` at the end.
    pub next: Option<WipeStep>,
}

/// Wiping test data.
#[async_trait]
pub trait TestData: Send + Sync {
    /// Runs a part of a wipe of an app's test data. Use [`run_wipe`], which runs all parts. Settings,
    /// links, keys and live data stay as they are.
    async fn wipe_test_data(
        &self,
        caller: &Authorized<TestDataWipe>,
        app: AppId,
        step: WipeStep,
        origin: AuditContext,
    ) -> StoreResult<WipeBatch>;
}

/// Returns the name of the transaction of a step.
pub const fn wipe_transaction(step: WipeStep) -> &'static str {
    match step {
        WipeStep::Figures(_) => "wipe_test_figures",
        _ => "wipe_test_data",
    }
}

/// Removes an app's test data, and writes one audit log entry before it does. Returns what was
/// removed. Rows that arrive meanwhile may stay. If the process ends early, another call finishes
/// the work.
pub async fn run_wipe<S: TestData + ?Sized>(
    store: &S,
    caller: &Authorized<TestDataWipe>,
    app: AppId,
    origin: AuditContext,
) -> StoreResult<WipedRows> {
    let mut removed = WipedRows::default();
    let mut next = Some(WipeStep::Begin);
    while let Some(step) = next {
        let batch = store.wipe_test_data(caller, app, step, origin.clone());
        let batch = batch.await?;
        removed += batch.removed;
        next = batch.next;
    }
    Ok(removed)
}
