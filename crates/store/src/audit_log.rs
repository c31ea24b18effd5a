//! The audit log. It is written by the methods that change something, and read here.

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
    /// The organization's log, newest first; of one app where one is named.
    async fn audit_log(
        &self,
        caller: &Authorized<AppsRead>,
        app: Option<AppId>,
        page: PageRequest,
    ) -> StoreResult<Page<AuditEntry>>;

    /// Removes entries from before a moment, of every organization, at most so many; how many there were.
    async fn remove_audit_entries(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
