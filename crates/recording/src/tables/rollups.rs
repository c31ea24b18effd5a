//! Roll-ups, and increments that are not merged into them yet.

use super::EngineTransaction;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::report::cardinality_cap::{CapDecisions, CappedValue, Quota};
use tributary_domain::report::cohort::{CohortDevice, CohortMember, UncertainAge};
use tributary_domain::report::{Increments, Rollup, RollupRows};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{CohortDeviceRow, CohortRollupRow, CohortTable, RollupRow};

/// Roll-ups, cohorts and increments.
pub trait RollupTable: EngineTransaction {
    /// Returns an app's increments that are not merged yet.
    async fn increments(&self, app: AppId) -> Result<Increments, Self::Failure>;

    /// Merges all increments of an app into its roll-ups, and drops unreadable ones.
    async fn merge_increments(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Locks the roll-ups, so that no other transaction changes them or merges increments.
    async fn lock_rollups(&self) -> Result<(), Self::Failure>;

    /// Returns the rows of a roll-up whose buckets start within a span.
    async fn rollup_rows(
        &self,
        table: Rollup,
        scope: (AppId, Environment),
        span: (Timestamp, Timestamp),
    ) -> Result<Vec<RollupRow>, Self::Failure>;

    /// Returns the rows of a cohort table whose buckets start within a span.
    async fn cohort_rows(
        &self,
        table: CohortTable,
        scope: (AppId, Environment),
        span: (Timestamp, Timestamp),
    ) -> Result<Vec<CohortRollupRow>, Self::Failure>;

    /// Adds rows to the roll-ups.
    async fn add_rollups(&self, rows: &RollupRows) -> Result<(), Self::Failure>;

    /// Returns the days that have figures.
    async fn rolled_up_days(&self, scope: (AppId, Environment)) -> Result<Vec<Day>, Self::Failure>;

    /// Returns the stored decisions about which values have their own row.
    async fn cap_decisions(&self, values: &[CappedValue]) -> Result<CapDecisions, Self::Failure>;

    /// Counts the values that have their own row within a quota.
    async fn named_value_count(&self, quota: Quota) -> Result<usize, Self::Failure>;

    /// Stores decisions about new values.
    async fn insert_cap_decisions(&self, decisions: &CapDecisions) -> Result<(), Self::Failure>;

    /// Returns the stored cohort devices.
    async fn cohort_devices(
        &self,
        members: &BTreeSet<&CohortMember>,
    ) -> Result<Vec<(CohortMember, CohortDeviceRow)>, Self::Failure>;

    /// Returns whether a device has an event that counts as activity on the given day. The events
    /// of this transaction are included, because events are written before they are counted.
    async fn was_active(&self, uncertain: &UncertainAge) -> Result<bool, Self::Failure>;

    /// Writes cohort devices.
    async fn write_cohort_devices(
        &self,
        devices: &BTreeMap<CohortMember, CohortDevice>,
    ) -> Result<(), Self::Failure>;

    /// Changes the key of a cohort device.
    async fn rename_cohort_device(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Self::Failure>;
}
