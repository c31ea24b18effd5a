//! Locks the devices in a batch, except those that other transactions have locked.

use super::bulk::{Keys, find_numbered, rows_of, take_locks};
use crate::Failure;
use crate::rows::uuid;
use crate::tx::Tx;
use futures_util::future::try_join_all;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::device::DeviceRef;
use tributary_domain::install::DeviceState;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Locks those devices that no other transaction has locked, and returns their states. Each device
/// is passed with the time of its request. Missing identities are inserted. If another transaction
/// is inserting the same device, this still waits for that transaction.
pub(crate) async fn try_lock_and_read<'a>(
    tx: &Tx,
    senders: impl Iterator<Item = (DeviceRef<'a>, Timestamp)>,
) -> Result<BTreeMap<DeviceRef<'a>, DeviceState>, Failure> {
    let mut missing: BTreeMap<DeviceRef<'a>, Timestamp> = senders.collect();
    let devices: Vec<DeviceRef<'a>> = missing.keys().copied().collect();
    let keys = Keys::of(&devices);
    let mut existing = Vec::new();
    for row in rows_of(tx, "identities", "device_id", &keys).await? {
        let device = device_at(&devices, row.try_get("number")?)?;
        missing.remove(&device);
        existing.push(device);
    }
    // Pipelined in this order, which the server keeps. Only inserting can wait, so it comes first:
    // a transaction that it waits for may itself wait for a device that is locked afterwards.
    let ((), mut locked) = tokio::try_join!(
        biased;
        insert(tx, &missing),
        lock_existing(tx, &existing)
    )?;
    locked.extend(missing.into_keys());
    // Reads after locking; otherwise the states could be outdated.
    let mut of_locked = BTreeMap::new();
    for (number, state) in find_numbered(tx, &keys).await? {
        let device = device_at(&devices, number)?;
        if locked.contains(&device) {
            of_locked.insert(device, state);
        }
    }
    Ok(of_locked)
}

/// Returns the device whose key has this position, counted from one.
fn device_at<'a>(devices: &[DeviceRef<'a>], number: i64) -> Result<DeviceRef<'a>, Failure> {
    let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
    devices.get(index).copied().ok_or(Failure::Conflict)
}

async fn insert(tx: &Tx, missing: &BTreeMap<DeviceRef<'_>, Timestamp>) -> Result<(), Failure> {
    if missing.is_empty() {
        return Ok(());
    }
    let devices: Vec<DeviceRef<'_>> = missing.keys().copied().collect();
    let moments = missing.values().map(|at| at.as_millis()).collect();
    take_locks(tx, &Keys::of(&devices), &moments).await
}

/// Devices of an app and environment, by id.
type Group<'a> = BTreeMap<&'a str, DeviceRef<'a>>;

/// Locks stored devices and returns those that it could lock. There is one statement per app and
/// environment, so that no lock spans shards.
async fn lock_existing<'a>(
    tx: &Tx,
    devices: &[DeviceRef<'a>],
) -> Result<BTreeSet<DeviceRef<'a>>, Failure> {
    let mut groups: BTreeMap<(AppId, Environment), Group<'a>> = BTreeMap::new();
    for device in devices {
        let group = groups.entry((device.app, device.environment)).or_default();
        group.insert(device.key.as_str(), *device);
    }
    let lock = |((app, environment), group): ((AppId, Environment), Group<'a>)| async move {
        let wanted: Vec<&str> = group.keys().copied().collect();
        let sql = "select device_id from identities
                   where app_id = $1 and environment = $2 and device_id = any($3)
                   for update skip locked";
        let app = uuid(app.as_bytes());
        let rows = tx.query(sql, &[&app, &environment.as_str(), &wanted]).await?;
        let mut locked = Vec::new();
        for row in &rows {
            let device = group.get(row.try_get::<_, &str>(0)?);
            locked.extend(device.copied());
        }
        Ok::<_, Failure>(locked)
    };
    // Pipelined: these locks are independent.
    let locked = try_join_all(groups.into_iter().map(lock)).await?;
    Ok(locked.into_iter().flatten().collect())
}
