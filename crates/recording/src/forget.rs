//! Retention: deletes the attribution data of devices that have been inactive for a long time.

use crate::tables::Tables;
use std::collections::BTreeSet;
use tributary_domain::device::DeviceRef;
use tributary_domain::install::DeviceState;
use tributary_domain::retention::{self, DeviceActivity, RetentionVerdict};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::AttributionSweep;

/// Examines at most `limit` devices that were last known to be active before `before`. Locks the
/// devices in key order.
pub async fn forget_attributions<T: Tables>(
    tables: &T,
    before: Timestamp,
    limit: u32,
) -> Result<AttributionSweep, T::Failure> {
    let mut sweep = AttributionSweep::default();
    let inactive = tables.inactive_devices(before, limit).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    for (app, environment, key) in inactive.iter().take(limit) {
        let device = DeviceRef {
            app: *app,
            environment: *environment,
            key,
        };
        let state = tables.lock_device(device, before).await?;
        let (last_event, has_billing) = tables.latest_event(device).await?;
        let activity = DeviceActivity {
            last_seen: state.device.as_ref().map(|device| device.last_seen_at),
            last_event,
            has_billing,
        };
        sweep.examined += 1;
        match retention::decide(activity, before) {
            RetentionVerdict::Keep { active_at } => {
                tables.write_active_at(device, active_at).await?;
            }
            RetentionVerdict::Forget { user_links } => {
                forget(tables, device, state, user_links).await?;
                sweep.forgotten += 1;
            }
        }
    }
    Ok(sweep)
}

async fn forget<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    state: DeviceState,
    unlinks_user: bool,
) -> Result<(), T::Failure> {
    tables.forget_identity(device, device.key).await?;
    tables.remove_device_token(device).await?;
    if unlinks_user {
        tables.unlink_device(device).await?;
    }
    let (Some(stored), Some(attribution)) = (state.device, state.attribution) else {
        return Ok(());
    };
    let click: BTreeSet<_> = attribution.decision.click.into_iter().collect();
    let clicks = tables.lock_clicks(device.app, &click).await?;
    let clicks = retention::redact_clicks(device, clicks);
    tables.write_remaining_clicks(device.app, &clicks).await?;
    let (stored, attribution) = (
        retention::redact_device(stored),
        retention::redact_attribution(attribution),
    );
    tables
        .write_remaining_device(device, &stored, &attribution)
        .await
}
