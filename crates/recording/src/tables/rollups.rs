//! Roll-ups, and the increments that are not merged into them yet.

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
use tributary_store::records::{CohortRollupRow, CohortTable, EnrolledRow, RollupRow};

/// Roll-ups, cohorts and increments.
pub trait RollupTable: EngineTransaction {
    /// The increments of an app that are not merged yet.
    async fn increments(&self, app: AppId) -> Result<Increments, Self::Failure>;

    /// Merges all increments of an app into its roll-ups, and drops those that cannot be read.
    async fn merge_increments(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Lets no other transaction merge increments or change roll-ups until this one ends.
    async fn lock_rollups(&self) -> Result<(), Self::Failure>;

    /// The rows of a roll-up that begin within a span.
    async fn rollup_rows(
        &self,
        table: Rollup,
        of: (AppId, Environment),
        span: (Timestamp, Timestamp),
    ) -> Result<Vec<RollupRow>, Self::Failure>;

    /// The rows of cohorts that begin within a span.
    async fn cohort_rows(
        &self,
        table: CohortTable,
        of: (AppId, Environment),
        span: (Timestamp, Timestamp),
    ) -> Result<Vec<CohortRollupRow>, Self::Failure>;

    /// Adds rows to the roll-ups.
    async fn add_rollups(&self, rows: &RollupRows) -> Result<(), Self::Failure>;

    /// The days that have figures.
    async fn rolled_up_days(&self, of: (AppId, Environment)) -> Result<Vec<Day>, Self::Failure>;

    /// What was decided about values.
    async fn cap_decisions(&self, values: &[CappedValue]) -> Result<CapDecisions, Self::Failure>;

    /// How many values of a quota count under their own name.
    async fn named_value_count(&self, quota: Quota) -> Result<usize, Self::Failure>;

    /// Stores what is decided about new values.
    async fn insert_cap_decisions(&self, decided: &CapDecisions) -> Result<(), Self::Failure>;

    /// The devices that are members of a cohort.
    async fn cohort_devices(
        &self,
        members: &BTreeSet<&CohortMember>,
    ) -> Result<Vec<(CohortMember, EnrolledRow)>, Self::Failure>;

    /// Whether a device has an event that counts on the day of a doubt. Events are written before they are counted.
    async fn was_active(&self, doubt: &UncertainAge) -> Result<bool, Self::Failure>;

    /// Writes devices of cohorts.
    async fn write_cohort_devices(
        &self,
        enrolled: &BTreeMap<CohortMember, CohortDevice>,
    ) -> Result<(), Self::Failure>;

    /// Gives a device of a cohort another key.
    async fn rename_cohort_device(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Self::Failure>;
}
