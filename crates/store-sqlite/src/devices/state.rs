//! The stored state of a device: its row, attribution, identity and first payment.

use crate::Failure;
use crate::rows::read_row;
use crate::tables::{SqliteTables, run};
use crate::write_batch::{Statements, WriteBatch};
use rusqlite::{Connection, OptionalExtension, Row, Statement, params};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tributary_domain::access::Environment;
use tributary_domain::device::{Device, DeviceKey, DeviceRef, Identity};
use tributary_domain::event::Event;
use tributary_domain::install::{Attribution, ConfigureCommand, ConfigureDecision, DeviceState};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{DeviceTable, TransactionTally, settle_first_payment};
use tributary_store::records::{Columns, DeviceRow, IdentityRow};

pub(super) const DEVICE_COLUMNS: &str = DeviceRow::COLUMNS;

static DEVICE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "select {DEVICE_COLUMNS} from devices
         where app_id = ?1 and environment = ?2 and device_id = ?3"
    )
});

const IDENTITY: &str = "select user_id, matching, first_payment_id from identities
     where app_id = ?1 and environment = ?2 and device_id = ?3";

/// Reads the state of a device.
pub(crate) fn find_state(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
) -> Result<DeviceState, Failure> {
    find_state_with(
        &mut *connection.prepare_cached(&DEVICE)?,
        &mut *connection.prepare_cached(IDENTITY)?,
        app,
        environment,
        device,
    )
}

/// Like [`find_state`], with the batch's prepared statements.
pub(crate) fn find_state_in(
    batch: &WriteBatch<'_>,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
) -> Result<DeviceState, Failure> {
    let Statements {
        device: by_device,
        identity: by_identity,
        ..
    } = &batch.statements;
    by_device.with(batch.connection, &DEVICE, |find_device| {
        by_identity.with(batch.connection, IDENTITY, |find_identity| {
            find_state_with(find_device, find_identity, app, environment, device)
        })
    })
}

fn find_state_with(
    find_device: &mut Statement<'_>,
    find_identity: &mut Statement<'_>,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
) -> Result<DeviceState, Failure> {
    let key = params![app.as_bytes(), environment.as_str(), device.as_str()];
    let mut state = DeviceState::default();
    if let Some(row) = find_device
        .query_row(key, read_row::<DeviceRow>)
        .optional()?
    {
        let (device, attribution) = row.read()?;
        state.device = Some(device);
        state.attribution = Some(attribution);
    }
    let read = |row: &Row<'_>| {
        let identity = IdentityRow {
            user_id: row.get("user_id")?,
            matching: row.get("matching")?,
        };
        Ok((
            identity,
            row.get::<_, Option<[u8; 16]>>("first_payment_id")?,
        ))
    };
    if let Some((identity, first_payment)) = find_identity.query_row(key, read).optional()? {
        state.identity = identity.read()?;
        state.first_payment = first_payment.map(EventId::from_bytes);
    }
    Ok(state)
}

static INSERT_DEVICE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "insert into devices (app_id, environment, {DEVICE_COLUMNS}, address_hash, active_at)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
                 ?19, ?20, ?11)"
    )
});

/// Inserts a device.
pub(crate) fn insert_device(
    connection: &Connection,
    of: DeviceRef<'_>,
    (device, attribution): (&Device, &Attribution),
    address_hash: Option<&Digest>,
) -> Result<(), Failure> {
    let row = DeviceRow::write(device, attribution);
    connection.prepare_cached(&INSERT_DEVICE)?.execute(params![
        of.app.as_bytes(),
        of.environment.as_str(),
        row.device_id,
        row.platform,
        row.traits,
        row.advertising_id,
        row.idfv,
        row.consent,
        row.country,
        row.first_seen_at,
        row.last_seen_at,
        row.attribution_id,
        row.attribution_revision,
        row.decided_at,
        row.network,
        row.link_id,
        row.decision,
        row.hold,
        row.hold_details,
        address_hash.map(|hash| hash.as_bytes().as_slice())
    ])?;
    Ok(())
}

impl DeviceTable for SqliteTables<'_> {
    async fn lock_devices(&self, _: &BTreeSet<DeviceRef<'_>>, _: Timestamp) -> Result<(), Failure> {
        Ok(())
    }

    async fn lock_device(
        &self,
        device: DeviceRef<'_>,
        _: Timestamp,
    ) -> Result<DeviceState, Failure> {
        find_state(self.0, device.app, device.environment, device.key)
    }

    async fn insert_device(
        &self,
        command: &ConfigureCommand,
        decision: &ConfigureDecision,
    ) -> Result<(), Failure> {
        let address_hash = command.address_hash.as_ref();
        let (device, attribution) = (&decision.device, &decision.attribution);
        insert_device(
            self.0,
            command.device_ref(),
            (device, attribution),
            address_hash,
        )
    }

    async fn update_device(
        &self,
        of: DeviceRef<'_>,
        device: &Device,
        attribution: &Attribution,
    ) -> Result<(), Failure> {
        let row = DeviceRow::write(device, attribution);
        self.0
            .prepare_cached(
                "update devices set traits = ?4, advertising_id = ?5, idfv = ?6, consent = ?7,
                                    country = ?8, last_seen_at = ?9, attribution_revision = ?10,
                                    decided_at = ?11, network = ?12, link_id = ?13, decision = ?14,
                                    active_at = ?9, hold = ?15, hold_details = ?16
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .execute(params![
                of.app.as_bytes(),
                of.environment.as_str(),
                row.device_id,
                row.traits,
                row.advertising_id,
                row.idfv,
                row.consent,
                row.country,
                row.last_seen_at,
                row.attribution_revision,
                row.decided_at,
                row.network,
                row.link_id,
                row.decision,
                row.hold,
                row.hold_details
            ])?;
        Ok(())
    }

    async fn write_identity(
        &self,
        device: DeviceRef<'_>,
        identity: &Identity,
        at: Timestamp,
    ) -> Result<(), Failure> {
        let row = IdentityRow::write(identity);
        self.0
            .prepare_cached(
                "insert into identities (app_id, environment, device_id, user_id, matching,
                                         updated_at, active_at)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?6)
                 on conflict (app_id, environment, device_id) do update
                 set user_id = excluded.user_id, matching = excluded.matching,
                     updated_at = excluded.updated_at, active_at = excluded.active_at",
            )?
            .execute(params![
                device.app.as_bytes(),
                device.environment.as_str(),
                device.key.as_str(),
                row.user_id,
                row.matching,
                at.as_millis()
            ])?;
        Ok(())
    }

    async fn inactive_devices(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> Result<BTreeSet<(AppId, Environment, DeviceKey)>, Failure> {
        let mut find = self.0.prepare_cached(
            "select app_id, environment, device_id from devices where active_at < ?1
             union
             select app_id, environment, device_id from identities where active_at < ?1
             limit ?2",
        )?;
        let mut rows = find.query(params![before.as_millis(), limit])?;
        let mut found = BTreeSet::new();
        while let Some(row) = rows.next()? {
            let (app, device) = (AppId::from_bytes(row.get(0)?), row.get(2)?);
            // Only `live` and `test` are ever stored.
            if let Some(environment) = Environment::parse(&row.get::<_, String>(1)?) {
                found.insert((app, environment, DeviceKey::stored(device)));
            }
        }
        Ok(found)
    }

    async fn write_active_at(
        &self,
        device: DeviceRef<'_>,
        active_at: Timestamp,
    ) -> Result<(), Failure> {
        for table in ["devices", "identities"] {
            let sql = format!(
                "update {table} set active_at = ?4
                 where app_id = ?1 and environment = ?2 and device_id = ?3 and active_at < ?4"
            );
            self.0.prepare_cached(&sql)?.execute(params![
                device.app.as_bytes(),
                device.environment.as_str(),
                device.key.as_str(),
                active_at.as_millis()
            ])?;
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
        self.0
            .prepare_cached(
                "update devices set device_id = ?4, traits = ?5, advertising_id = ?6, idfv = ?7,
                                    consent = ?8, decision = ?9, address_hash = null,
                                    active_at = null
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .execute(params![
                of.app.as_bytes(),
                of.environment.as_str(),
                of.key.as_str(),
                row.device_id,
                row.traits,
                row.advertising_id,
                row.idfv,
                row.consent,
                row.decision
            ])?;
        Ok(())
    }

    async fn forget_identity(&self, device: DeviceRef<'_>, key: &DeviceKey) -> Result<(), Failure> {
        let empty = IdentityRow::write(&Identity::default());
        self.0
            .prepare_cached(
                "update identities set device_id = ?4, user_id = ?5, matching = ?6, active_at = null
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .execute(params![
                device.app.as_bytes(),
                device.environment.as_str(),
                device.key.as_str(),
                key.as_str(),
                empty.user_id,
                empty.matching
            ])?;
        Ok(())
    }
}

/// Writes the time of a device's last request.
pub(crate) fn note_last_seen(
    connection: &Connection,
    device: DeviceRef<'_>,
    seen: Timestamp,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "update devices set last_seen_at = ?4
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .execute(params![
            device.app.as_bytes(),
            device.environment.as_str(),
            device.key.as_str(),
            seen.as_millis()
        ])?;
    Ok(())
}

/// Writes a device's first payment.
pub(crate) fn note_first_payment(connection: &Connection, event: &Event) -> Result<(), Failure> {
    let mut note = connection.prepare_cached(
        "insert into identities (app_id, environment, device_id, user_id, matching,
                                 first_payment_id, updated_at)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         on conflict (app_id, environment, device_id) do update
         set first_payment_id = excluded.first_payment_id",
    )?;
    write_first_payment(&mut note, event)?;
    Ok(())
}

/// Claims a device's first payment. Returns false if the device already has one.
pub(crate) fn claim_first_payment(batch: &WriteBatch<'_>, event: &Event) -> Result<bool, Failure> {
    let sql = "insert into identities (app_id, environment, device_id, user_id, matching,
                                       first_payment_id, updated_at)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
               on conflict (app_id, environment, device_id) do update
               set first_payment_id = excluded.first_payment_id where first_payment_id is null";
    let statement = &batch.statements.first_payment;
    statement.with(batch.connection, sql, |claim| {
        write_first_payment(claim, event)
    })
}

/// Finds a device's first payment.
pub(crate) fn find_first_payment(
    connection: &Connection,
    device: DeviceRef<'_>,
) -> Result<Option<EventId>, Failure> {
    let first: Option<Option<[u8; 16]>> = connection
        .prepare_cached(
            "select first_payment_id from identities
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .query_row(
            params![
                device.app.as_bytes(),
                device.environment.as_str(),
                device.key.as_str()
            ],
            |row| row.get(0),
        )
        .optional()?;
    Ok(first.flatten().map(EventId::from_bytes))
}

/// Settles a device's first payment and adds the change to the batch's increments.
pub(crate) fn settle_first_payment_in(
    batch: &WriteBatch<'_>,
    device: DeviceRef<'_>,
) -> Result<(), Failure> {
    let mut tally = TransactionTally::default();
    run(settle_first_payment(
        &SqliteTables(batch.connection),
        device,
        &mut tally,
    ))?;
    batch.count(|counted| counted.merge(tally.increments));
    Ok(())
}

fn write_first_payment(write: &mut Statement<'_>, event: &Event) -> Result<bool, Failure> {
    let Some(device) = &event.device else {
        return Ok(true);
    };
    let empty = IdentityRow::write(&Identity::default());
    let written = write.execute(params![
        event.app.as_bytes(),
        event.environment.as_str(),
        device.as_str(),
        empty.user_id,
        empty.matching,
        event.id.as_bytes(),
        event.received_at.as_millis()
    ])?;
    Ok(written == 1)
}
