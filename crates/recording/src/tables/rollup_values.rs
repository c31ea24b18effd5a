//! The distinct values of each day, and the values known to an app's settings.

use super::EngineTransaction;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::report::cardinality_cap::{CapDecisions, CappedValue, KnownValue, Quota};
use tributary_store::RollupDay;

/// Numbers of values within a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ValueCounts {
    /// Values with their own rows.
    pub own: usize,
    /// Values that count under `(other)`.
    pub other: usize,
}

/// Distinct and known values.
pub trait RollupValueTable: EngineTransaction {
    /// Returns the stored decisions about values.
    async fn cap_decisions(&self, values: &[CappedValue]) -> Result<CapDecisions, Self::Failure>;

    /// Counts the values within each quota. Quotas without values may be missing.
    async fn value_counts(
        &self,
        quotas: &BTreeSet<Quota>,
    ) -> Result<BTreeMap<Quota, ValueCounts>, Self::Failure>;

    /// Writes decisions, replacing stored ones.
    async fn write_cap_decisions(&self, decisions: &CapDecisions) -> Result<(), Self::Failure>;

    /// Removes all decisions for a day.
    async fn remove_cap_decisions(&self, day: RollupDay) -> Result<(), Self::Failure>;

    /// Returns those of the values that are known.
    async fn known_values(
        &self,
        values: &BTreeSet<KnownValue>,
    ) -> Result<BTreeSet<KnownValue>, Self::Failure>;

    /// Stores known values.
    async fn insert_known_values(&self, values: &BTreeSet<KnownValue>)
    -> Result<(), Self::Failure>;

    /// Returns the days on which one of the values has details.
    async fn days_with_details(
        &self,
        values: &BTreeSet<KnownValue>,
    ) -> Result<BTreeSet<RollupDay>, Self::Failure>;
}
