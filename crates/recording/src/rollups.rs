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

/// Returns an app's figures that are not merged yet.
pub async fn unmerged_figures<T: Tables>(tables: &T, app: AppId) -> Result<RollupRows, T::Failure> {
    let mut increments = tables.increments(app).await?;
    increments.cohorts.clear();
    Ok(prepare(tables, &increments).await?.rows)
}

/// Returns an app's cohort figures that are not merged yet.
pub async fn unmerged_cohorts<T: Tables>(tables: &T, app: AppId) -> Result<RollupRows, T::Failure> {
    let increments = Increments {
        cohorts: tables.increments(app).await?.cohorts,
        ..Increments::default()
    };
    Ok(prepare(tables, &increments).await?.rows)
}

/// Computes the merge without writing anything.
async fn prepare<T: Tables>(
    tables: &T,
    increments: &Increments,
) -> Result<RollupMerge, T::Failure> {
    let (cohorts, devices) = update_cohort_devices(tables, &increments.cohorts).await?;
    let mut values = increments.capped_values();
    values.extend(cohorts.capped_values());
    let (decisions, new_decisions) = decide_caps(tables, values).await?;
    Ok(RollupMerge {
        rows: RollupRows::of(increments, &decisions, &cohorts),
        devices,
        cap_decisions: new_decisions,
    })
}

/// Counts device activity. Returns the cohort rows and the changed devices.
async fn update_cohort_devices<T: Tables>(
    tables: &T,
    entries: &[CohortEntry],
) -> Result<(CohortRows, BTreeMap<CohortMember, CohortDevice>), T::Failure> {
    if entries.is_empty() {
        return Ok((CohortRows::default(), BTreeMap::new()));
    }
    let members = entries.iter().map(|entry| &entry.member).collect();
    let mut devices = BTreeMap::new();
    for (member, row) in tables.cohort_devices(&members).await? {
        match row.read() {
            Ok(device) => {
                devices.insert(member, device);
            }
            // Skip only this device; the other devices still count.
            Err(error) => {
                tracing::error!(
                    %error,
                    "failed to read cohort device; run `tributary rollups rebuild`"
                );
            }
        }
    }
    let mut update = decide(entries, &mut devices);
    for uncertain in update.uncertain_ages.clone() {
        if !tables.was_active(&uncertain).await? {
            update.mark_inactive(&uncertain, &mut devices);
        }
    }
    devices.retain(|member, _| update.changed_devices.contains(member));
    Ok((update.rows, devices))
}

/// Looks up which values have their own row in the roll-ups. Returns the decisions about all
/// values, and separately those that are not stored yet.
pub(crate) async fn decide_caps<T: Tables>(
    tables: &T,
    values: BTreeSet<CappedValue>,
) -> Result<(CapDecisions, CapDecisions), T::Failure> {
    let mut values: Vec<CappedValue> = values.into_iter().collect();
    let mut decisions = tables.cap_decisions(&values).await?;
    values.retain(|value| !decisions.0.contains_key(value));
    let quotas: BTreeSet<Quota> = values.iter().map(|value| value.quota).collect();
    let mut used = BTreeMap::new();
    for quota in quotas {
        used.insert(quota, tables.named_value_count(quota).await?);
    }
    let new_decisions = CapDecisions::decide(&values, &used);
    decisions.0.extend(new_decisions.0.clone());
    Ok((decisions, new_decisions))
}
