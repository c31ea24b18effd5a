//! Merging increments into the roll-ups.

use crate::day_values::{self, RankedDay};
use crate::tables::Tables;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::report::cardinality_cap::{CapDecisions, CappedValue, Placement, Quota};
use tributary_domain::report::cohort::{
    CohortDevice, CohortEntry, CohortMember, CohortRows, update_cohorts as decide,
};
use tributary_domain::report::{Increments, RollupMerge, RollupRows};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::RollupDay;

/// Merges increments into the roll-ups.
pub async fn merge<T: Tables>(tables: &T, increments: &Increments) -> Result<(), T::Failure> {
    if increments.is_empty() {
        return Ok(());
    }
    let merge = prepare(tables, increments).await?;
    tables.write_cohort_devices(&merge.devices).await?;
    tables.insert_known_values(&merge.known).await?;
    tables.write_cap_decisions(&merge.cap_decisions).await?;
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
    // All increments are needed, because they decide which campaigns are kept.
    let increments = tables.increments(app).await?;
    Ok(prepare(tables, &increments).await?.rows)
}

/// Computes the merge without writing anything.
async fn prepare<T: Tables>(
    tables: &T,
    increments: &Increments,
) -> Result<RollupMerge, T::Failure> {
    let (cohorts, devices) = update_cohort_devices(tables, &increments.cohorts).await?;
    let mut values = increments.capped_values();
    let counted = values.clone();
    values.extend(cohorts.capped_values());
    let values: Vec<CappedValue> = values.into_iter().collect();
    let stored = tables.cap_decisions(&values).await?;
    let mut merge = RollupMerge {
        devices,
        known: increments.known.clone(),
        ..RollupMerge::default()
    };
    let mut decisions = stored.clone();
    for day in crowded_days(tables, increments, &counted, &stored).await? {
        let RankedDay {
            decisions: decided,
            changed,
            moved,
        } = day_values::rank(tables, day, increments).await?;
        merge.rows.add(&moved, 1);
        merge.cap_decisions.0.extend(changed.0);
        decisions.0.extend(decided.0);
    }
    merge
        .cap_decisions
        .0
        .extend(new_decisions(&values, &stored, &decisions));
    let counted = RollupRows::of(increments, &decisions, &cohorts);
    merge.rows.add(&counted, 1);
    Ok(merge)
}

/// Finds the days with more values than the limits allow, or with values that became known. On all
/// other days, every value has its own rows.
async fn crowded_days<T: Tables>(
    tables: &T,
    increments: &Increments,
    counted: &BTreeSet<CappedValue>,
    stored: &CapDecisions,
) -> Result<BTreeSet<RollupDay>, T::Failure> {
    let mut new: BTreeMap<Quota, usize> = BTreeMap::new();
    for value in counted {
        *new.entry(value.quota).or_default() += usize::from(!stored.0.contains_key(value));
    }
    let counts = tables.value_counts(&new.keys().copied().collect()).await?;
    let mut days = BTreeSet::new();
    if !increments.known.is_empty() {
        days = tables.days_with_details(&increments.known).await?;
    }
    for (quota, new) in new {
        let counts = counts.get(&quota).copied().unwrap_or_default();
        if counts.other > 0 || counts.own + new > quota.kind.daily_limit() {
            days.insert(RollupDay {
                app: quota.app,
                environment: quota.environment,
                day: quota.day,
            });
        }
    }
    Ok(days)
}

/// Returns the decisions that are not stored, or stored differently.
fn new_decisions(
    values: &[CappedValue],
    stored: &CapDecisions,
    decisions: &CapDecisions,
) -> Vec<(CappedValue, Placement)> {
    let placed = values.iter().map(|value| {
        let placement = decisions.placement(Some(value));
        (*value, placement)
    });
    let is_new = |(value, placement): &(CappedValue, Placement)| match stored.0.get(value) {
        Some(stored) => stored.is_other() != placement.is_other(),
        // Storing these would use as much space as their details.
        None => placement.keeps_details(true),
    };
    placed.filter(is_new).collect()
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
    for uncertain in update.uncertain_payments.clone() {
        if !tables.had_payment(&uncertain).await? {
            update.mark_unpaid(&uncertain, &mut devices);
        }
    }
    devices.retain(|member, _| update.changed_devices.contains(member));
    Ok((update.rows, devices))
}
