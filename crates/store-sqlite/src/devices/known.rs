//! What is known of a device, and how it changes.

use crate::batch::{Batch, Statements};
use crate::events::find_events;
use crate::{Failure, planned};
use rusqlite::{Connection, OptionalExtension, Row, Statement, params};
use std::sync::LazyLock;
use tributary_domain::access::Environment;
use tributary_domain::device::{Device, DeviceKey, Identity};
use tributary_domain::event::{CREDITED_TO_ITS_OWN_CLICK, Credit, Event};
use tributary_domain::forwarding::course::ATTRIBUTION_CHANGED;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::{Attribution, Configure, Known, Opening};
use tributary_domain::integration::Integration;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::LAST_SEEN_STEP;
use tributary_store::records::{CreditColumns, DeviceRow, IdentityRow};

const DEVICE_COLUMNS: &str = "device_id, platform, traits, advertising_id, idfv, consent, country, \
     first_seen_at, last_seen_at, attribution_id, attribution_revision, decided_at, network, link_id, \
     decision";

fn device_row(row: &Row<'_>) -> rusqlite::Result<DeviceRow> {
    Ok(DeviceRow {
        device_id: row.get(0)?,
        platform: row.get(1)?,
        traits: row.get(2)?,
        advertising_id: row.get(3)?,
        idfv: row.get(4)?,
        consent: row.get(5)?,
        country: row.get(6)?,
        first_seen_at: row.get(7)?,
        last_seen_at: row.get(8)?,
        attribution_id: row.get(9)?,
        attribution_revision: row.get(10)?,
        decided_at: row.get(11)?,
        network: row.get(12)?,
        link_id: row.get(13)?,
        decision: row.get(14)?,
    })
}

static DEVICE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "select {DEVICE_COLUMNS} from devices
         where app_id = ?1 and environment = ?2 and device_id = ?3"
    )
});

const PERSON: &str = "select user_id, matching, first_payment_id from identities
     where app_id = ?1 and environment = ?2 and device_id = ?3";

/// Everything that is known of a device.
pub(crate) fn find_known(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
) -> Result<Known, Failure> {
    find_known_with(
        &mut *connection.prepare_cached(&DEVICE)?,
        &mut *connection.prepare_cached(PERSON)?,
        app,
        environment,
        device,
    )
}

/// As [`find_known`], with the statements that the batch keeps.
pub(crate) fn find_known_in(
    batch: &Batch<'_>,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
) -> Result<Known, Failure> {
    let Statements {
        device: by_device,
        person: by_person,
        ..
    } = &batch.statements;
    by_device.with(batch.connection, &DEVICE, |find_device| {
        by_person.with(batch.connection, PERSON, |find_person| {
            find_known_with(find_device, find_person, app, environment, device)
        })
    })
}

fn find_known_with(
    find_device: &mut Statement<'_>,
    find_person: &mut Statement<'_>,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
) -> Result<Known, Failure> {
    let key = params![app.as_bytes(), environment.as_str(), device.as_str()];
    let mut known = Known::default();
    if let Some(row) = find_device.query_row(key, device_row).optional()? {
        let (device, attribution) = row.read()?;
        known.device = Some(device);
        known.attribution = Some(attribution);
    }
    let person = |row: &Row<'_>| {
        let identity = IdentityRow {
            user_id: row.get(0)?,
            matching: row.get(1)?,
        };
        Ok((identity, row.get::<_, Option<[u8; 16]>>(2)?))
    };
    if let Some((identity, first_payment)) = find_person.query_row(key, person).optional()? {
        known.identity = identity.read()?;
        known.first_payment = first_payment.map(EventId::from_bytes);
    }
    Ok(known)
}

pub(super) fn insert_device(
    connection: &Connection,
    command: &Configure,
    opening: &Opening,
) -> Result<(), Failure> {
    let row = DeviceRow::write(&opening.device, &opening.attribution);
    let address_hash = command.address_hash.map(|hash| hash.as_bytes().to_vec());
    let sql = format!(
        "insert into devices (app_id, environment, {DEVICE_COLUMNS}, address_hash, active_at)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?11)"
    );
    connection.prepare_cached(&sql)?.execute(params![
        command.app.as_bytes(),
        command.environment.as_str(),
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
        address_hash
    ])?;
    Ok(())
}

pub(super) fn update_device(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    device: &Device,
    attribution: &Attribution,
) -> Result<(), Failure> {
    let row = DeviceRow::write(device, attribution);
    connection
        .prepare_cached(
            "update devices set traits = ?4, advertising_id = ?5, idfv = ?6, consent = ?7,
                                country = ?8, last_seen_at = ?9, attribution_revision = ?10,
                                decided_at = ?11, network = ?12, link_id = ?13, decision = ?14,
                                active_at = ?9
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .execute(params![
            app.as_bytes(),
            environment.as_str(),
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
            row.decision
        ])?;
    Ok(())
}

pub(super) fn update_identity(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
    identity: &Identity,
    at: Timestamp,
) -> Result<(), Failure> {
    let row = IdentityRow::write(identity);
    connection
        .prepare_cached(
            "insert into identities (app_id, environment, device_id, user_id, matching, updated_at,
                                     active_at)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?6)
             on conflict (app_id, environment, device_id) do update
             set user_id = excluded.user_id, matching = excluded.matching,
                 updated_at = excluded.updated_at, active_at = excluded.active_at",
        )?
        .execute(params![
            app.as_bytes(),
            environment.as_str(),
            device.as_str(),
            row.user_id,
            row.matching,
            at.as_millis()
        ])?;
    Ok(())
}

/// Remembers that events of a device came.
pub(crate) fn note_seen(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    device: &Device,
    seen: Timestamp,
) -> Result<(), Failure> {
    if seen.since(device.last_seen_at) < LAST_SEEN_STEP {
        return Ok(());
    }
    connection
        .prepare_cached(
            "update devices set last_seen_at = ?4
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .execute(params![
            app.as_bytes(),
            environment.as_str(),
            device.key.as_str(),
            seen.as_millis()
        ])?;
    Ok(())
}

/// Remembers the first payment of a device that counted.
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

/// Makes a payment the first one of its device; false when there was one before.
pub(crate) fn claim_first_payment(batch: &Batch<'_>, event: &Event) -> Result<bool, Failure> {
    let sql = "insert into identities (app_id, environment, device_id, user_id, matching,
                                       first_payment_id, updated_at)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
               on conflict (app_id, environment, device_id) do update
               set first_payment_id = excluded.first_payment_id where first_payment_id is null";
    let kept = &batch.statements.first_payment;
    kept.with(batch.connection, sql, |claim| {
        write_first_payment(claim, event)
    })
}

/// The first payment of an event's device so far.
pub(crate) fn first_payment(
    connection: &Connection,
    event: &Event,
) -> Result<Option<EventId>, Failure> {
    let first: Option<Option<[u8; 16]>> = connection
        .prepare_cached(
            "select first_payment_id from identities
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?
        .query_row(
            params![
                event.app.as_bytes(),
                event.environment.as_str(),
                event.device.as_ref().map(DeviceKey::as_str)
            ],
            |row| row.get(0),
        )
        .optional()?;
    Ok(first.flatten().map(EventId::from_bytes))
}

/// Settles the first payment of the device of an event that changes it.
pub(crate) fn settle_payer(batch: &Batch<'_>, event: &Event) -> Result<(), Failure> {
    let Some(device) = &event.device else {
        return Ok(());
    };
    let mut increments = Increments::default();
    let of = (event.app, event.environment);
    settle_first_payment(batch.connection, of, device, &mut increments)?;
    batch.count(|counted| counted.merge(increments));
    Ok(())
}

fn write_first_payment(write: &mut Statement<'_>, event: &Event) -> Result<bool, Failure> {
    let Some(device) = &event.device else {
        return Ok(true);
    };
    let nobody = IdentityRow::write(&Identity::default());
    let written = write.execute(params![
        event.app.as_bytes(),
        event.environment.as_str(),
        device.as_str(),
        nobody.user_id,
        nobody.matching,
        event.id.as_bytes(),
        event.received_at.as_millis()
    ])?;
    Ok(written == 1)
}

/// The SQL of [`Event::is_payment`].
const IS_PAYMENT: &str = "usd_micros > 0 and uncounted is null
     and (source <> 'billing' or name in ('purchase', 'subscribe', 'renewal'))";

/// Moves the flag of a device's first payment to its earliest payment that counts. A placeholder is not a device, and has
/// none.
pub(crate) fn settle_first_payment(
    connection: &Connection,
    (app, environment): (AppId, Environment),
    device: &DeviceKey,
    increments: &mut Increments,
) -> Result<(), Failure> {
    let (environment, key) = (environment.as_str(), device.as_str());
    let values: [&dyn rusqlite::ToSql; 3] = [app.as_bytes(), &environment, &key];
    let of_device = ["app_id = ?", "environment = ?", "device_id = ?"];
    let [app_is, environment_is, device_is] = of_device;
    let flagged = [app_is, environment_is, device_is, "first_payment = 1"];
    let mut changed: Vec<Event> = find_events(connection, &flagged, &values, i64::MAX)?;
    let first = format!(
        "event_id = (select min(event_id) from events
                     where app_id = ?1 and environment = ?2 and device_id = ?3 and {IS_PAYMENT})"
    );
    let first = [app_is, environment_is, device_is, first.as_str()];
    let first = find_events(connection, &first, &values, 1)?.pop();
    let first = first.filter(|event| event.payer().is_some());
    let noted = first.as_ref().map(|event| event.id);
    let is_first = |event: &Event| Some(event.id) == noted;
    if changed.iter().any(is_first) {
        changed.retain(|event| !is_first(event));
    } else {
        changed.extend(first);
    }
    for before in changed {
        let mut now = before.clone();
        now.first_payment = !before.first_payment;
        connection
            .prepare_cached(
                "update events set first_payment = ?4
                 where app_id = ?1 and environment = ?2 and event_id = ?3",
            )?
            .execute(params![
                app.as_bytes(),
                environment,
                now.id.as_bytes(),
                now.first_payment
            ])?;
        increments.replace_event(&before, &now);
        if now.first_payment {
            note_first_payment(connection, &now)?;
        }
    }
    if noted.is_none() {
        connection
            .prepare_cached(
                "update identities set first_payment_id = null
                 where app_id = ?1 and environment = ?2 and device_id = ?3
                   and first_payment_id is not null",
            )?
            .execute(params![app.as_bytes(), environment, key])?;
    }
    Ok(())
}

/// Whose events are credited anew, and to what.
pub(super) struct Recredited<'a> {
    pub(super) app: AppId,
    pub(super) environment: Environment,
    pub(super) device: &'a DeviceKey,
    pub(super) credit: &'a Credit,
}

/// Credits a device's events so far to where its install belongs now, moves their figures along, and plans anew who
/// hears of them.
pub(super) fn recredit(
    connection: &Connection,
    of: &Recredited<'_>,
    facts: &DeviceFacts<'_>,
    integrations: &[Integration],
    increments: &mut Increments,
) -> Result<(), Failure> {
    let stays = CREDITED_TO_ITS_OWN_CLICK.as_str();
    let (environment, device) = (of.environment.as_str(), of.device.as_str());
    let events = find_events(
        connection,
        &[
            "app_id = ?",
            "environment = ?",
            "device_id = ?",
            "source <> ?",
        ],
        &[of.app.as_bytes(), &environment, &device, &stays],
        i64::MAX,
    )?;
    if events.is_empty() {
        return Ok(());
    }
    for mut event in events {
        increments.move_event(&mut event, of.credit);
        planned::replan(
            connection,
            &mut event,
            facts,
            integrations,
            ATTRIBUTION_CHANGED,
        )?;
    }
    let columns = CreditColumns::write(of.credit);
    connection
        .prepare_cached(
            "update events set network = ?4, match_type = ?5, link_id = ?6, click_id = ?7, campaign = ?8
             where app_id = ?1 and environment = ?2 and device_id = ?3 and source <> ?9",
        )?
        .execute(params![
            of.app.as_bytes(),
            environment,
            device,
            columns.network,
            columns.match_type,
            columns.link_id,
            columns.click_id,
            columns.campaign,
            stays
        ])?;
    Ok(())
}
