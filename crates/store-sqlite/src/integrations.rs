//! Integrations.

use crate::rows::{read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, params};
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::integration::{Integration, IntegrationChange, Network};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_recording::admin::update_integration;
use tributary_store::records::{Columns, IntegrationRow};
use tributary_store::{Integrations, QueueRef, StoreResult};

/// Finds an app's configured integrations, for planning deliveries.
pub(crate) fn find_configured(
    connection: &Connection,
    app: AppId,
) -> Result<Vec<Integration>, Failure> {
    let rows = stored(connection, app)?.into_iter();
    Ok(rows.map(IntegrationRow::read).collect::<Result<_, _>>()?)
}

fn stored(connection: &Connection, app: AppId) -> Result<Vec<IntegrationRow>, Failure> {
    let sql = format!(
        "select {} from integrations where app_id = ?1",
        IntegrationRow::COLUMNS
    );
    let rows = connection
        .prepare_cached(&sql)?
        .query_map([app.as_bytes()], read_row::<IntegrationRow>)?
        .collect::<Result<_, _>>()?;
    Ok(rows)
}

pub(crate) fn find_integrations(
    connection: &Connection,
    app: AppId,
) -> Result<Vec<Integration>, Failure> {
    Ok(IntegrationRow::read_all(app, stored(connection, app)?)?)
}

/// Writes an integration.
pub(crate) fn write(connection: &Connection, integration: &Integration) -> Result<(), Failure> {
    let row = IntegrationRow::write(integration);
    let sql = format!(
        "insert into integrations ({})
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         on conflict (app_id, network) do update set
             enabled = excluded.enabled, scope = excluded.scope,
             settings = excluded.settings, credentials = excluded.credentials,
             event_mapping = excluded.event_mapping, enabled_at = excluded.enabled_at,
             mapped_at = excluded.mapped_at, updated_at = excluded.updated_at,
             revision = excluded.revision",
        IntegrationRow::COLUMNS
    );
    connection.execute(
        &sql,
        params![
            row.app_id,
            row.network,
            row.enabled,
            row.scope,
            row.settings,
            row.credentials,
            row.event_mapping,
            row.enabled_at,
            row.mapped_at,
            row.updated_at,
            row.revision
        ],
    )?;
    Ok(())
}

#[async_trait]
impl Integrations for SqliteStore {
    async fn integrations(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<Integration>> {
        let organization = caller.organization_of(app)?;
        self.read("integrations", move |connection| {
            require_app(connection, organization, app)?;
            find_integrations(connection, app)
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
        self.write("update_integration", move |connection| {
            let of = (organization, QueueRef { app, network });
            let tables = SqliteTables(connection);
            run(update_integration(
                &tables,
                of,
                &change,
                &precondition,
                &origin,
            ))
        })
        .await
    }
}
