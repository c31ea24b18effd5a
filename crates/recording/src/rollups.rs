//! Merging increments into the roll-ups.

use crate::tables::Tables;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::report::cap::{Fates, Quota, Value};
use tributary_domain::report::cohort::{
    CohortEntry, CohortRows, Enrolled, Member, enroll as decide,
};
use tributary_domain::report::{Increments, Merge, RollupRows};
use tributary_domain::vocabulary::id::AppId;

/// Merges increments into the roll-ups.
pub async fn merge<T: Tables>(tables: &T, increments: &Increments) -> Result<(), T::Failure> {
    if increments.is_empty() {
        return Ok(());
    }
    let merge = prepare(tables, increments).await?;
    tables.write_enrolled(&merge.enrolled).await?;
    tables.insert_fates(&merge.decided).await?;
    tables.add_rollups(&merge.rows).await
}

/// Reads what the roll-ups of figures do not have yet of an app.
pub async fn unmerged_figures<T: Tables>(tables: &T, app: AppId) -> Result<RollupRows, T::Failure> {
    let mut increments = tables.increments(app).await?;
    increments.cohorts.clear();
    Ok(prepare(tables, &increments).await?.rows)
}

/// Reads what the cohorts do not have yet of an app.
pub async fn unmerged_cohorts<T: Tables>(tables: &T, app: AppId) -> Result<RollupRows, T::Failure> {
    let increments = Increments {
        cohorts: tables.increments(app).await?.cohorts,
        ..Increments::default()
    };
    Ok(prepare(tables, &increments).await?.rows)
}

/// Reads what merging needs, and writes nothing.
async fn prepare<T: Tables>(tables: &T, increments: &Increments) -> Result<Merge, T::Failure> {
    let (cohorts, enrolled) = enroll(tables, &increments.cohorts).await?;
    let mut values = increments.values();
    values.extend(cohorts.values());
    let (fates, decided) = fates(tables, values).await?;
    Ok(Merge {
        rows: RollupRows::of(increments, &fates, &cohorts),
        enrolled,
        decided,
    })
}

/// Counts what devices did. Returns the devices that change as well.
async fn enroll<T: Tables>(
    tables: &T,
    entries: &[CohortEntry],
) -> Result<(CohortRows, BTreeMap<Member, Enrolled>), T::Failure> {
    if entries.is_empty() {
        return Ok((CohortRows::default(), BTreeMap::new()));
    }
    let members = entries.iter().map(|entry| &entry.member).collect();
    let mut known = BTreeMap::new();
    for (member, row) in tables.enrolled(&members).await? {
        match row.read() {
            Ok(enrolled) => {
                known.insert(member, enrolled);
            }
            // The other devices count all the same.
            Err(error) => {
                tracing::error!(%error, "a device counts in no cohort until its figures are rebuilt");
            }
        }
    }
    let mut all = decide(entries, &mut known);
    for doubt in all.doubts.clone() {
        if !tables.was_seen(&doubt).await? {
            all.unsee(&doubt, &mut known);
        }
    }
    known.retain(|member, _| all.changed.contains(member));
    Ok((all.rows, known))
}

/// Finds which values count under their own name. Returns apart from that what is decided about new ones.
pub(crate) async fn fates<T: Tables>(
    tables: &T,
    values: BTreeSet<Value>,
) -> Result<(Fates, Fates), T::Failure> {
    let mut values: Vec<Value> = values.into_iter().collect();
    let mut fates = tables.fates(&values).await?;
    values.retain(|value| !fates.0.contains_key(value));
    let quotas: BTreeSet<Quota> = values.iter().map(|value| value.quota).collect();
    let mut taken = BTreeMap::new();
    for quota in quotas {
        taken.insert(quota, tables.named_values(quota).await?);
    }
    let decided = Fates::decide(&values, &taken);
    fates.0.extend(decided.0.clone());
    Ok((fates, decided))
}
