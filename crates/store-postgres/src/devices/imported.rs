//! Reads and writes for imports.

use super::bulk::{DeviceKeyColumns, rows_of};
use crate::Failure;
use crate::rows::optional_id;
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::device::DeviceRef;
use tributary_domain::event::import::ImportDeviceFacts;
use tributary_domain::vocabulary::id::EventId;

/// Finds the installs and first payments of devices. Unknown devices are absent.
pub(crate) async fn find_import_facts<'a>(
    tx: &Tx,
    devices: &BTreeSet<DeviceRef<'a>>,
) -> Result<BTreeMap<DeviceRef<'a>, ImportDeviceFacts>, Failure> {
    let devices: Vec<DeviceRef<'a>> = devices.iter().copied().collect();
    let keys = DeviceKeyColumns::of(&devices);
    let (installed, people) = tokio::try_join!(
        biased;
        rows_of(tx, "devices", "attribution_revision", &keys),
        rows_of(tx, "identities", "first_payment_id", &keys)
    )?;
    let device = |number: i64| {
        let index = usize::try_from(number - 1).ok()?;
        devices.get(index).copied()
    };
    let mut facts: BTreeMap<DeviceRef<'a>, ImportDeviceFacts> = BTreeMap::new();
    for row in &installed {
        if let Some(device) = device(row.try_get("number")?) {
            let revision: i64 = row.try_get(0)?;
            let facts = facts.entry(device).or_default();
            facts.is_registered = true;
            facts.is_installed = revision > 0;
        }
    }
    for row in &people {
        let first = optional_id(row, 0)?.map(EventId::from_bytes);
        if let (Some(device), Some(first)) = (device(row.try_get("number")?), first) {
            facts.entry(device).or_default().first_payment = Some(first);
        }
    }
    Ok(facts)
}

/// Marks registered devices as installed, because their installs are stored now.
pub(crate) async fn mark_installed(
    tx: &Tx,
    devices: &BTreeSet<DeviceRef<'_>>,
) -> Result<(), Failure> {
    if devices.is_empty() {
        return Ok(());
    }
    let devices: Vec<DeviceRef<'_>> = devices.iter().copied().collect();
    tx.execute(
        "update devices set attribution_revision = 1
         from unnest($1, $2, $3) as new (app_id, environment, device_id)
         where devices.app_id = new.app_id and devices.environment = new.environment
           and devices.device_id = new.device_id and devices.attribution_revision = 0
           /* distributed: and devices.app_id = any($1) */",
        &DeviceKeyColumns::of(&devices).params(),
    )
    .await?;
    Ok(())
}
