//! Conversion-value configurations.

use crate::rates::latest_rate;
use crate::rows::{find_app, insert_audit, require_app, update_app_row};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::app::App;
use tributary_domain::audit::{Action, Origin};
use tributary_domain::device::DeviceKey;
use tributary_domain::exchange::ImportedRates;
use tributary_domain::refusal::Refusal;
use tributary_domain::skan::decode::Version;
use tributary_domain::skan::device::{
    DeviceDocument, EventSum, Wanted, device_document, window_ends,
};
use tributary_domain::skan::{self, Configuration, Document, ReplaceOutcome, Replaced};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, EventId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{EventSumRow, SkanRow, SkanVersionRow, audit_row, document_to_json};
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

/// What happened on a device in the windows since it was first seen; nothing of one that never was.
fn event_sums(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
) -> Result<Vec<EventSum>, Failure> {
    let first_seen_at: Option<i64> = connection
        .prepare_cached(
            "select first_seen_at from devices
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .query_row(
            params![app.as_bytes(), environment.as_str(), device.as_str()],
            |row| row.get(0),
        )
        .optional()?;
    let Some(first_seen_at) = first_seen_at.map(Timestamp::from_millis) else {
        return Ok(Vec::new());
    };
    let [first, second, third] = window_ends(first_seen_at);
    let rows: Vec<EventSumRow> = connection
        .prepare_cached(
            "select source, name,
                    case when event_id < ?5 then 0 when event_id < ?6 then 1 else 2 end as sequence,
                    count(*), coalesce(sum(case when uncounted is null then usd_micros end), 0)
             from events
             where app_id = ?1 and environment = ?2 and device_id = ?3
               and event_id >= ?4 and event_id < ?7
             group by source, name, sequence",
        )?
        .query_map(
            params![
                app.as_bytes(),
                environment.as_str(),
                device.as_str(),
                EventId::first_at(first_seen_at).as_bytes(),
                EventId::first_at(first).as_bytes(),
                EventId::first_at(second).as_bytes(),
                EventId::first_at(third).as_bytes()
            ],
            |row| {
                Ok(EventSumRow {
                    source: row.get(0)?,
                    name: row.get(1)?,
                    window: row.get(2)?,
                    count: row.get(3)?,
                    usd_micros: row.get(4)?,
                })
            },
        )?
        .collect::<Result<_, _>>()?;
    let sums = rows.into_iter().map(|row| row.read(app));
    Ok(sums.collect::<Result<_, _>>()?)
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

    async fn skan_for_device(
        &self,
        app: App,
        environment: Environment,
        device: Option<DeviceKey>,
        at: Timestamp,
    ) -> StoreResult<DeviceDocument> {
        self.read("skan_for_device", move |connection| {
            let configuration = find(connection, &app)?;
            let (wanted, day) = (Wanted::of(&configuration.document), Day::of(at));
            let mut rates = ImportedRates::default();
            for currency in Currency::all().filter(|_| wanted.rates) {
                while let Some(question) = rates.next_question(currency, day) {
                    rates.answer(question, latest_rate(connection, question)?);
                }
            }
            let sums = match device.filter(|_| wanted.events) {
                Some(device) => event_sums(connection, app.id, environment, &device)?,
                None => Vec::new(),
            };
            Ok(device_document(configuration, day, &rates, &sums))
        })
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

    async fn skan_meanings(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Vec<Version>> {
        let organization = caller.organization();
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
