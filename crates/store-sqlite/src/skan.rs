//! Conversion-value configurations.

use crate::rows::{find_app, read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
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

impl SkanTable for SqliteTables<'_> {
    async fn skan_configuration(&self, app: &App) -> Result<Configuration, Failure> {
        let sql = format!(
            "select {} from skan_configurations where app_id = ?1",
            SkanRow::COLUMNS
        );
        let row = self
            .0
            .prepare_cached(&sql)?
            .query_row([app.id.as_bytes()], read_row::<SkanRow>)
            .optional()?;
        Ok(SkanRow::read(row, app.id, app.skan_test_signals)?)
    }

    async fn write_skan(&self, app: AppId, configuration: &Configuration) -> Result<(), Failure> {
        let row = SkanRow::write(app, configuration);
        self.0.execute(
            "insert into skan_configurations (app_id, version, revision, document, updated_at)
             values (?1, ?2, ?3, ?4, ?5)
             on conflict (app_id) do update set version = excluded.version,
                 revision = excluded.revision, document = excluded.document,
                 updated_at = excluded.updated_at",
            params![
                row.app_id,
                row.version,
                row.revision,
                row.document,
                row.updated_at
            ],
        )?;
        Ok(())
    }

    async fn write_skan_version(
        &self,
        app: AppId,
        configuration: &Configuration,
        applies_from: Timestamp,
    ) -> Result<(), Failure> {
        self.0.execute(
            "insert into skan_versions (app_id, version, document, applies_from)
             values (?1, ?2, ?3, ?4)
             on conflict (app_id, version) do update set document = excluded.document",
            params![
                app.as_bytes(),
                configuration.version,
                document_to_json(&configuration.document),
                applies_from.as_millis()
            ],
        )?;
        Ok(())
    }

    async fn first_seen(&self, device: DeviceRef<'_>) -> Result<Option<Timestamp>, Failure> {
        let key = params![
            device.app.as_bytes(),
            device.environment.as_str(),
            device.key.as_str()
        ];
        let first_seen_at: Option<i64> = self
            .0
            .prepare_cached(
                "select first_seen_at from devices
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .query_row(key, |row| row.get(0))
            .optional()?;
        Ok(first_seen_at.map(Timestamp::from_millis))
    }

    async fn event_sums(
        &self,
        device: DeviceRef<'_>,
        from: Timestamp,
        [first, second, third]: [Timestamp; 3],
    ) -> Result<Vec<EventSum>, Failure> {
        let mut find = self.0.prepare_cached(
            "select source, name,
                    case when event_id < ?5 then 0 when event_id < ?6 then 1 else 2 end as sequence,
                    count(*), coalesce(sum(case when uncounted is null then usd_micros end), 0)
             from events
             where app_id = ?1 and environment = ?2 and device_id = ?3
               and event_id >= ?4 and event_id < ?7
             group by source, name, sequence",
        )?;
        let [from, first, second, third] = [from, first, second, third].map(EventId::first_at);
        let values = params![
            device.app.as_bytes(),
            device.environment.as_str(),
            device.key.as_str(),
            from.as_bytes(),
            first.as_bytes(),
            second.as_bytes(),
            third.as_bytes()
        ];
        let rows = find.query_map(values, read_row::<EventSumRow>)?;
        rows.map(|row| Ok(row?.read(device.app)?)).collect()
    }
}

/// Finds all versions. The latest version comes from the current configuration.
pub(crate) fn find_versions(
    connection: &Connection,
    app: &App,
) -> Result<Vec<DocumentVersion>, Failure> {
    let rows = connection
        .prepare_cached(
            "select version, applies_from, document from skan_versions where app_id = ?1
             order by version",
        )?
        .query_map([app.id.as_bytes()], read_row::<SkanVersionRow>)?
        .collect::<Result<_, _>>()?;
    let present = run(SqliteTables(connection).skan_configuration(app))?;
    Ok(SkanVersionRow::read_all(rows, app.id, &present)?)
}

#[async_trait]
impl SkanConfigurations for SqliteStore {
    async fn skan(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Configuration> {
        let organization = caller.organization_of(app)?;
        self.read("skan", move |connection| {
            let app = find_app(connection, organization, app)?;
            run(SqliteTables(connection).skan_configuration(&app))
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
        self.read("skan_for_device", move |connection| {
            let device = device.as_ref().map(|key| DeviceRef {
                app: app.id,
                environment,
                key,
            });
            run(skan_for_device(&SqliteTables(connection), &app, device, at))
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
        self.write_invalidating("put_skan", move |connection| {
            let (tables, of) = (SqliteTables(connection), (organization, app));
            run(put_skan(&tables, of, &document, &precondition, &origin))
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
        self.write_invalidating("patch_skan", move |connection| {
            let (tables, of) = (SqliteTables(connection), (organization, app));
            let changes = (&enabled, &accept_test_signals);
            run(patch_skan(&tables, of, changes, &precondition, &origin))
        })
        .await
    }

    async fn skan_meanings(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Vec<DocumentVersion>> {
        let organization = caller.organization_of(app)?;
        self.read("skan_meanings", move |connection| {
            find_versions(connection, &find_app(connection, organization, app)?)
        })
        .await
    }

    async fn skan_versions(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<(i64, Timestamp)>> {
        let organization = caller.organization_of(app)?;
        self.read("skan_versions", move |connection| {
            require_app(connection, organization, app)?;
            let versions = connection
                .prepare_cached(
                    "select version, applies_from from skan_versions where app_id = ?1
                     order by version",
                )?
                .query_map([app.as_bytes()], |row| {
                    Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?)))
                })?
                .collect::<Result<_, _>>()?;
            Ok(versions)
        })
        .await
    }
}
