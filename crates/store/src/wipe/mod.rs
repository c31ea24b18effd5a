//! Wiping the test data of an app.

mod tables;

pub use tables::{AppTableWipe, WIPE_TABLES, WipeScope};

use crate::StoreResult;
use async_trait::async_trait;
use std::time::{Duration, Instant};
use tributary_domain::access::{Authorized, TestDataWipe};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::wipe::{WipeStep, WipedRows};

/// Maximum number of rows that a transaction removes, except figures of a day. The app's billing
/// notifications and `identify` calls wait until it ends, so it must be short.
pub const WIPED_AT_ONCE_MAX: usize = 500;
/// Maximum number of clicks that a transaction reads to find those of the test environment.
pub const WIPE_CLICKS_SCANNED_MAX: usize = 5_000;
/// How long a request works on a wipe, so that it ends before the server's time limit for requests.
/// The next request continues.
pub const WIPE_REQUEST_TIME_MAX: Duration = Duration::from_secs(15);

/// Result of a transaction of a wipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WipeBatch {
    /// Rows that were removed.
    pub removed: WipedRows,
    /// What to do next; `None` at the end.
    pub next: Option<WipeStep>,
}

/// Result of a wipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WipeReport {
    /// Rows that were removed.
    pub removed: WipedRows,
    /// Whether everything was removed. Otherwise the time was over.
    pub is_complete: bool,
}

/// Wiping test data.
#[async_trait]
pub trait TestData: Send + Sync {
    /// Runs a part of a wipe of an app's test data, for callers of both environments. Use
    /// [`run_wipe`], which runs all parts. Settings, links, keys and live data stay as they are.
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

/// Removes an app's test data, and writes one audit log entry before it does. Rows that arrive
/// meanwhile may stay. If it stops early, because `time_max` is over or the process ends, another
/// call finishes the work.
pub async fn run_wipe<S: TestData + ?Sized>(
    store: &S,
    caller: &Authorized<TestDataWipe>,
    app: AppId,
    origin: AuditContext,
    time_max: Duration,
) -> StoreResult<WipeReport> {
    let begun = Instant::now();
    let mut report = WipeReport::default();
    let mut next = Some(WipeStep::Begin);
    while let Some(step) = next {
        if begun.elapsed() >= time_max {
            return Ok(report);
        }
        let batch = store.wipe_test_data(caller, app, step, origin.clone());
        let batch = batch.await?;
        report.removed += batch.removed;
        next = batch.next;
    }
    report.is_complete = true;
    Ok(report)
}
