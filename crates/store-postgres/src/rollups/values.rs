//! `RollupValueTable`: the distinct values of each day, and known values.

use crate::Failure;
use crate::params::column;
use crate::rows::{id, uuid};
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::report::Grain;
use tributary_domain::report::cardinality_cap::{
    CapDecisions, CappedValue, KnownValue, Placement, Quota, ValueKind,
};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{RollupValueTable, ValueCounts};
use tributary_store::{RollupDay, StoreError};

impl RollupValueTable for Tx {
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
                  and stored.digest = wanted.digest
                 /* distributed: where stored.app_id = any($1) */",
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
        let mut decisions = CapDecisions::default();
        for row in &rows {
            let index = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX);
            if let Some(value) = values.get(index) {
                let placement = Placement::stored(row.try_get(1)?);
                decisions.0.insert(*value, placement);
            }
        }
        Ok(decisions)
    }

    async fn value_counts(
        &self,
        quotas: &BTreeSet<Quota>,
    ) -> Result<BTreeMap<Quota, ValueCounts>, Failure> {
        if quotas.is_empty() {
            return Ok(BTreeMap::new());
        }
        let quotas: Vec<Quota> = quotas.iter().copied().collect();
        let numbers: Vec<i64> = (0..).take(quotas.len()).collect();
        let rows = self
            .query(
                "select wanted.number, count(*) filter (where not stored.is_other),
                        count(*) filter (where stored.is_other)
                 from unnest($1, $2, $3, $4, $5)
                      as wanted (app_id, environment, day, kind, number)
                 join rollup_values as stored
                   on stored.app_id = wanted.app_id and stored.environment = wanted.environment
                  and stored.day = wanted.day and stored.kind = wanted.kind
                 /* distributed: where stored.app_id = any($1) */
                 group by wanted.number",
                &[
                    &column(&quotas, |quota| uuid(quota.app.as_bytes())),
                    &column(&quotas, |quota| quota.environment.as_str()),
                    &column(&quotas, |quota| quota.day.as_days()),
                    &column(&quotas, |quota| quota.kind.as_str()),
                    &numbers,
                ],
            )
            .await?;
        let mut counts = BTreeMap::new();
        for row in &rows {
            let number = |index| {
                let count = row.try_get::<_, i64>(index);
                count.map(|count| usize::try_from(count).unwrap_or(usize::MAX))
            };
            let (index, own, other) = (number(0)?, number(1)?, number(2)?);
            let quota = quotas.get(index);
            counts.extend(quota.map(|quota| (*quota, ValueCounts { own, other })));
        }
        Ok(counts)
    }

    async fn write_cap_decisions(&self, decisions: &CapDecisions) -> Result<(), Failure> {
        if decisions.0.is_empty() {
            return Ok(());
        }
        let rows: Vec<(&CappedValue, bool)> = decisions
            .0
            .iter()
            .map(|(value, placement)| (value, placement.is_other()))
            .collect();
        self.execute(
            "insert into rollup_values (app_id, environment, day, kind, digest, is_other)
             select * from unnest($1, $2, $3, $4, $5, $6)
             on conflict (app_id, environment, day, kind, digest) do update
             set is_other = excluded.is_other",
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

    async fn remove_cap_decisions(&self, day: RollupDay) -> Result<(), Failure> {
        self.execute(
            "delete from rollup_values where app_id = $1 and environment = $2 and day = $3",
            &[
                &uuid(day.app.as_bytes()),
                &day.environment.as_str(),
                &i64::from(day.day.as_days()),
            ],
        )
        .await?;
        Ok(())
    }

    async fn known_values(
        &self,
        values: &BTreeSet<KnownValue>,
    ) -> Result<BTreeSet<KnownValue>, Failure> {
        if values.is_empty() {
            return Ok(BTreeSet::new());
        }
        let values: Vec<&KnownValue> = values.iter().collect();
        let rows = self
            .query(
                "select stored.app_id, stored.kind, stored.value
                 from unnest($1, $2, $3) as wanted (app_id, kind, value)
                 join known_values as stored
                   on stored.app_id = wanted.app_id and stored.kind = wanted.kind
                  and stored.value = wanted.value
                 /* distributed: where stored.app_id = any($1) */",
                &[
                    &column(&values, |value| uuid(value.app.as_bytes())),
                    &column(&values, |value| value.kind.as_str()),
                    &column(&values, |value| value.value.as_str()),
                ],
            )
            .await?;
        let mut known = BTreeSet::new();
        for row in &rows {
            let app = AppId::from_bytes(id(row, 0)?);
            let kind = ValueKind::parse(row.try_get(1)?)
                .ok_or_else(|| StoreError::corrupt("known_values", "kind", app))?;
            let value = row.try_get(2)?;
            known.insert(KnownValue { app, kind, value });
        }
        Ok(known)
    }

    async fn insert_known_values(&self, values: &BTreeSet<KnownValue>) -> Result<(), Failure> {
        if values.is_empty() {
            return Ok(());
        }
        let values: Vec<&KnownValue> = values.iter().collect();
        self.execute(
            "insert into known_values (app_id, kind, value)
             select * from unnest($1, $2, $3)
             on conflict (app_id, kind, value) do nothing",
            &[
                &column(&values, |value| uuid(value.app.as_bytes())),
                &column(&values, |value| value.kind.as_str()),
                &column(&values, |value| value.value.as_str()),
            ],
        )
        .await?;
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
                 where app_id = $1 and {column} = $2 and grain = {}",
                Grain::FoldedDay.minutes()
            );
            let key = uuid(app.as_bytes());
            for row in &self.query(&sql, &[&key, &value.as_str()]).await? {
                let environment = Environment::parse(row.try_get(0)?)
                    .ok_or_else(|| StoreError::corrupt("rollups", "environment", app))?;
                days.insert(RollupDay {
                    app: *app,
                    environment,
                    day: Day::of(Timestamp::from_millis(row.try_get(1)?)),
                });
            }
        }
        Ok(days)
    }
}
