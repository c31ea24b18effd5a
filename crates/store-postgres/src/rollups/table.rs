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
use tributary_domain::report::cardinality_cap::{CapDecisions, CappedValue, Quota};
use tributary_domain::report::cohort::{CohortDevice, CohortMember, UncertainAge};
use tributary_domain::report::{Increments, Rollup, RollupRows};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::RollupTable;
use tributary_store::records::{
    CohortDeviceRow, CohortRollupRow, CohortTable, Columns, RollupRow, rollup_table,
};

/// SQL condition for the rows in a time span.
const WITHIN: &str = "app_id = $1 and environment = $2 and grain in (15, 60, 1440)
     and bucket >= $3 and bucket < $4";

impl RollupTable for Tx {
    async fn increments(&self, app: AppId) -> Result<Increments, Failure> {
        pending_increments::read(self, app).await
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
    ) -> Result<Vec<RollupRow>, Failure> {
        let (columns, name) = (RollupRow::columns(table), rollup_table(table));
        let sql = format!("select {columns} from {name} where {WITHIN}");
        let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
        let (from, until) = (from.as_millis(), until.as_millis());
        let key: [&dyn Param; 4] = [&app, &environment, &from, &until];
        let rows = self.query(&sql, &key).await?;
        let row = |row| RollupRow::from_row(&PostgresRow(row), table);
        rows.iter().map(row).collect()
    }

    async fn cohort_rows(
        &self,
        table: CohortTable,
        (app, environment): (AppId, Environment),
        (from, until): (Timestamp, Timestamp),
    ) -> Result<Vec<CohortRollupRow>, Failure> {
        let (columns, name) = (CohortRollupRow::columns(table), table.name());
        let sql = format!("select {columns} from {name} where {WITHIN}");
        let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
        let (from, until) = (from.as_millis(), until.as_millis());
        let key: [&dyn Param; 4] = [&app, &environment, &from, &until];
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

    async fn cap_decisions(&self, values: &[CappedValue]) -> Result<CapDecisions, Failure> {
        if values.is_empty() {
            return Ok(CapDecisions::default());
        }
        let numbers: Vec<i64> = (0..).take(values.len()).collect();
        let rows = self
            .query(
                "select wanted.number, stored.is_other
                 from unnest($1, $2, $3, $4, $5, $6)
                      as wanted (app_id, environment, day, kind, digest, number)
                 join rollup_values as stored
                   on stored.app_id = wanted.app_id and stored.environment = wanted.environment
                  and stored.day = wanted.day and stored.kind = wanted.kind
                  and stored.digest = wanted.digest",
                &[
                    &column(values, |value| uuid(value.quota.app.as_bytes())),
                    &column(values, |value| value.quota.environment.as_str()),
                    &column(values, |value| value.quota.day.as_days()),
                    &column(values, |value| value.quota.kind.as_str()),
                    &column(values, |value| value.digest.as_bytes().as_slice()),
                    &numbers,
                ],
            )
            .await?;
        let mut fates = CapDecisions::default();
        for row in &rows {
            let index = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX);
            if let Some(value) = values.get(index) {
                fates.0.insert(*value, row.try_get(1)?);
            }
        }
        Ok(fates)
    }

    async fn named_value_count(&self, quota: Quota) -> Result<usize, Failure> {
        let rows = self
            .query(
                "select count(*) from rollup_values
                 where app_id = $1 and environment = $2 and day = $3 and kind = $4
                   and not is_other",
                &[
                    &uuid(quota.app.as_bytes()),
                    &quota.environment.as_str(),
                    &i64::from(quota.day.as_days()),
                    &quota.kind.as_str(),
                ],
            )
            .await?;
        let count = rows.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    async fn insert_cap_decisions(&self, decided: &CapDecisions) -> Result<(), Failure> {
        if decided.0.is_empty() {
            return Ok(());
        }
        let rows: Vec<(&CappedValue, bool)> = decided
            .0
            .iter()
            .map(|(value, is_other)| (value, *is_other))
            .collect();
        self.execute(
            "insert into rollup_values (app_id, environment, day, kind, digest, is_other)
             select * from unnest($1, $2, $3, $4, $5, $6)
             on conflict (app_id, environment, day, kind, digest) do nothing",
            &[
                &column(&rows, |(value, _)| uuid(value.quota.app.as_bytes())),
                &column(&rows, |(value, _)| value.quota.environment.as_str()),
                &column(&rows, |(value, _)| value.quota.day.as_days()),
                &column(&rows, |(value, _)| value.quota.kind.as_str()),
                &column(&rows, |(value, _)| value.digest.as_bytes().as_slice()),
                &column(&rows, |(_, is_other)| *is_other),
            ],
        )
        .await?;
        Ok(())
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
              and stored.device_id = wanted.device_id",
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
                                         link_id, campaign_id, country, ages)
             select * from unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
             on conflict (app_id, environment, device_id) do update
             set installed_at = excluded.installed_at, network = excluded.network,
                 link_id = excluded.link_id, campaign_id = excluded.campaign_id,
                 country = excluded.country, ages = excluded.ages",
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
