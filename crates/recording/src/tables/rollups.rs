//! Roll-ups, and increments that are not merged into them yet.

use super::EngineTransaction;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::report::cohort::{CohortDevice, CohortMember, CohortTable, UncertainAge};
use tributary_domain::report::{Increments, Rollup, RollupRows};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{CohortDeviceRow, CohortRollupRow, RollupRow};

/// Rows to read.
#[derive(Debug, Clone, Copy)]
pub enum RollupPart<'a> {
    /// All rows, with details.
    All,
    /// Rows that cover a whole day, with details.
    Days,
    /// Rows by quarter hour of some campaigns or event names, with details.
    Quarters(&'a BTreeSet<String>),
    /// Rows by quarter hour of all values, with details.
    AllQuarters,
}

impl<'a> RollupPart<'a> {
    /// Returns the stored grains, separated by commas.
    pub const fn grains(self) -> &'static str {
        match self {
            Self::All => "-1440, -15, 15, 60, 1440",
            Self::Days => "-1440, 1440",
            Self::Quarters(_) | Self::AllQuarters => "-15, 15",
        }
    }

    /// Returns the campaigns or event names to read; `None` for all.
    pub const fn values(self) -> Option<&'a BTreeSet<String>> {
        match self {
            Self::All | Self::Days | Self::AllQuarters => None,
            Self::Quarters(values) => Some(values),
        }
    }
}

/// Roll-ups, cohorts and increments.
pub trait RollupTable: EngineTransaction {
    /// Returns an app's increments that are not merged yet.
    async fn increments(&self, app: AppId) -> Result<Increments, Self::Failure>;

    /// Stores increments, to be merged later.
    async fn store_increments(&self, increments: &Increments) -> Result<(), Self::Failure>;

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
        part: RollupPart<'_>,
    ) -> Result<Vec<RollupRow>, Self::Failure>;

    /// Returns the rows of a cohort table whose buckets start within a span.
    async fn cohort_rows(
        &self,
        table: CohortTable,
        scope: (AppId, Environment),
        span: (Timestamp, Timestamp),
        part: RollupPart<'_>,
    ) -> Result<Vec<CohortRollupRow>, Self::Failure>;

    /// Adds rows to the roll-ups.
    async fn add_rollups(&self, rows: &RollupRows) -> Result<(), Self::Failure>;

    /// Returns the days that have figures.
    async fn rolled_up_days(&self, scope: (AppId, Environment)) -> Result<Vec<Day>, Self::Failure>;

    /// Returns the stored cohort devices.
    async fn cohort_devices(
        &self,
        members: &BTreeSet<&CohortMember>,
    ) -> Result<Vec<(CohortMember, CohortDeviceRow)>, Self::Failure>;

    /// Returns whether a device has an event that counts as activity on the given day. The events
    /// of this transaction are included, because events are written before they are counted.
    async fn was_active(&self, uncertain: &UncertainAge) -> Result<bool, Self::Failure>;

    /// Returns whether a device has a counted payment that belongs to its install on a day.
    async fn had_payment(&self, uncertain: &UncertainAge) -> Result<bool, Self::Failure>;

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
