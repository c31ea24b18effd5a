//! Conversion-value configurations.

use crate::rates::imported_rates;
use crate::rows::{Purpose, find_app, insert_audit, read_row, require_app, update_app_row, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tokio_postgres::Row;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::app::App;
use tributary_domain::audit::{Action, Origin};
use tributary_domain::device::DeviceKey;
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

async fn find(tx: &Tx, app: &App) -> Result<Configuration, Failure> {
    let row = tx
        .query_opt(
            "select app_id, version, revision, document, updated_at from skan_configurations
             where app_id = $1",
            &[&uuid(app.id.as_bytes())],
        )
        .await?;
    let row = row.as_ref().map(read_row::<SkanRow>).transpose()?;
    Ok(SkanRow::read(row, app.id, app.skan_test_signals)?)
}

/// Every version there has been, the present one under its present names.
pub(crate) async fn find_versions(tx: &Tx, app: &App) -> Result<Vec<Version>, Failure> {
    let rows = tx
        .query(
            "select version, applies_from, document from skan_versions where app_id = $1
             order by version",
            &[&uuid(app.id.as_bytes())],
        )
        .await?;
    let rows = rows
        .iter()
        .map(|row| {
            Ok(SkanVersionRow {
                version: row.try_get(0)?,
                applies_from: row.try_get(1)?,
                document: row.try_get(2)?,
            })
        })
        .collect::<Result<_, tokio_postgres::Error>>()?;
    let present = find(tx, app).await?;
    Ok(SkanVersionRow::read_all(rows, app.id, &present)?)
}

/// What happened on a device in the windows since it was first seen; nothing of one that never was.
async fn event_sums(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
) -> Result<Vec<EventSum>, Failure> {
    let found = tx
        .query_opt(
            "select first_seen_at from devices
             where app_id = $1 and environment = $2 and device_id = $3",
            &[
                &uuid(app.as_bytes()),
                &environment.as_str(),
                &device.as_str(),
            ],
        )
        .await?;
    let Some(row) = found else {
        return Ok(Vec::new());
    };
    let first_seen_at = Timestamp::from_millis(row.try_get(0)?);
    let [first, second, third] = window_ends(first_seen_at);
    let first_at = |at| uuid(EventId::first_at(at).as_bytes());
    let rows = tx
        .query(
            "select source, name,
                    case when event_id < $5 then 0 when event_id < $6 then 1 else 2 end::bigint as sequence,
                    count(*),
                    coalesce(sum(case when uncounted is null then usd_micros end), 0)::bigint
             from events
             where app_id = $1 and environment = $2 and device_id = $3
               and event_id >= $4 and event_id < $7
             group by source, name, sequence",
            &[
                &uuid(app.as_bytes()),
                &environment.as_str(),
                &device.as_str(),
                &first_at(first_seen_at),
                &first_at(first),
                &first_at(second),
                &first_at(third),
            ],
        )
        .await?;
    let read = |row: &Row| {
        let row = EventSumRow {
            source: row.try_get(0)?,
            name: row.try_get(1)?,
            window: row.try_get(2)?,
            count: row.try_get(3)?,
            usd_micros: row.try_get(4)?,
        };
        Ok(row.read(app)?)
    };
    rows.iter().map(read).collect()
}

async fn change(
    tx: &Tx,
    organization: OrganizationId,
    app: AppId,
    precondition: &Precondition,
    origin: &Origin,
    decide: impl FnOnce(&Configuration) -> Replaced,
) -> Result<Configuration, Failure> {
    let app = find_app(tx, organization, app, Purpose::Changing).await?;
    let current = find(tx, &app).await?;
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
    store(tx, &app, &configuration).await?;
    if configuration.version > 0 {
        // A version has the names that it had last: postbacks are shown under them.
        tx.execute(
            "insert into skan_versions (app_id, version, document, applies_from)
             values ($1, $2, $3, $4)
             on conflict (app_id, version) do update set document = excluded.document",
            &[
                &uuid(app.id.as_bytes()),
                &configuration.version,
                &document_to_json(&configuration.document),
                &origin.at.as_millis(),
            ],
        )
        .await?;
    }
    let changes = skan::differences(&current, &configuration);
    let action = Action::SkanUpdated;
    let row = audit_row(organization, origin, action, Some(app.id), app.id, &changes);
    insert_audit(tx, &row).await?;
    Ok(configuration)
}

async fn store(tx: &Tx, app: &App, configuration: &Configuration) -> Result<(), Failure> {
    let row = SkanRow::write(app.id, configuration);
    tx.execute(
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
    let signals = configuration.document.accept_test_signals;
    if let Some(app) = app.with_skan_test_signals(signals, configuration.updated_at) {
        update_app_row(tx, &app).await?;
    }
    Ok(())
}

#[async_trait]
impl SkanConfigurations for PostgresStore {
    async fn skan(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Configuration> {
        let organization = caller.organization();
        self.read("skan", async move |tx| {
            let app = find_app(tx, organization, app, Purpose::Reading).await?;
            find(tx, &app).await
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
            let configuration = find(tx, &app).await?;
            let (wanted, day) = (Wanted::of(&configuration.document), Day::of(at));
            let currencies: Vec<(Currency, Day)> = Currency::all()
                .filter(|_| wanted.rates)
                .map(|currency| (currency, day))
                .collect();
            let rates = imported_rates(tx, &currencies).await?;
            let sums = match device.as_ref().filter(|_| wanted.events) {
                Some(device) => event_sums(tx, app.id, environment, device).await?,
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
        self.write("put_skan", async move |tx| {
            change(tx, organization, app, &precondition, &origin, |current| {
                skan::replace(current, document.clone(), origin.at)
            })
            .await
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
        self.write("patch_skan", async move |tx| {
            change(tx, organization, app, &precondition, &origin, |current| {
                skan::patch(
                    current,
                    enabled.clone(),
                    accept_test_signals.clone(),
                    origin.at,
                )
            })
            .await
        })
        .await
    }

    async fn skan_meanings(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Vec<Version>> {
        let organization = caller.organization();
        self.read("skan_meanings", async move |tx| {
            let app = find_app(tx, organization, app, Purpose::Reading).await?;
            find_versions(tx, &app).await
        })
        .await
    }

    async fn skan_versions(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<(i64, Timestamp)>> {
        let organization = caller.organization();
        self.read("skan_versions", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
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
