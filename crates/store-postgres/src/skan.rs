//! Conversion-value configurations.

use crate::devices::DeviceColumns;
use crate::rows::{AppLockMode, find_app, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tokio_postgres::Row;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::app::App;
use tributary_domain::audit::AuditContext;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::skan::decode::DocumentVersion;
use tributary_domain::skan::device::{DeviceDocument, EventSum};
use tributary_domain::skan::{Configuration, Document};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::SkanTable;
use tributary_recording::admin::{patch_skan, put_skan, skan_for_device};
use tributary_store::records::{Columns, EventSumRow, SkanRow, SkanVersionRow, document_to_json};
use tributary_store::{SkanConfigurations, StoreResult};

impl SkanTable for Tx {
    async fn skan_configuration(&self, app: &App) -> Result<Configuration, Failure> {
        let sql = format!(
            "select {} from skan_configurations where app_id = $1",
            SkanRow::COLUMNS
        );
        let row = self.query_opt(&sql, &[&uuid(app.id.as_bytes())]).await?;
        let row = row.as_ref().map(read_row::<SkanRow>).transpose()?;
        Ok(SkanRow::read(row, app.id, app.skan_test_signals)?)
    }

    async fn write_skan(&self, app: AppId, configuration: &Configuration) -> Result<(), Failure> {
        let row = SkanRow::write(app, configuration);
        self.execute(
            "insert into skan_configurations (app_id, version, revision, document, updated_at)
             values ($1, $2, $3, $4, $5)
             on conflict (app_id) do update set version = excluded.version,
                 revision = excluded.revision, document = excluded.document,
                 updated_at = excluded.updated_at",
            &[
                &uuid(&row.app_id),
                &row.version,
                &row.revision,
                &row.document,
                &row.updated_at,
            ],
        )
        .await?;
        Ok(())
    }

    async fn write_skan_version(
        &self,
        app: AppId,
        configuration: &Configuration,
        applies_from: Timestamp,
    ) -> Result<(), Failure> {
        self.execute(
            "insert into skan_versions (app_id, version, document, applies_from)
             values ($1, $2, $3, $4)
             on conflict (app_id, version) do update set document = excluded.document",
            &[
                &uuid(app.as_bytes()),
                &configuration.version,
                &document_to_json(&configuration.document),
                &applies_from.as_millis(),
            ],
        )
        .await?;
        Ok(())
    }

    async fn first_seen(&self, device: DeviceRef<'_>) -> Result<Option<Timestamp>, Failure> {
        let (app, environment, key) = device.columns();
        let found = self
            .query_opt(
                "select first_seen_at from devices
                 where app_id = $1 and environment = $2 and device_id = $3",
                &[&app, &environment, &key],
            )
            .await?;
        let at = |row: Row| Ok(Timestamp::from_millis(row.try_get(0)?));
        found.map(at).transpose()
    }

    async fn event_sums(
        &self,
        device: DeviceRef<'_>,
        from: Timestamp,
        [first, second, third]: [Timestamp; 3],
    ) -> Result<Vec<EventSum>, Failure> {
        let (app, environment, key) = device.columns();
        let first_at = |at| uuid(EventId::first_at(at).as_bytes());
        let rows = self
            .query(
                "select source, name,
                        case when event_id < $5 then 0 when event_id < $6 then 1 else 2 end
                            as sequence,
                        count(*),
                        coalesce(sum(case when uncounted is null then usd_micros end), 0)::bigint
                 from events
                 where app_id = $1 and environment = $2 and device_id = $3
                   and event_id >= $4 and event_id < $7
                 group by source, name, sequence",
                &[
                    &app,
                    &environment,
                    &key,
                    &first_at(from),
                    &first_at(first),
                    &first_at(second),
                    &first_at(third),
                ],
            )
            .await?;
        let sum = |row| Ok(read_row::<EventSumRow>(row)?.read(device.app)?);
        rows.iter().map(sum).collect()
    }
}

/// Finds all versions. The latest version comes from the current configuration.
pub(crate) async fn find_versions(tx: &Tx, app: &App) -> Result<Vec<DocumentVersion>, Failure> {
    let rows = tx
        .query(
            "select version, applies_from, document from skan_versions where app_id = $1
             order by version",
            &[&uuid(app.id.as_bytes())],
        )
        .await?;
    let rows = rows
        .iter()
        .map(read_row::<SkanVersionRow>)
        .collect::<Result<_, _>>()?;
    let present = tx.skan_configuration(app).await?;
    Ok(SkanVersionRow::read_all(rows, app.id, &present)?)
}

#[async_trait]
impl SkanConfigurations for PostgresStore {
    async fn skan(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Configuration> {
        let organization = caller.organization_of(app)?;
        self.read("skan", async move |tx| {
            let app = find_app(tx, organization, app, AppLockMode::Reading).await?;
            tx.skan_configuration(&app).await
        })
        .await
    }

    async fn skan_for_device(
        &self,
        app: App,
        environment: Environment,
        device: Option<DeviceKey>,
        at: Timestamp,
    ) -> StoreResult<DeviceDocument> {
        self.read("skan_for_device", async move |tx| {
            let device = device.as_ref().map(|key| DeviceRef {
                app: app.id,
                environment,
                key,
            });
            skan_for_device(tx, &app, device, at).await
        })
        .await
    }

    async fn put_skan(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        document: Document,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Configuration> {
        let organization = caller.organization_of(app)?;
        self.write_invalidating("put_skan", async move |tx| {
            let of = (organization, app);
            put_skan(tx, of, &document, &precondition, &origin).await
        })
        .await
    }

    async fn patch_skan(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        enabled: Change<bool>,
        accept_test_signals: Change<bool>,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Configuration> {
        let organization = caller.organization_of(app)?;
        self.write_invalidating("patch_skan", async move |tx| {
            let changes = (&enabled, &accept_test_signals);
            let of = (organization, app);
            patch_skan(tx, of, changes, &precondition, &origin).await
        })
        .await
    }

    async fn skan_meanings(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Vec<DocumentVersion>> {
        let organization = caller.organization_of(app)?;
        self.read_for(caller, "skan_meanings", async move |tx| {
            let app = find_app(tx, organization, app, AppLockMode::Reading).await?;
            find_versions(tx, &app).await
        })
        .await
    }

    async fn skan_versions(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<(i64, Timestamp)>> {
        let organization = caller.organization_of(app)?;
        self.read("skan_versions", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let rows = tx
                .query(
                    "select version, applies_from from skan_versions where app_id = $1
                     order by version",
                    &[&uuid(app.as_bytes())],
                )
                .await?;
            rows.iter()
                .map(|row| Ok((row.try_get(0)?, Timestamp::from_millis(row.try_get(1)?))))
                .collect()
        })
        .await
    }
}
