//! Roll-ups, as `recording` reads and writes them.

use super::merge_all;
use crate::Failure;
use crate::tables::Tables;
use rusqlite::params;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::RollupTable;

impl RollupTable for Tables<'_> {
    async fn merge_increments(&self, app: AppId) -> Result<(), Failure> {
        merge_all(self.0)?.discard(self.0, app)
    }

    async fn rename_cohort_device(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "update cohort_devices set device_id = ?4
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .execute(params![
                device.app.as_bytes(),
                device.environment.as_str(),
                device.key.as_str(),
                key.as_str()
            ])?;
        Ok(())
    }
}
