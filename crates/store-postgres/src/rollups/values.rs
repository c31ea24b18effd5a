//! Values from outside whose number is bounded: which count under their own name.

use crate::Failure;
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::report::cap::{Fates, Quota, Value};

/// What becomes of these values, and apart from that what is decided about new ones. Nodes take turns in merging, so
/// what one decides no other has decided meanwhile.
pub(super) async fn fates(tx: &Tx, values: BTreeSet<Value>) -> Result<(Fates, Fates), Failure> {
    let mut values: Vec<Value> = values.into_iter().collect();
    let mut fates = find(tx, &values).await?;
    values.retain(|value| !fates.0.contains_key(value));
    let decided = Fates::decide(&values, &taken(tx, &values).await?);
    fates.0.extend(decided.0.clone());
    Ok((fates, decided))
}

async fn find(tx: &Tx, values: &[Value]) -> Result<Fates, Failure> {
    if values.is_empty() {
        return Ok(Fates::default());
    }
    let numbers: Vec<i64> = (0..).take(values.len()).collect();
    let rows = tx
        .query(
            "select asked.number, stored.is_other
             from unnest($1, $2, $3, $4, $5, $6)
                  as asked (app_id, environment, day, kind, digest, number)
             join rollup_values as stored
               on stored.app_id = asked.app_id and stored.environment = asked.environment
              and stored.day = asked.day and stored.kind = asked.kind
              and stored.digest = asked.digest",
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
    let mut fates = Fates::default();
    for row in &rows {
        let place = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX);
        if let Some(value) = values.get(place) {
            fates.0.insert(*value, row.try_get(1)?);
        }
    }
    Ok(fates)
}

async fn taken(tx: &Tx, new: &[Value]) -> Result<BTreeMap<Quota, usize>, Failure> {
    let quotas: BTreeSet<Quota> = new.iter().map(|value| value.quota).collect();
    let mut taken = BTreeMap::new();
    for quota in quotas {
        let rows = tx
            .query(
                "select count(*) from rollup_values
                 where app_id = $1 and environment = $2 and day = $3 and kind = $4 and not is_other",
                &[
                    &uuid(quota.app.as_bytes()),
                    &quota.environment.as_str(),
                    &i64::from(quota.day.as_days()),
                    &quota.kind.as_str(),
                ],
            )
            .await?;
        let count = rows.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
        taken.insert(quota, usize::try_from(count).unwrap_or(usize::MAX));
    }
    Ok(taken)
}

/// Remembers what was decided about new values.
pub(super) async fn insert(tx: &Tx, decided: &Fates) -> Result<(), Failure> {
    if decided.0.is_empty() {
        return Ok(());
    }
    let rows: Vec<(&Value, bool)> = decided
        .0
        .iter()
        .map(|(value, is_other)| (value, *is_other))
        .collect();
    tx.execute(
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
