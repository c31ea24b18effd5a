//! Reading the audit log.

use crate::rows::{Conditions, audit_row, uuid};
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::audit::Entry;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_store::{AuditLog, StoreResult};

#[async_trait]
impl AuditLog for PostgresStore {
    async fn audit_log(
        &self,
        caller: &Authorized<AppsRead>,
        app: Option<AppId>,
        page: PageRequest,
    ) -> StoreResult<Page<Entry>> {
        let organization = uuid(caller.organization().as_bytes());
        let app = app.map(|app| uuid(app.as_bytes()));
        let before = page.before.as_ref().map(uuid);
        self.read("audit_log", async move |tx| {
            let rows = page.limit.rows();
            let (conditions, params) = Conditions::new("organization_id", &organization)
                .and("app_id =", app.as_ref())
                .and("audit_id <", before.as_ref())
                .newest("audit_id", &rows);
            let sql = format!(
                "select organization_id, audit_id, at, actor_kind, actor_id, action, app_id,
                        target, changes, address, request_id
                 from audit_log where {conditions}"
            );
            let rows = tx.query(&sql, &params).await?;
            let entries = rows
                .iter()
                .map(|row| Ok(audit_row(row)?.read()?))
                .collect::<Result<_, Failure>>()?;
            Ok(Page::from_rows(entries, page.limit))
        })
        .await
    }
}
