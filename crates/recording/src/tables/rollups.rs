//! Roll-ups, and the increments that are not merged into them yet.

use super::Engine;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::vocabulary::id::AppId;

/// Roll-ups, cohorts and increments.
pub trait RollupTable: Engine {
    /// Merges all increments of an app into its roll-ups, and drops those that cannot be read.
    async fn merge_increments(&self, app: AppId) -> Result<(), Self::Failure>;

    /// Gives a device of a cohort another key.
    async fn rename_cohort_device(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Self::Failure>;
}
