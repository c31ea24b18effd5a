//! `RollupTable`: roll-ups as `recording` uses them.

use super::{add_rows, merge_or_discard, pending_increments, store_increments};
use crate::Failure;
use crate::rows::{SqliteRow, read_row};
use crate::tables::SqliteTables;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params, params_from_iter};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::SELF_CREDITED_SOURCE;
use tributary_domain::report::cohort::{CohortDevice, CohortMember, CohortTable, UncertainAge};
use tributary_domain::report::{Increments, Rollup, RollupRows};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{RollupPart, RollupTable};
use tributary_store::records::{
    CohortDeviceRow, CohortRollupRow, Columns, RollupRow, capped_column, cohort_table, rollup_table,
};

/// Builds the SQL condition for a part of the rows in a time span, and its parameters.
fn within(
    (app, environment): (AppId, Environment),
    (from, until): (Timestamp, Timestamp),
    part: RollupPart<'_>,
    column: &str,
) -> (String, Vec<Value>) {
    let mut params = vec![
        Value::Blob(app.as_bytes().to_vec()),
        Value::Text(environment.as_str().to_owned()),
        Value::Integer(from.as_millis()),
        Value::Integer(until.as_millis()),
    ];
    let mut condition = format!(
        "app_id = ? and environment = ? and grain in ({}) and bucket >= ? and bucket < ?",
        part.grains()
    );
    if let Some(values) = part.values() {
        let marks = vec!["?"; values.len()].join(", ");
        // Writing to a String cannot fail.
        let _infallible = write!(condition, " and {column} in ({marks})");
        params.extend(values.iter().cloned().map(Value::Text));
    }
    (condition, params)
}

impl RollupTable for SqliteTables<'_> {
    async fn increments(&self, app: AppId) -> Result<Increments, Failure> {
        pending_increments::read(self.0, app)
    }

    async fn store_increments(&self, increments: &Increments) -> Result<(), Failure> {
        store_increments(self.0, increments.clone())
    }

    async fn merge_increments(&self, app: AppId) -> Result<(), Failure> {
        merge_or_discard(self.0, app)
    }

    async fn lock_rollups(&self) -> Result<(), Failure> {
        Ok(())
    }

    async fn rollup_rows(
        &self,
        table: Rollup,
        scope: (AppId, Environment),
        span: (Timestamp, Timestamp),
        part: RollupPart<'_>,
    ) -> Result<Vec<RollupRow>, Failure> {
        let (columns, name) = (RollupRow::columns(table), rollup_table(table));
        let (condition, params) = within(scope, span, part, capped_column(table));
        let sql = format!("select {columns} from {name} where {condition}");
        let mut find = self.0.prepare_cached(&sql)?;
        let rows = find.query_map(params_from_iter(params), |row| {
            RollupRow::from_row(&SqliteRow(row), table)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    async fn cohort_rows(
        &self,
        table: CohortTable,
        scope: (AppId, Environment),
        span: (Timestamp, Timestamp),
        part: RollupPart<'_>,
    ) -> Result<Vec<CohortRollupRow>, Failure> {
        let (columns, name) = (CohortRollupRow::columns(table), cohort_table(table));
        let (condition, params) = within(scope, span, part, "campaign_id");
        let sql = format!("select {columns} from {name} where {condition}");
        let mut find = self.0.prepare_cached(&sql)?;
        let rows = find.query_map(params_from_iter(params), |row| {
            CohortRollupRow::from_row(&SqliteRow(row), table)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    async fn add_rollups(&self, rows: &RollupRows) -> Result<(), Failure> {
        add_rows(self.0, rows)
    }

    async fn rolled_up_days(
        &self,
        (app, environment): (AppId, Environment),
    ) -> Result<Vec<Day>, Failure> {
        let mut find = self.0.prepare_cached(
            "select distinct bucket from rollup_networks
             where app_id = ?1 and environment = ?2 and grain = 1440",
        )?;
        let key = (app.as_bytes(), environment.as_str());
        let days = find.query_map(key, |row| Ok(Day::of(Timestamp::from_millis(row.get(0)?))))?;
        Ok(days.collect::<Result<_, _>>()?)
    }

    async fn cohort_devices(
        &self,
        members: &BTreeSet<&CohortMember>,
    ) -> Result<Vec<(CohortMember, CohortDeviceRow)>, Failure> {
        let sql = format!(
            "select {} from cohort_devices
             where app_id = ?1 and environment = ?2 and device_id = ?3",
            CohortDeviceRow::COLUMNS
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let mut found = Vec::new();
        for member in members {
            let (app, environment) = (member.app.as_bytes(), member.environment.as_str());
            let key = (app, environment, member.device.as_str());
            let row = find
                .query_row(key, read_row::<CohortDeviceRow>)
                .optional()?;
            found.extend(row.map(|row| ((*member).clone(), row)));
        }
        Ok(found)
    }

    async fn was_active(&self, doubt: &UncertainAge) -> Result<bool, Failure> {
        let found = self
            .0
            .prepare_cached(
                "select 1 from events
                 where app_id = ?1 and environment = ?2 and device_id = ?3
                   and event_id >= ?4 and event_id < ?5 and source <> ?6 and network is not null",
            )?
            .exists(params![
                doubt.member.app.as_bytes(),
                doubt.member.environment.as_str(),
                doubt.member.device.as_str(),
                EventId::first_at(doubt.from).as_bytes(),
                EventId::first_at(doubt.until).as_bytes(),
                SELF_CREDITED_SOURCE.as_str()
            ])?;
        Ok(found)
    }

    async fn had_payment(&self, doubt: &UncertainAge) -> Result<bool, Failure> {
        let found = self
            .0
            .prepare_cached(
                "select 1 from events
                 where app_id = ?1 and environment = ?2 and device_id = ?3
                   and event_id >= ?4 and event_id < ?5 and source <> ?6 and network is not null
                   and usd_micros > 0 and uncounted is null and duplicate_of is null",
            )?
            .exists(params![
                doubt.member.app.as_bytes(),
                doubt.member.environment.as_str(),
                doubt.member.device.as_str(),
                EventId::first_at(doubt.from).as_bytes(),
                EventId::first_at(doubt.until).as_bytes(),
                SELF_CREDITED_SOURCE.as_str()
            ])?;
        Ok(found)
    }

    async fn write_cohort_devices(
        &self,
        enrolled: &BTreeMap<CohortMember, CohortDevice>,
    ) -> Result<(), Failure> {
        let mut write = self.0.prepare_cached(
            "insert into cohort_devices (app_id, environment, device_id, installed_at, network,
                                         link_id, campaign_id, country, ages, paid_ages)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             on conflict (app_id, environment, device_id) do update
             set installed_at = excluded.installed_at, network = excluded.network,
                 link_id = excluded.link_id, campaign_id = excluded.campaign_id,
                 country = excluded.country, ages = excluded.ages,
                 paid_ages = excluded.paid_ages",
        )?;
        for (member, enrolled) in enrolled {
            let row = CohortDeviceRow::write(enrolled);
            write.execute(params![
                member.app.as_bytes(),
                member.environment.as_str(),
                member.device.as_str(),
                row.installed_at,
                row.network,
                row.link_id,
                row.campaign_id,
                row.country,
                row.ages,
                row.paid_ages
            ])?;
        }
        Ok(())
    }

    async fn rename_cohort_device(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "update cohort_devices set device_id = ?4
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .execute(params![
                device.app.as_bytes(),
                device.environment.as_str(),
                device.key.as_str(),
                key.as_str()
            ])?;
        Ok(())
    }
}
