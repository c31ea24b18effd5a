//! Reads the audit log and deletes its oldest entries.

use crate::SqliteStore;
use crate::rows::{page_start, read_row};
use async_trait::async_trait;
use rusqlite::params;
use tributary_domain::access::{AppsRead, Authorized, Environment};
use tributary_domain::audit::AuditEntry;
use tributary_domain::vocabulary::id::{AppId, AuditId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::AuditRow;
use tributary_store::{AuditLog, StoreResult};

#[async_trait]
impl AuditLog for SqliteStore {
    async fn audit_log(
        &self,
        caller: &Authorized<AppsRead>,
        app: Option<AppId>,
        page: PageRequest,
    ) -> StoreResult<Page<AuditEntry>> {
        let organization = caller.organization();
        let environment = caller.audited_environment();
        self.read("audit_log", move |connection| {
            let narrowed = if app.is_some() {
                "and app_id = ?4"
            } else {
                "and ?4 is null"
            };
            let sql = format!(
                "select organization_id, audit_id, at, actor_kind, actor_id, action, app_id,
                        target, changes, address, request_id, environment
                 from audit_log where organization_id = ?1 and audit_id < ?2 {narrowed}
                     and (?5 is null or environment = ?5)
                 order by audit_id desc limit ?3"
            );
            let rows: Vec<AuditRow> = connection
                .prepare_cached(&sql)?
                .query_map(
                    params![
                        organization.as_bytes(),
                        page_start(page.before),
                        page.limit.rows(),
                        app.map(|app| *app.as_bytes()),
                        environment.map(Environment::as_str)
                    ],
                    read_row::<AuditRow>,
                )?
                .collect::<Result<_, _>>()?;
            let entries = rows
                .into_iter()
                .map(AuditRow::read)
                .collect::<Result<_, _>>()?;
            Ok(Page::from_rows(entries, page.limit))
        })
        .await
    }

    async fn remove_audit_entries(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_audit_entries", move |connection| {
            let removed = connection
                .prepare_cached(
                    "delete from audit_log where (organization_id, audit_id) in (
                         select audit_log.organization_id, audit_id from organizations
                         cross join audit_log using (organization_id) where audit_id < ?1 limit ?2)",
                )?
                .execute((AuditId::first_at(before).as_bytes(), limit))?;
            Ok(u64::try_from(removed).unwrap_or(0))
        })
        .await
    }
}
