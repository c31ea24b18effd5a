//! Traffic checks.

use crate::rows::{read_row, require_app};
use crate::{Failure, SqliteStore, alerts};
use async_trait::async_trait;
use rusqlite::{Connection, params};
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::report::anomaly::TrafficAnomaly;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{AnomalyRow, Columns as _};
use tributary_store::{ANOMALIES_SHOWN_MAX, CheckedHour, StoreResult, Traffic, TrafficHistory};

const ANOMALY_COLUMNS: &str = AnomalyRow::COLUMNS;

fn find_anomalies(
    connection: &Connection,
    app: AppId,
    since: Timestamp,
    limit: u32,
) -> Result<Vec<TrafficAnomaly>, Failure> {
    let sql = format!(
        "select {ANOMALY_COLUMNS} from traffic_anomalies where app_id = ?1 and hour >= ?2
         order by hour desc, kind, subject limit ?3"
    );
    let rows: Vec<AnomalyRow> = connection
        .prepare_cached(&sql)?
        .query_map(
            (app.as_bytes(), since.as_millis(), limit),
            read_row::<AnomalyRow>,
        )?
        .collect::<Result<_, _>>()?;
    let anomalies = rows.into_iter().map(AnomalyRow::read);
    Ok(anomalies.collect::<Result<_, _>>()?)
}

/// Claims an hour. Returns whether it was not checked yet.
fn claim_hour(connection: &Connection, app: AppId, hour: Timestamp) -> Result<bool, Failure> {
    let claimed = connection
        .prepare_cached(
            "insert into traffic_checks (app_id, hour) values (?1, ?2)
             on conflict (app_id) do update set hour = excluded.hour
             where traffic_checks.hour < excluded.hour",
        )?
        .execute((app.as_bytes(), hour.as_millis()))?;
    Ok(claimed == 1)
}

fn write_anomalies(connection: &Connection, checked: &CheckedHour) -> Result<(), Failure> {
    let app = checked.app.as_bytes();
    for anomaly in &checked.check.raised {
        let row = AnomalyRow::write(checked.app, anomaly);
        let sql = format!(
            "insert or replace into traffic_anomalies ({ANOMALY_COLUMNS})
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        );
        connection.prepare_cached(&sql)?.execute(params![
            row.app_id,
            row.kind,
            row.subject,
            row.figure,
            row.hour,
            row.value,
            row.expected,
            row.ended_at
        ])?;
    }
    for subject in &checked.check.ended {
        connection
            .prepare_cached(
                "update traffic_anomalies set ended_at = ?4
                 where app_id = ?1 and kind = ?2 and subject = ?3 and ended_at is null",
            )?
            .execute(params![
                app,
                subject.kind(),
                subject.id(),
                checked.hour.as_millis()
            ])?;
    }
    Ok(())
}

fn record(
    connection: &Connection,
    checked: &CheckedHour,
    keep_since: Timestamp,
) -> Result<bool, Failure> {
    if !claim_hour(connection, checked.app, checked.hour)? {
        return Ok(false);
    }
    let app = checked.app.as_bytes();
    for table in ["traffic_peaks", "traffic_anomalies"] {
        let sql = format!("delete from {table} where app_id = ?1 and hour < ?2");
        connection
            .prepare_cached(&sql)?
            .execute((app, keep_since.as_millis()))?;
    }
    if checked.peak > 0 {
        connection
            .prepare_cached(
                "insert or replace into traffic_peaks (app_id, hour, installs) values (?1, ?2, ?3)",
            )?
            .execute((app, checked.hour.as_millis(), checked.peak))?;
    }
    write_anomalies(connection, checked)?;
    for alert in &checked.alerts {
        alerts::insert(connection, alert)?;
    }
    Ok(true)
}

#[async_trait]
impl Traffic for SqliteStore {
    async fn unchecked_apps(
        &self,
        hour: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, AppId)>> {
        self.read("unchecked_apps", move |connection| {
            let mut statement = connection.prepare_cached(
                "select organization_id, app_id from apps
                 where not archived and not exists (
                     select 1 from traffic_checks
                     where traffic_checks.app_id = apps.app_id and hour >= ?1)
                 order by app_id limit ?2",
            )?;
            let rows = statement.query_map((hour.as_millis(), limit), |row| {
                let organization = OrganizationId::from_bytes(row.get(0)?);
                Ok((organization, AppId::from_bytes(row.get(1)?)))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn busiest_addresses(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<(AppId, Digest, i64)>> {
        self.read("busiest_addresses", move |connection| {
            let mut statement = connection.prepare_cached(
                "select app_id, address_hash, installs from (
                     select app_id, address_hash, installs,
                            row_number() over (
                                partition by app_id order by installs desc, address_hash) as place
                     from (
                         select app_id, address_hash, count(*) as installs from devices
                         where first_seen_at >= ?1 and first_seen_at < ?2
                           and address_hash is not null and +environment = 'live'
                         group by +app_id, address_hash))
                 where place = 1",
            )?;
            let rows = statement.query_map((from.as_millis(), until.as_millis()), |row| {
                let app = AppId::from_bytes(row.get(0)?);
                Ok((app, Digest::from_bytes(row.get(1)?), row.get(2)?))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn traffic_history(&self, app: AppId, since: Timestamp) -> StoreResult<TrafficHistory> {
        self.read("traffic_history", move |connection| {
            let mut statement = connection.prepare_cached(
                "select hour, installs from traffic_peaks where app_id = ?1 and hour >= ?2",
            )?;
            let rows = statement.query_map((app.as_bytes(), since.as_millis()), |row| {
                Ok((Timestamp::from_millis(row.get(0)?), row.get(1)?))
            })?;
            Ok(TrafficHistory {
                peaks: rows.collect::<Result<_, _>>()?,
                anomalies: find_anomalies(connection, app, since, u32::MAX)?,
            })
        })
        .await
    }

    async fn record_checked_hour(
        &self,
        checked: CheckedHour,
        keep_since: Timestamp,
    ) -> StoreResult<bool> {
        self.write("record_checked_hour", move |connection| {
            record(connection, &checked, keep_since)
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
        self.read("traffic_anomalies", move |connection| {
            require_app(connection, organization, app)?;
            if environment == Environment::Test {
                return Ok(Vec::new());
            }
            find_anomalies(connection, app, since, ANOMALIES_SHOWN_MAX)
        })
        .await
    }
}
