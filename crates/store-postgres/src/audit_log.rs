//! Reads the audit log and deletes its oldest entries.

use crate::rows::{Conditions, read_row, uuid};
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::audit::AuditEntry;
use tributary_domain::vocabulary::id::{AppId, AuditId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::AuditRow;
use tributary_store::{AuditLog, StoreResult};

#[async_trait]
impl AuditLog for PostgresStore {
    async fn audit_log(
        &self,
        caller: &Authorized<AppsRead>,
        app: Option<AppId>,
        page: PageRequest,
    ) -> StoreResult<Page<AuditEntry>> {
        let organization = uuid(caller.organization().as_bytes());
        let app = app.map(|app| uuid(app.as_bytes()));
        let before = page.before.as_ref().map(uuid);
        let environment = caller.audited_environment();
        let environment = environment.map(|environment| environment.as_str().to_owned());
        self.read_for(caller, "audit_log", async move |tx| {
            let rows = page.limit.rows();
            let (conditions, params) = Conditions::new("organization_id", &organization)
                .and("app_id =", app.as_ref())
                .and("environment =", environment.as_ref())
                .and("audit_id <", before.as_ref())
                .newest("audit_id", &rows);
            let sql = format!(
                "select organization_id, audit_id, at, actor_kind, actor_id, action, app_id,
                        target, changes, address, request_id, environment
                 from audit_log where {conditions}"
            );
            let rows = tx.query(&sql, &params).await?;
            let entries = rows
                .iter()
                .map(|row| Ok(read_row::<AuditRow>(row)?.read()?))
                .collect::<Result<_, Failure>>()?;
            Ok(Page::from_rows(entries, page.limit))
        })
        .await
    }

    async fn remove_audit_entries(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let before = uuid(AuditId::first_at(before).as_bytes());
        self.write("remove_audit_entries", async move |tx| {
            // Grouping by the key keeps the subquery separate, so that the server looks up the old
            // entries of each organization in the index, and stops at the limit.
            let sql = "delete from audit_log where (organization_id, audit_id) in (
                           select old.organization_id, old.audit_id from organizations
                           cross join lateral
                               (select organization_id, audit_id from audit_log
                                where organization_id = organizations.organization_id
                                  and audit_id < $1
                                group by organization_id, audit_id) as old
                           limit $2)";
            tx.execute_counting(sql, &[&before, &i64::from(limit)])
                .await
        })
        .await
    }
}
