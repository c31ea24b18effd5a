//! Integrations.

use crate::rows::{AppLockMode, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::integration::{Integration, IntegrationChange, Network};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_recording::admin::update_integration;
use tributary_store::records::{Columns, IntegrationRow};
use tributary_store::{Integrations, QueueRef, StoreResult};
use uuid::Uuid;

/// The columns of `integrations`.
const INTEGRATION_COLUMNS: &str = IntegrationRow::COLUMNS;

/// Finds the configured integrations of apps, for planning deliveries.
pub(crate) async fn find_configured(
    tx: &Tx,
    apps: &BTreeSet<AppId>,
) -> Result<BTreeMap<AppId, Arc<[Integration]>>, Failure> {
    if apps.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<Uuid> = apps.iter().map(|app| uuid(app.as_bytes())).collect();
    let sql = format!("select {INTEGRATION_COLUMNS} from integrations where app_id = any($1)");
    let mut found: BTreeMap<AppId, Vec<Integration>> = BTreeMap::new();
    for row in &tx.query(&sql, &[&ids]).await? {
        let integration = read_row::<IntegrationRow>(row)?.read()?;
        found.entry(integration.app).or_default().push(integration);
    }
    let found = found.into_iter();
    Ok(found.map(|(app, all)| (app, all.into())).collect())
}

pub(crate) async fn find_integrations(tx: &Tx, app: AppId) -> Result<Vec<Integration>, Failure> {
    let sql = format!("select {INTEGRATION_COLUMNS} from integrations where app_id = $1");
    let rows = tx.query(&sql, &[&uuid(app.as_bytes())]).await?;
    let rows = rows
        .iter()
        .map(read_row::<IntegrationRow>)
        .collect::<Result<_, _>>()?;
    Ok(IntegrationRow::read_all(app, rows)?)
}

/// Writes an integration.
pub(crate) async fn write(tx: &Tx, integration: &Integration) -> Result<(), Failure> {
    let row = IntegrationRow::write(integration);
    let sql = format!(
        "insert into integrations ({INTEGRATION_COLUMNS})
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         on conflict (app_id, network) do update set
             enabled = excluded.enabled, scope = excluded.scope,
             settings = excluded.settings, credentials = excluded.credentials,
             event_mapping = excluded.event_mapping, enabled_at = excluded.enabled_at,
             mapped_at = excluded.mapped_at, updated_at = excluded.updated_at,
             revision = excluded.revision"
    );
    tx.execute(
        &sql,
        &[
            &uuid(&row.app_id),
            &row.network,
            &row.enabled,
            &row.scope,
            &row.settings,
            &row.credentials,
            &row.event_mapping,
            &row.enabled_at,
            &row.mapped_at,
            &row.updated_at,
            &row.revision,
        ],
    )
    .await?;
    Ok(())
}

#[async_trait]
impl Integrations for PostgresStore {
    async fn integrations(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<Integration>> {
        let organization = caller.organization_of(app)?;
        self.read("integrations", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            find_integrations(tx, app).await
        })
        .await
    }

    async fn update_integration(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        change: IntegrationChange,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Integration> {
        let organization = caller.organization_of(app)?;
        let updated = self.write("update_integration", async move |tx| {
            let queue = QueueRef { app, network };
            let of = (organization, queue);
            let updated = update_integration(tx, of, &change, &precondition, &origin).await?;
            tx.hint_queue(queue, origin.at);
            Ok(updated)
        });
        let updated = updated.await;
        self.paused.forget();
        updated
    }
}
