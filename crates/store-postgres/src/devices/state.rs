//! The stored state of a device: its row, attribution, identity and first payment.
//!
//! A device is locked by its row in `identities`, because that row can exist before the device
//! does. The first `configure` credits the events that the device sent earlier. Events and
//! `configure` take the same lock, so no event is missed in between.

use super::bulk::{self, NewDevice};
use crate::Failure;
use crate::rows::{id, optional_id, read_row, uuid};
use crate::tx::Tx;
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::device::{Device, DeviceKey, DeviceRef, Identity};
use tributary_domain::install::{Attribution, ConfigureCommand, ConfigureDecision, DeviceState};
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::DeviceTable;
use tributary_store::records::{Columns, DeviceRow, IdentityRow};
use uuid::Uuid;

/// The key of a device as SQL values.
pub(crate) trait DeviceColumns<'a> {
    /// App, environment and device id.
    fn columns(self) -> (Uuid, &'static str, &'a str);

    /// App id.
    fn app(self) -> Uuid;

    /// Device id.
    fn device(self) -> &'a str;
}

impl<'a> DeviceColumns<'a> for DeviceRef<'a> {
    fn columns(self) -> (Uuid, &'static str, &'a str) {
        (self.app(), self.environment.as_str(), self.device())
    }

    fn app(self) -> Uuid {
        uuid(self.app.as_bytes())
    }

    fn device(self) -> &'a str {
        self.key.as_str()
    }
}

/// The columns of `devices`.
pub(super) const DEVICE_COLUMNS: &str = DeviceRow::COLUMNS;

/// The columns that [`read_identity`] reads.
pub(super) const IDENTITY_COLUMNS: &str = "user_id, matching, first_payment_id";

/// Reads the state of a device.
pub(crate) async fn find_state(tx: &Tx, device: DeviceRef<'_>) -> Result<DeviceState, Failure> {
    let identity = find_identity(tx, device, "").await?.unwrap_or_default();
    with_device(tx, device, identity).await
}

async fn with_device(
    tx: &Tx,
    device: DeviceRef<'_>,
    identity: DeviceState,
) -> Result<DeviceState, Failure> {
    let sql = format!(
        "select {DEVICE_COLUMNS} from devices
         where app_id = $1 and environment = $2 and device_id = $3"
    );
    let (app, environment, device) = device.columns();
    match tx.query_opt(&sql, &[&app, &environment, &device]).await? {
        Some(row) => read_device(&row, identity),
        None => Ok(identity),
    }
}

/// Reads [`DEVICE_COLUMNS`] and adds them to the identity.
pub(super) fn read_device(row: &Row, identity: DeviceState) -> Result<DeviceState, Failure> {
    let (device, attribution) = read_row::<DeviceRow>(row)?.read()?;
    Ok(DeviceState {
        device: Some(device),
        attribution: Some(attribution),
        ..identity
    })
}

/// Reads a device's identity, without the device row.
async fn find_identity(
    tx: &Tx,
    device: DeviceRef<'_>,
    lock: &str,
) -> Result<Option<DeviceState>, Failure> {
    let (app, environment, device) = device.columns();
    let sql = format!(
        "select {IDENTITY_COLUMNS} from identities
         where app_id = $1 and environment = $2 and device_id = $3 {lock}"
    );
    let row = tx.query_opt(&sql, &[&app, &environment, &device]).await?;
    row.as_ref().map(read_identity).transpose()
}

/// Reads [`IDENTITY_COLUMNS`].
pub(super) fn read_identity(row: &Row) -> Result<DeviceState, Failure> {
    let identity = IdentityRow {
        user_id: row.try_get("user_id")?,
        matching: row.try_get("matching")?,
    };
    Ok(DeviceState {
        identity: identity.read()?,
        first_payment: optional_id(row, "first_payment_id")?.map(EventId::from_bytes),
        ..DeviceState::default()
    })
}

/// Locks a device by its row in `identities` and inserts the row if it is missing. Returns the
/// identity.
async fn lock_identity(
    tx: &Tx,
    device: DeviceRef<'_>,
    at: Timestamp,
) -> Result<DeviceState, Failure> {
    const LOCK: &str = "for update";
    if let Some(identity) = find_identity(tx, device, LOCK).await? {
        return Ok(identity);
    }
    let empty = IdentityRow::write(&Identity::default());
    let (app, environment, key) = device.columns();
    let inserted = tx
        .query_opt(
            "insert into identities (app_id, environment, device_id, user_id, matching, updated_at)
             values ($1, $2, $3, $4, $5, $6)
             on conflict (app_id, environment, device_id) do nothing returning device_id",
            &[
                &app,
                &environment,
                &key,
                &empty.user_id,
                &empty.matching,
                &at.as_millis(),
            ],
        )
        .await?;
    if inserted.is_some() {
        return Ok(DeviceState::default());
    }
    // Another transaction inserted the row and committed.
    find_identity(tx, device, LOCK)
        .await?
        .ok_or(Failure::Conflict)
}

impl DeviceTable for Tx {
    async fn lock_devices(
        &self,
        devices: &BTreeSet<DeviceRef<'_>>,
        at: Timestamp,
    ) -> Result<(), Failure> {
        if devices.is_empty() {
            return Ok(());
        }
        bulk::lock_only(self, &devices.iter().copied().collect::<Vec<_>>(), at).await
    }

    async fn lock_device(
        &self,
        device: DeviceRef<'_>,
        at: Timestamp,
    ) -> Result<DeviceState, Failure> {
        let identity = lock_identity(self, device, at).await?;
        with_device(self, device, identity).await
    }

    async fn insert_device(
        &self,
        command: &ConfigureCommand,
        decision: &ConfigureDecision,
    ) -> Result<(), Failure> {
        let new = NewDevice::of_call(&(command, decision));
        bulk::insert_devices(self, &[new]).await
    }

    async fn update_device(
        &self,
        device: DeviceRef<'_>,
        now: &Device,
        attribution: &Attribution,
    ) -> Result<(), Failure> {
        bulk::update_devices(self, &[(device, now, attribution)]).await
    }

    async fn write_identity(
        &self,
        device: DeviceRef<'_>,
        identity: &Identity,
        at: Timestamp,
    ) -> Result<(), Failure> {
        bulk::write_identities(self, &[(device, identity, at)]).await
    }

    async fn inactive_devices(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> Result<BTreeSet<(AppId, Environment, DeviceKey)>, Failure> {
        let mut found = BTreeSet::new();
        for table in ["devices", "identities"] {
            let sql = format!(
                "select app_id, environment, device_id from {table}
                 where active_at < $1 order by active_at limit $2"
            );
            let rows = self
                .query(&sql, &[&before.as_millis(), &i64::from(limit)])
                .await?;
            for row in &rows {
                let (app, device) = (AppId::from_bytes(id(row, 0)?), row.try_get(2)?);
                // Only `live` and `test` are ever stored.
                if let Some(environment) = Environment::parse(row.try_get(1)?) {
                    found.insert((app, environment, DeviceKey::stored(device)));
                }
            }
        }
        Ok(found)
    }

    async fn write_active_at(
        &self,
        device: DeviceRef<'_>,
        active_at: Timestamp,
    ) -> Result<(), Failure> {
        let (app, environment, key) = device.columns();
        for table in ["devices", "identities"] {
            let sql = format!(
                "update {table} set active_at = $4
                 where app_id = $1 and environment = $2 and device_id = $3 and active_at < $4"
            );
            self.execute(&sql, &[&app, &environment, &key, &active_at.as_millis()])
                .await?;
        }
        Ok(())
    }

    async fn write_remaining_device(
        &self,
        of: DeviceRef<'_>,
        device: &Device,
        attribution: &Attribution,
    ) -> Result<(), Failure> {
        let row = DeviceRow::write(device, attribution);
        let (app, environment, key) = of.columns();
        self.execute(
            "update devices set device_id = $4, traits = $5, advertising_id = $6, idfv = $7,
                                consent = $8, decision = $9, address_hash = null, active_at = null
             where app_id = $1 and environment = $2 and device_id = $3",
            &[
                &app,
                &environment,
                &key,
                &row.device_id,
                &row.traits,
                &row.advertising_id,
                &row.idfv,
                &row.consent,
                &row.decision,
            ],
        )
        .await?;
        Ok(())
    }

    async fn forget_identity(&self, device: DeviceRef<'_>, key: &DeviceKey) -> Result<(), Failure> {
        let empty = IdentityRow::write(&Identity::default());
        let (app, environment, stored) = device.columns();
        self.execute(
            "update identities set device_id = $4, user_id = $5, matching = $6, active_at = null
             where app_id = $1 and environment = $2 and device_id = $3",
            &[
                &app,
                &environment,
                &stored,
                &key.as_str(),
                &empty.user_id,
                &empty.matching,
            ],
        )
        .await?;
        Ok(())
    }
}
