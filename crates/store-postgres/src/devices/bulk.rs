//! Locks, reads and writes the devices in a batch, with one statement per table.
//!
//! Locks are taken in key order, so two nodes whose batches share devices cannot deadlock.

use super::state::{DEVICE_COLUMNS, DeviceColumns, IDENTITY_COLUMNS, read_device, read_identity};
use crate::Failure;
use crate::params::{Param, column, placeholders};
use crate::rows::{optional_id, qualified, uuid};
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tributary_domain::device::{Device, DeviceRef, Identity};
use tributary_domain::event::web::PayingDevice;
use tributary_domain::install::{Attribution, ConfigureCommand, ConfigureDecision, DeviceState};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, DeviceRow, IdentityRow};
use uuid::Uuid;

/// Locks devices and reads their state. Each device is passed with the time of its request; a
/// device may occur more than once.
pub(crate) async fn lock_and_read<'a>(
    tx: &Tx,
    senders: impl Iterator<Item = (DeviceRef<'a>, Timestamp)>,
) -> Result<BTreeMap<DeviceRef<'a>, DeviceState>, Failure> {
    let mut sorted = BTreeMap::new();
    for (device, at) in senders {
        sorted.entry(device).or_insert(at.as_millis());
    }
    let (devices, moments): (Vec<DeviceRef<'a>>, Vec<i64>) = sorted.into_iter().unzip();
    let keys = DeviceKeyColumns::of(&devices);
    // Pipelined. The server reads after locking; otherwise the state could be outdated.
    let ((), mut states) = tokio::try_join!(
        biased;
        take_locks(tx, &keys, &moments),
        find_numbered(tx, &keys)
    )?;
    let locked = |(number, device): (i64, DeviceRef<'a>)| {
        let state = states.remove(&number).ok_or(Failure::Conflict)?;
        Ok((device, state))
    };
    (1..).zip(devices).map(locked).collect()
}

/// Locks devices, which must be in key order. Inserts missing identities with this timestamp.
pub(crate) async fn lock_only(
    tx: &Tx,
    devices: &[DeviceRef<'_>],
    at: Timestamp,
) -> Result<(), Failure> {
    take_locks(
        tx,
        &DeviceKeyColumns::of(devices),
        &vec![at.as_millis(); devices.len()],
    )
    .await
}

/// Device keys as SQL columns.
pub(super) struct DeviceKeyColumns<'a> {
    apps: Vec<Uuid>,
    environments: Vec<&'a str>,
    devices: Vec<&'a str>,
}

impl<'a> DeviceKeyColumns<'a> {
    pub(super) fn of(devices: &[DeviceRef<'a>]) -> Self {
        Self {
            apps: column(devices, |device| device.app()),
            environments: column(devices, |device| device.environment.as_str()),
            devices: column(devices, |device| device.device()),
        }
    }

    pub(super) fn params(&self) -> [&dyn Param; 3] {
        [&self.apps, &self.environments, &self.devices]
    }

    /// Groups the keys by app and environment. Each device comes with its position, counted from
    /// one.
    pub(super) fn numbers_by_app(&self) -> BTreeMap<(Uuid, &'a str), BTreeMap<&'a str, i64>> {
        let mut grouped: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        let keys = self.apps.iter().zip(&self.environments).zip(&self.devices);
        for (((app, environment), device), number) in keys.zip(1..) {
            let of_app = grouped.entry((*app, *environment)).or_default();
            of_app.insert(*device, number);
        }
        grouped
    }
}

/// Locks rows in `identities` in key order and inserts missing ones. `on conflict` locks an
/// existing row, and `where false` keeps the statement from writing that row, which would only
/// create work for vacuum.
pub(super) async fn take_locks(
    tx: &Tx,
    keys: &DeviceKeyColumns<'_>,
    made_at: &Vec<i64>,
) -> Result<(), Failure> {
    let empty = IdentityRow::write(&Identity::default());
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
            &empty.user_id,
            &empty.matching,
        ],
    )
    .await?;
    Ok(())
}

/// Reads the state of each device, indexed by the position of its key.
pub(super) async fn find_numbered(
    tx: &Tx,
    keys: &DeviceKeyColumns<'_>,
) -> Result<BTreeMap<i64, DeviceState>, Failure> {
    // Pipelined: two statements, one round trip.
    let (people, devices) = tokio::try_join!(
        biased;
        rows_of(tx, "identities", IDENTITY_COLUMNS, keys),
        rows_of(tx, "devices", DEVICE_COLUMNS, keys)
    )?;
    let mut states = BTreeMap::new();
    for row in people {
        states.insert(row.try_get("number")?, read_identity(&row)?);
    }
    for row in devices {
        let number = row.try_get("number")?;
        let identity = states.remove(&number).unwrap_or_default();
        states.insert(number, read_device(&row, identity)?);
    }
    Ok(states)
}

/// Reads the state of devices, in order, without locking them.
pub(crate) async fn find(tx: &Tx, devices: &[DeviceRef<'_>]) -> Result<Vec<DeviceState>, Failure> {
    if devices.is_empty() {
        return Ok(Vec::new());
    }
    let mut states = find_numbered(tx, &DeviceKeyColumns::of(devices)).await?;
    let numbers = (1..).take(devices.len());
    Ok(numbers
        .map(|number| states.remove(&number).unwrap_or_default())
        .collect())
}

/// Finds the first payments of those devices that have paid, without locking.
pub(crate) async fn find_first_payments<'a>(
    tx: &Tx,
    devices: impl Iterator<Item = DeviceRef<'a>>,
) -> Result<BTreeMap<DeviceRef<'a>, EventId>, Failure> {
    let devices: BTreeSet<DeviceRef<'a>> = devices.collect();
    let devices: Vec<DeviceRef<'a>> = devices.into_iter().collect();
    let rows = rows_of(
        tx,
        "identities",
        "first_payment_id",
        &DeviceKeyColumns::of(&devices),
    )
    .await?;
    let mut paid = BTreeMap::new();
    for row in rows {
        let index = usize::try_from(row.try_get::<_, i64>("number")? - 1).unwrap_or(usize::MAX);
        if let (Some(device), Some(event)) = (devices.get(index), optional_id(&row, 0)?) {
            paid.insert(*device, EventId::from_bytes(event));
        }
    }
    Ok(paid)
}

/// Locks the paying devices and claims their first payments. The next decision about a device then
/// sees all of its payments, or waits for this transaction. A claim succeeds only if the device has
/// no first payment. Otherwise another node was first, and this function reports a conflict.
pub(crate) async fn claim_first_payments(
    tx: &Tx,
    paying: &BTreeMap<DeviceRef<'_>, PayingDevice>,
) -> Result<(), Failure> {
    if paying.is_empty() {
        return Ok(());
    }
    let empty = IdentityRow::write(&Identity::default());
    let paying: Vec<_> = paying.iter().collect();
    let keys = DeviceKeyColumns::of(&column(&paying, |(device, _)| **device));
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
                &empty.user_id,
                &empty.matching,
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

/// Checks that the first payments that were read before the devices were locked are still the same.
/// Reports a conflict if another node changed one.
pub(crate) async fn check_first_payments(
    tx: &Tx,
    paying: &BTreeMap<DeviceRef<'_>, PayingDevice>,
) -> Result<(), Failure> {
    let payers = paying
        .iter()
        .filter(|(_, payer)| payer.stored_first_payment.is_some());
    let payers: Vec<_> = payers.collect();
    if payers.is_empty() {
        return Ok(());
    }
    let keys = DeviceKeyColumns::of(&column(&payers, |(device, _)| **device));
    let rows = rows_of(tx, "identities", "first_payment_id", &keys).await?;
    let mut same = 0;
    for row in &rows {
        let index = usize::try_from(row.try_get::<_, i64>("number")? - 1).unwrap_or(usize::MAX);
        let now = optional_id(row, 0)?.map(EventId::from_bytes);
        let before = payers
            .get(index)
            .map(|(_, payer)| payer.stored_first_payment);
        same += usize::from(before == Some(now));
    }
    if same == payers.len() {
        Ok(())
    } else {
        Err(Failure::Conflict)
    }
}

/// Finds rows by key. Each row comes with the position of its key, counted from one.
pub(super) async fn rows_of(
    tx: &Tx,
    table: &str,
    columns: &str,
    keys: &DeviceKeyColumns<'_>,
) -> Result<Vec<Row>, Failure> {
    // One index lookup per device. Grouping by the key keeps the subquery separate. It would become
    // a join otherwise, and a plan made when the table was small would scan the whole table. A
    // `limit` would have the same effect, but a distributed database rejects it here.
    let sql = format!(
        "select {}, wanted.number
         from unnest($1, $2, $3) with ordinality
              as wanted (app_id, environment, device_id, number)
         cross join lateral
              (select * from {table}
               where app_id = wanted.app_id and environment = wanted.environment
                 and device_id = wanted.device_id
                 /* distributed: and app_id = any($1) */
               group by app_id, environment, device_id) as stored",
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

/// A device to insert.
pub(crate) struct NewDevice<'a> {
    pub(crate) of: DeviceRef<'a>,
    pub(crate) device: &'a Device,
    pub(crate) attribution: &'a Attribution,
    pub(crate) address_hash: Option<Digest>,
}

impl<'a> NewDevice<'a> {
    /// Returns the device of a first `configure` call.
    pub(crate) const fn of_call(
        (command, decision): &(&'a ConfigureCommand, &'a ConfigureDecision),
    ) -> Self {
        Self {
            of: command.device_ref(),
            device: &decision.device,
            attribution: &decision.attribution,
            address_hash: command.address_hash,
        }
    }
}

/// Inserts devices. Reports a conflict if one exists: the lock already excludes other transactions,
/// and the constraint guards against bugs.
pub(crate) async fn insert_devices(tx: &Tx, new: &[NewDevice<'_>]) -> Result<(), Failure> {
    if new.is_empty() {
        return Ok(());
    }
    let rows = column(new, |new| DeviceRow::write(new.device, new.attribution));
    let seen = column(&rows, |row| row.last_seen_at);
    let sql = format!(
        "insert into devices (app_id, environment, {DEVICE_COLUMNS}, address_hash, active_at)
         select * from unnest({})
         on conflict (app_id, environment, device_id) do nothing returning device_id",
        placeholders(DeviceRow::COUNT + 4)
    );
    let inserted = tx
        .query(
            &sql,
            &[
                &column(new, |new| new.of.app()),
                &column(new, |new| new.of.environment.as_str()),
                &column(&rows, |row| row.device_id.as_str()),
                &column(&rows, |row| row.platform.as_str()),
                &column(&rows, |row| row.traits.as_str()),
                &column(&rows, |row| row.advertising_id.as_deref()),
                &column(&rows, |row| row.idfv.as_deref()),
                &column(&rows, |row| row.consent.as_str()),
                &column(&rows, |row| row.country.as_deref()),
                &column(&rows, |row| row.first_seen_at),
                &seen,
                &column(&rows, |row| uuid(&row.attribution_id)),
                &column(&rows, |row| row.attribution_revision),
                &column(&rows, |row| row.decided_at),
                &column(&rows, |row| row.network.as_str()),
                &column(&rows, |row| row.link_id.as_ref().map(uuid)),
                &column(&rows, |row| row.decision.as_str()),
                &column(&rows, |row| row.hold.as_deref()),
                &column(&rows, |row| row.hold_details.as_deref()),
                &column(new, |new| {
                    let hash = new.address_hash.as_ref();
                    hash.map(|hash| hash.as_bytes().as_slice())
                }),
                &seen,
            ],
        )
        .await?;
    if inserted.len() == new.len() {
        Ok(())
    } else {
        Err(Failure::Conflict)
    }
}

/// Writes devices and their attributions.
pub(crate) async fn update_devices(
    tx: &Tx,
    changed: &[(DeviceRef<'_>, &Device, &Attribution)],
) -> Result<(), Failure> {
    if changed.is_empty() {
        return Ok(());
    }
    let keys = DeviceKeyColumns::of(&column(changed, |(of, ..)| *of));
    let rows = column(changed, |(_, now, attribution)| {
        DeviceRow::write(now, attribution)
    });
    let [apps, environments, devices] = keys.params();
    tx.execute(
        "update devices set traits = new.traits, advertising_id = new.advertising_id,
                            idfv = new.idfv, consent = new.consent, country = new.country,
                            last_seen_at = new.last_seen_at, active_at = new.last_seen_at,
                            attribution_revision = new.attribution_revision,
                            decided_at = new.decided_at, network = new.network,
                            link_id = new.link_id, decision = new.decision, hold = new.hold,
                            hold_details = new.hold_details
         from unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
              as new (app_id, environment, device_id, traits, advertising_id, idfv, consent,
                      country, last_seen_at, attribution_revision, decided_at, network, link_id,
                      decision, hold, hold_details)
         where devices.app_id = new.app_id and devices.environment = new.environment
           and devices.device_id = new.device_id
           /* distributed: and devices.app_id = any($1) */",
        &[
            apps,
            environments,
            devices,
            &column(&rows, |row| row.traits.as_str()),
            &column(&rows, |row| row.advertising_id.as_deref()),
            &column(&rows, |row| row.idfv.as_deref()),
            &column(&rows, |row| row.consent.as_str()),
            &column(&rows, |row| row.country.as_deref()),
            &column(&rows, |row| row.last_seen_at),
            &column(&rows, |row| row.attribution_revision),
            &column(&rows, |row| row.decided_at),
            &column(&rows, |row| row.network.as_str()),
            &column(&rows, |row| row.link_id.as_ref().map(uuid)),
            &column(&rows, |row| row.decision.as_str()),
            &column(&rows, |row| row.hold.as_deref()),
            &column(&rows, |row| row.hold_details.as_deref()),
        ],
    )
    .await?;
    Ok(())
}

/// Writes identities, with the times of the changes.
pub(crate) async fn write_identities(
    tx: &Tx,
    changed: &[(DeviceRef<'_>, &Identity, Timestamp)],
) -> Result<(), Failure> {
    if changed.is_empty() {
        return Ok(());
    }
    let keys = DeviceKeyColumns::of(&column(changed, |(of, ..)| *of));
    let rows = column(changed, |(_, identity, _)| IdentityRow::write(identity));
    let [apps, environments, devices] = keys.params();
    tx.execute(
        "update identities set user_id = new.user_id, matching = new.matching,
                               updated_at = new.updated_at, active_at = new.updated_at
         from unnest($1, $2, $3, $4, $5, $6)
              as new (app_id, environment, device_id, user_id, matching, updated_at)
         where identities.app_id = new.app_id and identities.environment = new.environment
           and identities.device_id = new.device_id
           /* distributed: and identities.app_id = any($1) */",
        &[
            apps,
            environments,
            devices,
            &column(&rows, |row| row.user_id.as_deref()),
            &column(&rows, |row| row.matching.as_str()),
            &column(changed, |(.., at)| at.as_millis()),
        ],
    )
    .await?;
    Ok(())
}

/// Writes the time of each device's last request.
pub(crate) async fn note_last_seen(
    tx: &Tx,
    seen: &BTreeMap<DeviceRef<'_>, Timestamp>,
) -> Result<(), Failure> {
    let seen = seen.iter().map(|(device, at)| (*device, at.as_millis()));
    write(tx, "devices", "last_seen_at", seen).await
}

/// Writes one column for several devices.
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
           and stored.device_id = new.device_id
           /* distributed: and stored.app_id = any($1) */"
    );
    let keys = DeviceKeyColumns::of(&devices);
    let [apps, environments, keys] = keys.params();
    tx.execute(&sql, &[apps, environments, keys, &values])
        .await?;
    Ok(())
}
