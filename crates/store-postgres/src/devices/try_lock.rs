//! Locks the devices in a batch, except those that other transactions have locked.

use super::bulk::{DeviceKeyColumns, find_numbered, rows_of, take_locks};
use crate::Failure;
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tributary_domain::device::DeviceRef;
use tributary_domain::install::DeviceState;
use tributary_domain::vocabulary::time::Timestamp;

/// Locks those devices that no other transaction has locked, and returns their states. Each device
/// is passed with the time of its request. Missing identities are inserted. If another transaction
/// is inserting the same device, this still waits for that transaction.
pub(crate) async fn try_lock_and_read<'a>(
    tx: &Tx,
    senders: impl Iterator<Item = (DeviceRef<'a>, Timestamp)>,
) -> Result<BTreeMap<DeviceRef<'a>, DeviceState>, Failure> {
    let senders: BTreeMap<DeviceRef<'a>, Timestamp> = senders.collect();
    let devices: Vec<DeviceRef<'a>> = senders.keys().copied().collect();
    let keys = DeviceKeyColumns::of(&devices);
    let existing = positions(&rows_of(tx, "identities", "device_id", &keys).await?)?;
    let missing = (1..)
        .zip(senders)
        .filter(|(number, _)| !existing.contains(number));
    let missing: Vec<_> = missing.map(|(_, sender)| sender).collect();
    // Only inserting can wait, so it comes first: a transaction that it waits for may itself wait for
    // a device that is locked afterwards. States that are read before the lock could be outdated.
    let (locked, mut states) = if tx.is_distributed() {
        insert(tx, &missing).await?;
        let locked = lock_unlocked_by_app(tx, &keys).await?;
        (locked, find_numbered(tx, &keys).await?)
    } else {
        // Pipelined in this order, which the server keeps.
        let ((), locked, states) = tokio::try_join!(
            biased;
            insert(tx, &missing),
            lock_unlocked(tx, &keys),
            find_numbered(tx, &keys)
        )?;
        (locked, states)
    };
    let of_locked = (1..)
        .zip(devices)
        .filter(|(number, _)| locked.contains(number));
    let with_state = |(number, device)| Some((device, states.remove(&number)?));
    Ok(of_locked.filter_map(with_state).collect())
}

async fn insert(tx: &Tx, missing: &[(DeviceRef<'_>, Timestamp)]) -> Result<(), Failure> {
    if missing.is_empty() {
        return Ok(());
    }
    let (devices, moments): (Vec<_>, Vec<_>) = missing
        .iter()
        .map(|(device, at)| (*device, at.as_millis()))
        .unzip();
    take_locks(tx, &DeviceKeyColumns::of(&devices), &moments).await
}

/// Locks stored devices and returns the positions of those that it could lock.
async fn lock_unlocked(tx: &Tx, keys: &DeviceKeyColumns<'_>) -> Result<BTreeSet<i64>, Failure> {
    let sql = "select wanted.number
               from unnest($1, $2, $3) with ordinality
                    as wanted (app_id, environment, device_id, number)
               cross join lateral
                    (select from identities
                     where app_id = wanted.app_id and environment = wanted.environment
                       and device_id = wanted.device_id
                     for update skip locked) as locked";
    positions(&tx.query(sql, &keys.params()).await?)
}

/// Does the same with one statement per app, so that no statement takes locks on several shards.
async fn lock_unlocked_by_app(
    tx: &Tx,
    keys: &DeviceKeyColumns<'_>,
) -> Result<BTreeSet<i64>, Failure> {
    let mut locked = BTreeSet::new();
    for ((app, environment), numbers) in keys.numbers_by_app() {
        let devices: Vec<&str> = numbers.keys().copied().collect();
        let rows = tx
            .query(
                "select device_id from identities
                 where app_id = $1 and environment = $2 and device_id = any($3)
                 order by device_id for update skip locked",
                &[&app, &environment, &devices],
            )
            .await?;
        for row in &rows {
            locked.extend(numbers.get(row.try_get::<_, &str>(0)?));
        }
    }
    Ok(locked)
}

/// Reads the positions of keys, counted from one.
fn positions(rows: &[Row]) -> Result<BTreeSet<i64>, Failure> {
    rows.iter().map(|row| Ok(row.try_get("number")?)).collect()
}
