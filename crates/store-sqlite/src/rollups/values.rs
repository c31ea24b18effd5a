//! `RollupValueTable`: the distinct values of each day, and known values.

use crate::Failure;
use crate::tables::SqliteTables;
use rusqlite::{OptionalExtension, params};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::report::Grain;
use tributary_domain::report::cardinality_cap::{
    CapDecisions, CappedValue, KnownValue, Placement, Quota, ValueKind,
};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{RollupValueTable, ValueCounts};
use tributary_store::{RollupDay, StoreError};

impl RollupValueTable for SqliteTables<'_> {
    async fn cap_decisions(&self, values: &[CappedValue]) -> Result<CapDecisions, Failure> {
        let mut find = self.0.prepare_cached(
            "select is_other from rollup_values
             where app_id = ?1 and environment = ?2 and day = ?3 and kind = ?4 and digest = ?5",
        )?;
        let mut decisions = CapDecisions::default();
        for value in values {
            let CappedValue { quota, digest } = value;
            let key = params![
                quota.app.as_bytes(),
                quota.environment.as_str(),
                quota.day.as_days(),
                quota.kind.as_str(),
                digest.as_bytes()
            ];
            let is_other: Option<bool> = find.query_row(key, |row| row.get(0)).optional()?;
            let decision = is_other.map(|is_other| (*value, Placement::stored(is_other)));
            decisions.0.extend(decision);
        }
        Ok(decisions)
    }

    async fn value_counts(
        &self,
        quotas: &BTreeSet<Quota>,
    ) -> Result<BTreeMap<Quota, ValueCounts>, Failure> {
        let mut count = self.0.prepare_cached(
            "select count(*), ifnull(sum(is_other), 0) from rollup_values
             where app_id = ?1 and environment = ?2 and day = ?3 and kind = ?4",
        )?;
        let mut counts = BTreeMap::new();
        for quota in quotas {
            let key = params![
                quota.app.as_bytes(),
                quota.environment.as_str(),
                quota.day.as_days(),
                quota.kind.as_str()
            ];
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let (all, other): (i64, i64) = count.query_row(key, read)?;
            let number = |count| usize::try_from(count).unwrap_or(usize::MAX);
            let (own, other) = (number(all - other), number(other));
            counts.insert(*quota, ValueCounts { own, other });
        }
        Ok(counts)
    }

    async fn write_cap_decisions(&self, decisions: &CapDecisions) -> Result<(), Failure> {
        let mut write = self.0.prepare_cached(
            "insert into rollup_values (app_id, environment, day, kind, digest, is_other)
             values (?1, ?2, ?3, ?4, ?5, ?6)
             on conflict (app_id, environment, day, kind, digest) do update
             set is_other = excluded.is_other",
        )?;
        for (CappedValue { quota, digest }, placement) in &decisions.0 {
            write.execute(params![
                quota.app.as_bytes(),
                quota.environment.as_str(),
                quota.day.as_days(),
                quota.kind.as_str(),
                digest.as_bytes(),
                placement.is_other()
            ])?;
        }
        Ok(())
    }

    async fn remove_cap_decisions(&self, day: RollupDay) -> Result<(), Failure> {
        let key = params![
            day.app.as_bytes(),
            day.environment.as_str(),
            day.day.as_days()
        ];
        self.0
            .prepare_cached(
                "delete from rollup_values where app_id = ?1 and environment = ?2 and day = ?3",
            )?
            .execute(key)?;
        Ok(())
    }

    async fn known_values(
        &self,
        values: &BTreeSet<KnownValue>,
    ) -> Result<BTreeSet<KnownValue>, Failure> {
        let mut find = self.0.prepare_cached(
            "select 1 from known_values where app_id = ?1 and kind = ?2 and value = ?3",
        )?;
        let mut known = BTreeSet::new();
        for value in values {
            let KnownValue {
                app,
                kind,
                value: text,
            } = value;
            if find.exists(params![app.as_bytes(), kind.as_str(), text])? {
                known.insert(value.clone());
            }
        }
        Ok(known)
    }

    async fn insert_known_values(&self, values: &BTreeSet<KnownValue>) -> Result<(), Failure> {
        let mut insert = self.0.prepare_cached(
            "insert into known_values (app_id, kind, value) values (?1, ?2, ?3)
             on conflict (app_id, kind, value) do nothing",
        )?;
        for KnownValue { app, kind, value } in values {
            insert.execute(params![app.as_bytes(), kind.as_str(), value])?;
        }
        Ok(())
    }

    async fn days_with_details(
        &self,
        values: &BTreeSet<KnownValue>,
    ) -> Result<BTreeSet<RollupDay>, Failure> {
        let mut days = BTreeSet::new();
        for KnownValue { app, kind, value } in values {
            let (table, column) = match kind {
                ValueKind::Campaign | ValueKind::Ad => ("rollup_credits", "campaign_id"),
                ValueKind::Name => ("rollup_names", "name"),
            };
            // The grain is not a parameter, so that the planner uses the partial index.
            let sql = format!(
                "select distinct environment, bucket from {table}
                 where app_id = ?1 and {column} = ?2 and grain = {}",
                Grain::FoldedDay.minutes()
            );
            let mut find = self.0.prepare_cached(&sql)?;
            let mut rows = find.query(params![app.as_bytes(), value])?;
            while let Some(row) = rows.next()? {
                let environment: String = row.get(0)?;
                let environment = Environment::parse(&environment)
                    .ok_or_else(|| StoreError::corrupt("rollups", "environment", app))?;
                days.insert(RollupDay {
                    app: *app,
                    environment,
                    day: Day::of(Timestamp::from_millis(row.get(1)?)),
                });
            }
        }
        Ok(days)
    }
}
