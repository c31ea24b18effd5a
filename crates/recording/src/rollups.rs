//! Merging increments into the roll-ups.

use crate::tables::Tables;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::report::cardinality_cap::{CapDecisions, CappedValue, Quota};
use tributary_domain::report::cohort::{
    CohortDevice, CohortEntry, CohortMember, CohortRows, update_cohorts as decide,
};
use tributary_domain::report::{Increments, RollupMerge, RollupRows};
use tributary_domain::vocabulary::id::AppId;

/// Merges increments into the roll-ups.
pub async fn merge<T: Tables>(tables: &T, increments: &Increments) -> Result<(), T::Failure> {
    if increments.is_empty() {
        return Ok(());
    }
    let merge = prepare(tables, increments).await?;
    tables.write_cohort_devices(&merge.devices).await?;
    tables.insert_cap_decisions(&merge.cap_decisions).await?;
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
async fn prepare<T: Tables>(
    tables: &T,
    increments: &Increments,
) -> Result<RollupMerge, T::Failure> {
    let (cohorts, enrolled) = update_cohort_devices(tables, &increments.cohorts).await?;
    let mut values = increments.capped_values();
    values.extend(cohorts.capped_values());
    let (fates, decided) = decide_caps(tables, values).await?;
    Ok(RollupMerge {
        rows: RollupRows::of(increments, &fates, &cohorts),
        devices: enrolled,
        cap_decisions: decided,
    })
}

/// Counts what devices did. Returns the devices that change as well.
async fn update_cohort_devices<T: Tables>(
    tables: &T,
    entries: &[CohortEntry],
) -> Result<(CohortRows, BTreeMap<CohortMember, CohortDevice>), T::Failure> {
    if entries.is_empty() {
        return Ok((CohortRows::default(), BTreeMap::new()));
    }
    let members = entries.iter().map(|entry| &entry.member).collect();
    let mut known = BTreeMap::new();
    for (member, row) in tables.cohort_devices(&members).await? {
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
    for doubt in all.uncertain_ages.clone() {
        if !tables.was_active(&doubt).await? {
            all.mark_inactive(&doubt, &mut known);
        }
    }
    known.retain(|member, _| all.changed_devices.contains(member));
    Ok((all.rows, known))
}

/// Finds which values count under their own name. Returns apart from that what is decided about new ones.
pub(crate) async fn decide_caps<T: Tables>(
    tables: &T,
    values: BTreeSet<CappedValue>,
) -> Result<(CapDecisions, CapDecisions), T::Failure> {
    let mut values: Vec<CappedValue> = values.into_iter().collect();
    let mut fates = tables.cap_decisions(&values).await?;
    values.retain(|value| !fates.0.contains_key(value));
    let quotas: BTreeSet<Quota> = values.iter().map(|value| value.quota).collect();
    let mut taken = BTreeMap::new();
    for quota in quotas {
        taken.insert(quota, tables.named_value_count(quota).await?);
    }
    let decided = CapDecisions::decide(&values, &taken);
    fates.0.extend(decided.0.clone());
    Ok((fates, decided))
}
