//! The audit log. This trait only reads it; the methods that make changes write the entries.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::audit::AuditEntry;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;

/// The audit log.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Lists the organization's audit log, newest first, optionally for one app.
    async fn audit_log(
        &self,
        caller: &Authorized<AppsRead>,
        app: Option<AppId>,
        page: PageRequest,
    ) -> StoreResult<Page<AuditEntry>>;

    /// Removes at most `limit` entries older than `before`, across all organizations. Returns the
    /// number of removed entries.
    async fn remove_audit_entries(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
