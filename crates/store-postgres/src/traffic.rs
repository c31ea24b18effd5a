//! Traffic checks.

use crate::rows::{AppLockMode, id, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, alerts};
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::report::anomaly::TrafficAnomaly;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{AnomalyRow, Columns as _};
use tributary_store::{
    ANOMALIES_SHOWN_MAX, CheckedHour, StoreError, StoreResult, Traffic, TrafficHistory,
};

const ANOMALY_COLUMNS: &str = AnomalyRow::COLUMNS;

async fn find_anomalies(
    tx: &Tx,
    app: AppId,
    since: Timestamp,
    limit: u32,
) -> Result<Vec<TrafficAnomaly>, Failure> {
    let sql = format!(
        "select {ANOMALY_COLUMNS} from traffic_anomalies where app_id = $1 and hour >= $2
         order by hour desc, kind, subject limit $3"
    );
    let rows = tx
        .query(
            &sql,
            &[&uuid(app.as_bytes()), &since.as_millis(), &i64::from(limit)],
        )
        .await?;
    let anomalies = rows
        .iter()
        .map(|row| Ok(read_row::<AnomalyRow>(row)?.read()?));
    anomalies.collect()
}

/// Claims an hour. Returns whether it was not checked yet.
async fn claim_hour(tx: &Tx, app: AppId, hour: Timestamp) -> Result<bool, Failure> {
    let claimed = tx
        .query_opt(
            "insert into traffic_checks (app_id, hour) values ($1, $2)
             on conflict (app_id) do update set hour = excluded.hour
             where traffic_checks.hour < excluded.hour
             returning hour",
            &[&uuid(app.as_bytes()), &hour.as_millis()],
        )
        .await?;
    Ok(claimed.is_some())
}

async fn write_anomalies(tx: &Tx, checked: &CheckedHour) -> Result<(), Failure> {
    let app = uuid(checked.app.as_bytes());
    for anomaly in &checked.check.raised {
        let row = AnomalyRow::write(checked.app, anomaly);
        let sql = format!(
            "insert into traffic_anomalies ({ANOMALY_COLUMNS})
             values ($1, $2, $3, $4, $5, $6, $7, $8)
             on conflict (app_id, kind, subject) do update set
                 figure = excluded.figure, hour = excluded.hour, value = excluded.value,
                 expected = excluded.expected, ended_at = excluded.ended_at"
        );
        tx.execute(
            &sql,
            &[
                &app,
                &row.kind,
                &row.subject,
                &row.figure,
                &row.hour,
                &row.value,
                &row.expected,
                &row.ended_at,
            ],
        )
        .await?;
    }
    for subject in &checked.check.ended {
        tx.execute(
            "update traffic_anomalies set ended_at = $4
             where app_id = $1 and kind = $2 and subject = $3 and ended_at is null",
            &[
                &app,
                &subject.kind(),
                &subject.id(),
                &checked.hour.as_millis(),
            ],
        )
        .await?;
    }
    Ok(())
}

async fn record(tx: &Tx, checked: &CheckedHour, keep_since: Timestamp) -> Result<bool, Failure> {
    if !claim_hour(tx, checked.app, checked.hour).await? {
        return Ok(false);
    }
    let app = uuid(checked.app.as_bytes());
    for table in ["traffic_peaks", "traffic_anomalies"] {
        let sql = format!("delete from {table} where app_id = $1 and hour < $2");
        tx.execute(&sql, &[&app, &keep_since.as_millis()]).await?;
    }
    if checked.peak > 0 {
        tx.execute(
            "insert into traffic_peaks (app_id, hour, installs) values ($1, $2, $3)
             on conflict (app_id, hour) do update set installs = excluded.installs",
            &[&app, &checked.hour.as_millis(), &checked.peak],
        )
        .await?;
    }
    write_anomalies(tx, checked).await?;
    for alert in &checked.alerts {
        alerts::insert(tx, alert).await?;
    }
    Ok(true)
}

#[async_trait]
impl Traffic for PostgresStore {
    async fn unchecked_apps(
        &self,
        hour: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, AppId)>> {
        self.read("unchecked_apps", async move |tx| {
            let rows = tx
                .query(
                    "select organization_id, app_id from apps
                     where not archived and not exists (
                         select 1 from traffic_checks
                         where traffic_checks.app_id = apps.app_id and hour >= $1)
                     order by app_id limit $2",
                    &[&hour.as_millis(), &i64::from(limit)],
                )
                .await?;
            let apps = rows.iter().map(|row| {
                let organization = OrganizationId::from_bytes(id(row, 0)?);
                Ok((organization, AppId::from_bytes(id(row, 1)?)))
            });
            apps.collect::<Result<_, Failure>>()
        })
        .await
    }

    async fn busiest_addresses(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<(AppId, Digest, i64)>> {
        self.read("busiest_addresses", async move |tx| {
            let rows = tx
                .query(
                    "select distinct on (app_id) app_id, address_hash, installs from (
                         select app_id, address_hash, count(*) as installs from devices
                         where first_seen_at >= $1 and first_seen_at < $2
                           and address_hash is not null and environment = 'live'
                         group by app_id, address_hash) as counted
                     order by app_id, installs desc, address_hash",
                    &[&from.as_millis(), &until.as_millis()],
                )
                .await?;
            let addresses = rows.iter().map(|row| {
                let app = AppId::from_bytes(id(row, 0)?);
                let hash: &[u8] = row.try_get(1)?;
                let hash = hash
                    .try_into()
                    .map_err(|_| StoreError::corrupt("devices", "address_hash", app))?;
                Ok((app, Digest::from_bytes(hash), row.try_get(2)?))
            });
            addresses.collect::<Result<_, Failure>>()
        })
        .await
    }

    async fn traffic_history(&self, app: AppId, since: Timestamp) -> StoreResult<TrafficHistory> {
        self.read("traffic_history", async move |tx| {
            let rows = tx
                .query(
                    "select hour, installs from traffic_peaks where app_id = $1 and hour >= $2",
                    &[&uuid(app.as_bytes()), &since.as_millis()],
                )
                .await?;
            let peaks = rows
                .iter()
                .map(|row| Ok((Timestamp::from_millis(row.try_get(0)?), row.try_get(1)?)));
            Ok(TrafficHistory {
                peaks: peaks.collect::<Result<_, Failure>>()?,
                anomalies: find_anomalies(tx, app, since, u32::MAX).await?,
            })
        })
        .await
    }

    async fn record_checked_hour(
        &self,
        checked: CheckedHour,
        keep_since: Timestamp,
    ) -> StoreResult<bool> {
        self.write("record_checked_hour", async move |tx| {
            record(tx, &checked, keep_since).await
        })
        .await
    }

    async fn traffic_anomalies(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        since: Timestamp,
    ) -> StoreResult<Vec<TrafficAnomaly>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "traffic_anomalies", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            if environment == Environment::Test {
                return Ok(Vec::new());
            }
            find_anomalies(tx, app, since, ANOMALIES_SHOWN_MAX).await
        })
        .await
    }
}
