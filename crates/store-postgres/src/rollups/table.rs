//! Roll-ups, as `recording` reads and writes them.

use super::merge_or_discard;
use crate::Failure;
use crate::devices::AsColumns;
use crate::tx::Tx;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::RollupTable;

impl RollupTable for Tx {
    async fn merge_increments(&self, app: AppId) -> Result<(), Failure> {
        merge_or_discard(self, app).await
    }

    async fn rename_cohort_device(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Failure> {
        let (app, environment, stored) = device.columns();
        self.execute(
            "update cohort_devices set device_id = $4
             where app_id = $1 and environment = $2 and device_id = $3",
            &[&app, &environment, &stored, &key.as_str()],
        )
        .await?;
        Ok(())
    }
}
