//! `RollupTable`: roll-ups as `recording` uses them. A transaction that writes cohorts has already
//! locked its app's increments, or the whole table.

use super::{add_rows, pending_increments};
use crate::Failure;
use crate::devices::DeviceColumns;
use crate::params::{Param, column};
use crate::rows::{PostgresRow, read_row, uuid};
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
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

/// Builds the SQL condition for a part of the rows in a time span. Its fifth parameter is the list
/// of values.
fn within(part: RollupPart<'_>, column: &str) -> String {
    let filter = match part.values() {
        Some(_) => format!("{column} = any($5)"),
        None => "cardinality($5::text[]) = 0".to_owned(),
    };
    format!(
        "app_id = $1 and environment = $2 and grain in ({}) and bucket >= $3 and bucket < $4
         and {filter}",
        part.grains()
    )
}

/// Returns the values to read.
fn listed(part: RollupPart<'_>) -> Vec<&str> {
    let values = part.values().into_iter().flatten();
    values.map(String::as_str).collect()
}

impl RollupTable for Tx {
    async fn increments(&self, app: AppId) -> Result<Increments, Failure> {
        pending_increments::read(self, app).await
    }

    async fn store_increments(&self, increments: &Increments) -> Result<(), Failure> {
        pending_increments::store_increments(self, increments).await
    }

    async fn merge_increments(&self, app: AppId) -> Result<(), Failure> {
        pending_increments::merge_or_discard(self, app).await
    }

    async fn lock_rollups(&self) -> Result<(), Failure> {
        self.execute(
            "lock table rollup_increments, rollup_networks, rollup_values, cohort_devices
             in share row exclusive mode",
            &[],
        )
        .await?;
        Ok(())
    }

    async fn rollup_rows(
        &self,
        table: Rollup,
        (app, environment): (AppId, Environment),
        (from, until): (Timestamp, Timestamp),
        part: RollupPart<'_>,
    ) -> Result<Vec<RollupRow>, Failure> {
        let (columns, name) = (RollupRow::columns(table), rollup_table(table));
        let condition = within(part, capped_column(table));
        let sql = format!("select {columns} from {name} where {condition}");
        let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
        let (from, until) = (from.as_millis(), until.as_millis());
        let key: [&dyn Param; 5] = [&app, &environment, &from, &until, &listed(part)];
        let rows = self.query(&sql, &key).await?;
        let row = |row| RollupRow::from_row(&PostgresRow(row), table);
        rows.iter().map(row).collect()
    }

    async fn cohort_rows(
        &self,
        table: CohortTable,
        (app, environment): (AppId, Environment),
        (from, until): (Timestamp, Timestamp),
        part: RollupPart<'_>,
    ) -> Result<Vec<CohortRollupRow>, Failure> {
        let (columns, name) = (CohortRollupRow::columns(table), cohort_table(table));
        let condition = within(part, "campaign_id");
        let sql = format!("select {columns} from {name} where {condition}");
        let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
        let (from, until) = (from.as_millis(), until.as_millis());
        let key: [&dyn Param; 5] = [&app, &environment, &from, &until, &listed(part)];
        let rows = self.query(&sql, &key).await?;
        let row = |row| CohortRollupRow::from_row(&PostgresRow(row), table);
        rows.iter().map(row).collect()
    }

    async fn add_rollups(&self, rows: &RollupRows) -> Result<(), Failure> {
        add_rows(self, rows).await
    }

    async fn rolled_up_days(
        &self,
        (app, environment): (AppId, Environment),
    ) -> Result<Vec<Day>, Failure> {
        let sql = "select distinct bucket from rollup_networks
                   where app_id = $1 and environment = $2 and grain = 1440";
        let key: [&dyn Param; 2] = [&uuid(app.as_bytes()), &environment.as_str()];
        let mut days = Vec::new();
        for row in &self.query(sql, &key).await? {
            days.push(Day::of(Timestamp::from_millis(row.try_get(0)?)));
        }
        Ok(days)
    }

    async fn cohort_devices(
        &self,
        members: &BTreeSet<&CohortMember>,
    ) -> Result<Vec<(CohortMember, CohortDeviceRow)>, Failure> {
        let members: Vec<&CohortMember> = members.iter().copied().collect();
        let numbers: Vec<i64> = (0..).take(members.len()).collect();
        let sql = format!(
            "select {}, wanted.number
             from unnest($1, $2, $3, $4) as wanted (app_id, environment, device_id, number)
             join cohort_devices as stored
               on stored.app_id = wanted.app_id and stored.environment = wanted.environment
              and stored.device_id = wanted.device_id
             /* distributed: where stored.app_id = any($1) */",
            CohortDeviceRow::COLUMNS
        );
        let rows = self
            .query(
                &sql,
                &[
                    &column(&members, |member| uuid(member.app.as_bytes())),
                    &column(&members, |member| member.environment.as_str()),
                    &column(&members, |member| member.device.as_str()),
                    &numbers,
                ],
            )
            .await?;
        let mut found = Vec::new();
        for row in &rows {
            let index = usize::try_from(row.try_get::<_, i64>("number")?).unwrap_or(usize::MAX);
            if let Some(member) = members.get(index) {
                found.push(((*member).clone(), read_row::<CohortDeviceRow>(row)?));
            }
        }
        Ok(found)
    }

    async fn was_active(&self, doubt: &UncertainAge) -> Result<bool, Failure> {
        let found = self
            .query_opt(
                "select 1 from events
                 where app_id = $1 and environment = $2 and device_id = $3
                   and event_id >= $4 and event_id < $5 and source <> $6 and network is not null
                 limit 1",
                &[
                    &uuid(doubt.member.app.as_bytes()),
                    &doubt.member.environment.as_str(),
                    &doubt.member.device.as_str(),
                    &uuid(EventId::first_at(doubt.from).as_bytes()),
                    &uuid(EventId::first_at(doubt.until).as_bytes()),
                    &SELF_CREDITED_SOURCE.as_str(),
                ],
            )
            .await?;
        Ok(found.is_some())
    }

    async fn had_payment(&self, doubt: &UncertainAge) -> Result<bool, Failure> {
        let found = self
            .query_opt(
                "select 1 from events
                 where app_id = $1 and environment = $2 and device_id = $3
                   and event_id >= $4 and event_id < $5 and source <> $6 and network is not null
                   and usd_micros > 0 and uncounted is null and duplicate_of is null
                 limit 1",
                &[
                    &uuid(doubt.member.app.as_bytes()),
                    &doubt.member.environment.as_str(),
                    &doubt.member.device.as_str(),
                    &uuid(EventId::first_at(doubt.from).as_bytes()),
                    &uuid(EventId::first_at(doubt.until).as_bytes()),
                    &SELF_CREDITED_SOURCE.as_str(),
                ],
            )
            .await?;
        Ok(found.is_some())
    }

    async fn write_cohort_devices(
        &self,
        enrolled: &BTreeMap<CohortMember, CohortDevice>,
    ) -> Result<(), Failure> {
        if enrolled.is_empty() {
            return Ok(());
        }
        let rows: Vec<(&CohortMember, CohortDeviceRow)> = enrolled
            .iter()
            .map(|(member, enrolled)| (member, CohortDeviceRow::write(enrolled)))
            .collect();
        self.execute(
            "insert into cohort_devices (app_id, environment, device_id, installed_at, network,
                                         link_id, campaign_id, country, ages, paid_ages)
             select * from unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
             on conflict (app_id, environment, device_id) do update
             set installed_at = excluded.installed_at, network = excluded.network,
                 link_id = excluded.link_id, campaign_id = excluded.campaign_id,
                 country = excluded.country, ages = excluded.ages,
                 paid_ages = excluded.paid_ages",
            &[
                &column(&rows, |(member, _)| uuid(member.app.as_bytes())),
                &column(&rows, |(member, _)| member.environment.as_str()),
                &column(&rows, |(member, _)| member.device.as_str()),
                &column(&rows, |(_, row)| row.installed_at),
                &column(&rows, |(_, row)| row.network.as_str()),
                &column(&rows, |(_, row)| row.link_id.as_ref().map(uuid)),
                &column(&rows, |(_, row)| row.campaign_id.as_str()),
                &column(&rows, |(_, row)| row.country.as_str()),
                &column(&rows, |(_, row)| row.ages.as_slice()),
                &column(&rows, |(_, row)| row.paid_ages.as_deref()),
            ],
        )
        .await?;
        Ok(())
    }

    async fn rename_cohort_device(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Failure> {
        let (app, environment, stored) = device.columns();
        self.execute(
            "update cohort_devices set device_id = $4
             where app_id = $1 and environment = $2 and device_id = $3",
            &[&app, &environment, &stored, &key.as_str()],
        )
        .await?;
        Ok(())
    }
}
