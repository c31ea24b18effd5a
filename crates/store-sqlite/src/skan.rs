//! Conversion-value configurations.

use crate::rows::{find_app, insert_audit, require_app, update_app_row};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::app::App;
use tributary_domain::audit::{Action, Origin};
use tributary_domain::refusal::Refusal;
use tributary_domain::skan::decode::Version;
use tributary_domain::skan::{self, Configuration, Document, ReplaceOutcome, Replaced};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{SkanRow, SkanVersionRow, audit_row, document_to_json};
use tributary_store::{SkanConfigurations, StoreResult};

fn find(connection: &Connection, app: &App) -> Result<Configuration, Failure> {
    let row = connection
        .prepare_cached(
            "select app_id, version, revision, document, updated_at from skan_configurations
             where app_id = ?1",
        )?
        .query_row([app.id.as_bytes()], |row| {
            Ok(SkanRow {
                app_id: row.get(0)?,
                version: row.get(1)?,
                revision: row.get(2)?,
                document: row.get(3)?,
                updated_at: row.get(4)?,
            })
        })
        .optional()?;
    Ok(SkanRow::read(row, app.id, app.skan_test_signals)?)
}

/// Every version there has been, the present one under its present names.
pub(crate) fn find_versions(connection: &Connection, app: &App) -> Result<Vec<Version>, Failure> {
    let rows = connection
        .prepare_cached(
            "select version, applies_from, document from skan_versions where app_id = ?1
             order by version",
        )?
        .query_map([app.id.as_bytes()], |row| {
            Ok(SkanVersionRow {
                version: row.get(0)?,
                applies_from: row.get(1)?,
                document: row.get(2)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    let present = find(connection, app)?;
    Ok(SkanVersionRow::read_all(rows, app.id, &present)?)
}

fn change(
    connection: &Connection,
    organization: OrganizationId,
    app: AppId,
    precondition: &Precondition,
    origin: &Origin,
    decide: impl FnOnce(&Configuration) -> Replaced,
) -> Result<Configuration, Failure> {
    let app = find_app(connection, organization, app)?;
    let current = find(connection, &app)?;
    if !current.admitted_by(precondition) {
        return Err(Refusal::VersionConflict.into());
    }
    let Replaced {
        configuration,
        outcome,
    } = decide(&current);
    if outcome == ReplaceOutcome::Unchanged {
        return Ok(configuration);
    }
    store(connection, &app, &configuration)?;
    if configuration.version > 0 {
        // A version has the names that it had last: postbacks are shown under them.
        connection.execute(
            "insert into skan_versions (app_id, version, document, applies_from)
             values (?1, ?2, ?3, ?4)
             on conflict (app_id, version) do update set document = excluded.document",
            params![
                app.id.as_bytes(),
                configuration.version,
                document_to_json(&configuration.document),
                origin.at.as_millis()
            ],
        )?;
    }
    let changes = skan::differences(&current, &configuration);
    let action = Action::SkanUpdated;
    let row = audit_row(organization, origin, action, Some(app.id), app.id, &changes);
    insert_audit(connection, &row)?;
    Ok(configuration)
}

fn store(connection: &Connection, app: &App, configuration: &Configuration) -> Result<(), Failure> {
    let row = SkanRow::write(app.id, configuration);
    connection.execute(
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
    let signals = configuration.document.accept_test_signals;
    if let Some(app) = app.with_skan_test_signals(signals, configuration.updated_at) {
        update_app_row(connection, &app)?;
    }
    Ok(())
}

#[async_trait]
impl SkanConfigurations for SqliteStore {
    async fn skan(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Configuration> {
        let organization = caller.organization();
        self.read("skan", move |connection| {
            find(connection, &find_app(connection, organization, app)?)
        })
        .await
    }

    async fn skan_for_devices(&self, app: App) -> StoreResult<Configuration> {
        self.read("skan_for_devices", move |connection| find(connection, &app))
            .await
    }

    async fn put_skan(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        document: Document,
        precondition: Precondition,
        origin: Origin,
    ) -> StoreResult<Configuration> {
        let organization = caller.organization();
        self.write("put_skan", move |connection| {
            change(
                connection,
                organization,
                app,
                &precondition,
                &origin,
                |current| skan::replace(current, document, origin.at),
            )
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
        origin: Origin,
    ) -> StoreResult<Configuration> {
        let organization = caller.organization();
        self.write("patch_skan", move |connection| {
            change(
                connection,
                organization,
                app,
                &precondition,
                &origin,
                |current| skan::patch(current, enabled, accept_test_signals, origin.at),
            )
        })
        .await
    }

    async fn skan_versions(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<(i64, Timestamp)>> {
        let organization = caller.organization();
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
