//! The devices of a batch of events: locked, read and written together, one statement a table.
//!
//! Locks are taken in the order of the devices' keys. Two nodes with some of the same devices in their batches
//! then come one after the other, in whichever order the requests reached them.

use super::state::{DEVICE_COLUMNS, DeviceColumns, IDENTITY_COLUMNS, read_device, read_identity};
use crate::Failure;
use crate::params::{Param, column};
use crate::rows::{optional_id, qualified, uuid};
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tributary_domain::device::{DeviceRef, Identity};
use tributary_domain::event::web::Payer;
use tributary_domain::install::DeviceState;
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::IdentityRow;
use uuid::Uuid;

/// Locks devices, each with the moment it sent something, and reads what is known of them. A device may be named several
/// times.
pub(crate) async fn lock_and_read<'a>(
    tx: &Tx,
    senders: impl Iterator<Item = (DeviceRef<'a>, Timestamp)>,
) -> Result<BTreeMap<DeviceRef<'a>, DeviceState>, Failure> {
    let mut sorted = BTreeMap::new();
    for (device, at) in senders {
        sorted.entry(device).or_insert(at.as_millis());
    }
    let (devices, moments): (Vec<DeviceRef<'a>>, Vec<i64>) = sorted.into_iter().unzip();
    let keys = Keys::of(&devices);
    take_locks(tx, &keys, &moments).await?;
    // Read after the locks were got, or it could be older than they are.
    let mut known = find_numbered(tx, &keys).await?;
    let locked = |(number, device): (i64, DeviceRef<'a>)| {
        let known = known.remove(&number).ok_or(Failure::Conflict)?;
        Ok((device, known))
    };
    (1..).zip(devices).map(locked).collect()
}

/// Locks devices that are in the order of their keys. Those that are not stored are stored as of a moment.
pub(crate) async fn lock_only(
    tx: &Tx,
    devices: &[DeviceRef<'_>],
    at: Timestamp,
) -> Result<(), Failure> {
    take_locks(tx, &Keys::of(devices), &vec![at.as_millis(); devices.len()]).await
}

/// The keys of some devices, as columns.
struct Keys<'a> {
    apps: Vec<Uuid>,
    environments: Vec<&'a str>,
    devices: Vec<&'a str>,
}

impl<'a> Keys<'a> {
    fn of(devices: &[DeviceRef<'a>]) -> Self {
        Self {
            apps: column(devices, |device| device.app()),
            environments: column(devices, |device| device.environment.as_str()),
            devices: column(devices, |device| device.device()),
        }
    }

    fn params(&self) -> [&dyn Param; 3] {
        [&self.apps, &self.environments, &self.devices]
    }
}

/// Locks the rows in `identities`, made when absent, in the order of the keys. A row that is there is locked
/// by being in the way; the condition keeps it from being written, which would only make work for vacuum.
async fn take_locks(tx: &Tx, keys: &Keys<'_>, made_at: &Vec<i64>) -> Result<(), Failure> {
    let nobody = IdentityRow::write(&Identity::default());
    let [apps, environments, devices] = keys.params();
    tx.execute(
        "insert into identities as stored
             (app_id, environment, device_id, user_id, matching, updated_at)
         select app_id, environment, device_id, $5, $6, made_at
         from unnest($1, $2, $3, $4) as new (app_id, environment, device_id, made_at)
         on conflict (app_id, environment, device_id)
         do update set updated_at = stored.updated_at where false",
        &[
            apps,
            environments,
            devices,
            made_at,
            &nobody.user_id,
            &nobody.matching,
        ],
    )
    .await?;
    Ok(())
}

/// What is known of each device, by the number of its key.
async fn find_numbered(tx: &Tx, keys: &Keys<'_>) -> Result<BTreeMap<i64, DeviceState>, Failure> {
    // Sent together: two questions, one round trip.
    let (people, devices) = tokio::try_join!(
        rows_of(tx, "identities", IDENTITY_COLUMNS, keys),
        rows_of(tx, "devices", DEVICE_COLUMNS, keys)
    )?;
    let mut known = BTreeMap::new();
    for row in people {
        known.insert(row.try_get("number")?, read_identity(&row)?);
    }
    for row in devices {
        let number = row.try_get("number")?;
        let person = known.remove(&number).unwrap_or_default();
        known.insert(number, read_device(&row, person)?);
    }
    Ok(known)
}

/// What is known of devices as it is now, in their order, without locking them.
pub(crate) async fn find(tx: &Tx, devices: &[DeviceRef<'_>]) -> Result<Vec<DeviceState>, Failure> {
    if devices.is_empty() {
        return Ok(Vec::new());
    }
    let mut known = find_numbered(tx, &Keys::of(devices)).await?;
    let numbers = (1..).take(devices.len());
    Ok(numbers
        .map(|number| known.remove(&number).unwrap_or_default())
        .collect())
}

/// The first payments of those devices that have paid, without locking anything.
pub(crate) async fn find_first_payments<'a>(
    tx: &Tx,
    devices: impl Iterator<Item = DeviceRef<'a>>,
) -> Result<BTreeMap<DeviceRef<'a>, EventId>, Failure> {
    let devices: BTreeSet<DeviceRef<'a>> = devices.collect();
    let devices: Vec<DeviceRef<'a>> = devices.into_iter().collect();
    let rows = rows_of(tx, "identities", "first_payment_id", &Keys::of(&devices)).await?;
    let mut paid = BTreeMap::new();
    for row in rows {
        let place = usize::try_from(row.try_get::<_, i64>("number")? - 1).unwrap_or(usize::MAX);
        if let (Some(device), Some(event)) = (devices.get(place), optional_id(&row, 0)?) {
            paid.insert(*device, EventId::from_bytes(event));
        }
    }
    Ok(paid)
}

/// Locks devices that pay, and writes their first payments. The next decision about a device's first payment then sees
/// all its payments, or is waited for. Claims are for devices that have none still; if one has, another node was first.
pub(crate) async fn claim_first_payments(
    tx: &Tx,
    paying: &BTreeMap<DeviceRef<'_>, Payer>,
) -> Result<(), Failure> {
    if paying.is_empty() {
        return Ok(());
    }
    let nobody = IdentityRow::write(&Identity::default());
    let paying: Vec<_> = paying.iter().collect();
    let keys = Keys::of(&column(&paying, |(device, _)| **device));
    let [apps, environments, devices] = keys.params();
    let written = tx
        .query(
            "insert into identities as stored
                 (app_id, environment, device_id, user_id, matching, first_payment_id, updated_at)
             select app_id, environment, device_id, $6, $7, first_payment_id, made_at
             from unnest($1, $2, $3, $4, $5)
                  as new (app_id, environment, device_id, first_payment_id, made_at)
             on conflict (app_id, environment, device_id)
             do update set first_payment_id = excluded.first_payment_id
             where stored.first_payment_id is null and excluded.first_payment_id is not null
             returning first_payment_id",
            &[
                apps,
                environments,
                devices,
                &column(&paying, |(_, payer)| {
                    payer.new_first_payment.map(|event| uuid(event.as_bytes()))
                }),
                &column(&paying, |(_, payer)| payer.at.as_millis()),
                &nobody.user_id,
                &nobody.matching,
            ],
        )
        .await?;
    let mut claimed = 0;
    for row in &written {
        claimed += usize::from(optional_id(row, 0)?.is_some());
    }
    let claims = paying
        .iter()
        .filter(|(_, payer)| payer.new_first_payment.is_some());
    if claimed == claims.count() {
        Ok(())
    } else {
        Err(Failure::Conflict)
    }
}

/// Reads the first payments of locked devices that had one before. If one has another, another node moved it.
pub(crate) async fn check_first_payments(
    tx: &Tx,
    paying: &BTreeMap<DeviceRef<'_>, Payer>,
) -> Result<(), Failure> {
    let known = paying
        .iter()
        .filter(|(_, payer)| payer.stored_first_payment.is_some());
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        return Ok(());
    }
    let keys = Keys::of(&column(&known, |(device, _)| **device));
    let rows = rows_of(tx, "identities", "first_payment_id", &keys).await?;
    let mut same = 0;
    for row in &rows {
        let place = usize::try_from(row.try_get::<_, i64>("number")? - 1).unwrap_or(usize::MAX);
        let now = optional_id(row, 0)?.map(EventId::from_bytes);
        let before = known
            .get(place)
            .map(|(_, payer)| payer.stored_first_payment);
        same += usize::from(before == Some(now));
    }
    if same == known.len() {
        Ok(())
    } else {
        Err(Failure::Conflict)
    }
}

/// Some columns of the rows with these keys, each with the number of its key, from one.
async fn rows_of(
    tx: &Tx,
    table: &str,
    columns: &str,
    keys: &Keys<'_>,
) -> Result<Vec<Row>, Failure> {
    // One look-up a device, whatever the planner thinks of the table: a plan that was made while it was small, and
    // kept, would walk through all of it.
    let sql = format!(
        "select {}, wanted.number
         from unnest($1, $2, $3) with ordinality
              as wanted (app_id, environment, device_id, number)
         cross join lateral
              (select * from {table}
               where app_id = wanted.app_id and environment = wanted.environment
                 and device_id = wanted.device_id limit 1) as stored",
        qualified("stored", columns)
    );
    tx.query(&sql, &keys.params()).await
}

/// Writes first payments of locked devices.
pub(crate) async fn note_first_payments<'a>(
    tx: &Tx,
    paid: impl Iterator<Item = (DeviceRef<'a>, EventId)>,
) -> Result<(), Failure> {
    let paid = paid.map(|(device, event)| (device, uuid(event.as_bytes())));
    write(tx, "identities", "first_payment_id", paid).await
}

/// Writes when devices called last.
pub(crate) async fn note_last_seen(
    tx: &Tx,
    seen: &BTreeMap<DeviceRef<'_>, Timestamp>,
) -> Result<(), Failure> {
    let seen = seen.iter().map(|(device, at)| (*device, at.as_millis()));
    write(tx, "devices", "last_seen_at", seen).await
}

/// Writes one column of the rows of some devices.
async fn write<'a, T>(
    tx: &Tx,
    table: &str,
    written: &str,
    devices: impl Iterator<Item = (DeviceRef<'a>, T)>,
) -> Result<(), Failure>
where
    Vec<T>: Param,
{
    let (devices, values): (Vec<DeviceRef<'a>>, Vec<T>) = devices.unzip();
    if devices.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "update {table} as stored set {written} = new.{written}
         from unnest($1, $2, $3, $4) as new (app_id, environment, device_id, {written})
         where stored.app_id = new.app_id and stored.environment = new.environment
           and stored.device_id = new.device_id"
    );
    let keys = Keys::of(&devices);
    let [apps, environments, keys] = keys.params();
    tx.execute(&sql, &[apps, environments, keys, &values])
        .await?;
    Ok(())
}
