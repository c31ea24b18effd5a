//! Events that two sources report.
//!
//! An SDK event that a verified source may report too reserves its id among the ids of web events: a key without a
//! fingerprint. A web event that finds its id reserved learns of the SDK event by that, and takes the key over. Since
//! both insert the same key, the second of two nodes waits for the first and then finds its event.
//!
//! Reservations are made before devices are locked, in the order in which web events take both.

use crate::devices::{DeviceRef, locked};
use crate::event_rows::{self, EVENT_COLUMNS, EventKey, read_event};
use crate::outbox::ends::Ends;
use crate::params::column;
use crate::rows::{qualified, uuid};
use crate::tx::Tx;
use crate::{Failure, planned};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use tributary_domain::access::Environment;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::duplicate::{Demotion, Reported};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::course::DUPLICATE_OF_VERIFIED;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use uuid::Uuid;

/// An app, an environment and an id that a sender gave.
pub(crate) type SharedId<'a> = (AppId, Environment, &'a str);

/// The events that have ids already.
pub(crate) type Holders<'a> = BTreeMap<SharedId<'a>, Event>;

static FIND_HOLDERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "select {}, wanted.number
         from unnest($1, $2, $3) with ordinality as wanted (app_id, environment, given_id, number)
         cross join lateral
              (select event_id from event_keys
               where app_id = wanted.app_id and environment = wanted.environment and source = $4
                 and given_id = wanted.given_id limit 1) as taken
         cross join lateral
              (select {EVENT_COLUMNS} from events
               where app_id = wanted.app_id and environment = wanted.environment
                 and event_id = taken.event_id limit 1) as events",
        qualified("events", EVENT_COLUMNS)
    )
});

/// Reserves ids for events. Returns the events that have some of them already.
pub(crate) async fn reserve<'a>(
    tx: &Tx,
    wanted: &[(SharedId<'a>, EventId)],
) -> Result<Holders<'a>, Failure> {
    if wanted.is_empty() {
        return Ok(Holders::new());
    }
    let key = |((app, environment, given_id), event): &(SharedId<'a>, EventId)| EventKey {
        app: *app,
        environment: *environment,
        source: EventSource::Web,
        given_id,
        event: *event,
        fingerprint: None,
    };
    let reserved = event_rows::claim(tx, &column(wanted, key)).await?;
    let taken: BTreeSet<SharedId<'a>> = wanted
        .iter()
        .zip(reserved)
        .filter(|(_, reserved)| !reserved)
        .map(|((id, _), _)| *id)
        .collect();
    if taken.is_empty() {
        return Ok(Holders::new());
    }
    let taken: Vec<SharedId<'a>> = taken.into_iter().collect();
    let rows = tx
        .query(
            &FIND_HOLDERS,
            &[
                &column(&taken, |(app, ..)| uuid(app.as_bytes())),
                &column(&taken, |(_, environment, _)| environment.as_str()),
                &column(&taken, |(.., given_id)| *given_id),
                &EventSource::Web.as_str(),
            ],
        )
        .await?;
    let mut holders = Holders::new();
    for row in &rows {
        let number: i64 = row.try_get("number")?;
        let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let id = taken.get(place).ok_or(Failure::Overtaken)?;
        holders.insert(*id, read_event(row)?);
    }
    Ok(holders)
}

/// Gives reserved ids to web events. Each must still be reserved by the event that was found; if not, another node
/// was first.
pub(crate) async fn take_over(
    tx: &Tx,
    taken: &[(SharedId<'_>, EventId, EventId, Digest)],
) -> Result<(), Failure> {
    if taken.is_empty() {
        return Ok(());
    }
    let mut taken: Vec<_> = taken.iter().collect();
    taken.sort_by_key(|(id, ..)| *id);
    let written = tx
        .execute(
            "update event_keys as stored set event_id = new.event_id, fingerprint = new.fingerprint
             from unnest($1, $2, $3, $4, $5, $6)
                  as new (app_id, environment, given_id, reserved_by, event_id, fingerprint)
             where stored.app_id = new.app_id and stored.environment = new.environment
               and stored.source = $7 and stored.given_id = new.given_id
               and stored.event_id = new.reserved_by and stored.fingerprint is null",
            &[
                &column(&taken, |((app, ..), ..)| uuid(app.as_bytes())),
                &column(&taken, |((_, environment, _), ..)| environment.as_str()),
                &column(&taken, |((.., given_id), ..)| *given_id),
                &column(&taken, |(_, reserved_by, ..)| uuid(reserved_by.as_bytes())),
                &column(&taken, |(_, _, event, _)| uuid(event.as_bytes())),
                &column(&taken, |(.., fingerprint)| {
                    fingerprint.as_bytes().as_slice()
                }),
                &EventSource::Web.as_str(),
            ],
        )
        .await?;
    if u64::try_from(taken.len()) == Ok(written) {
        Ok(())
    } else {
        Err(Failure::Overtaken)
    }
}

/// Locks the devices of SDK events that a verified source reports, and reads the events again: until this transaction
/// ends nobody credits them anew.
pub(crate) async fn lock_reported(
    tx: &Tx,
    events: &[&Event],
    at: Timestamp,
) -> Result<BTreeMap<EventId, Reported>, Failure> {
    let sdk = |event: &&&Event| event.source == EventSource::Sdk;
    let events: Vec<&Event> = events.iter().filter(sdk).copied().collect();
    if events.is_empty() {
        return Ok(BTreeMap::new());
    }
    let devices = events.iter().filter_map(|event| {
        let key = event.device.as_ref()?;
        let device = DeviceRef {
            app: event.app,
            environment: event.environment,
            key,
        };
        Some((device, at))
    });
    locked::lock(tx, devices).await?;
    let (apps, environments, ids) = keys(&events);
    let now = event_rows::find(
        tx,
        "(app_id, environment, event_id) in (select * from unnest($1, $2, $3))",
        &[&apps, &environments, &ids],
    )
    .await?;
    let mut next = next_payments(tx, &now).await?;
    let mut reported = BTreeMap::new();
    for event in now {
        let before = events.iter().find(|one| one.id == event.id);
        if before.is_none_or(|before| before.device != event.device) {
            return Err(Failure::Overtaken);
        }
        let next_payment = next.remove(&event.id);
        reported.insert(
            event.id,
            Reported {
                event,
                next_payment,
            },
        );
    }
    Ok(reported)
}

fn keys<'e>(events: &[&'e Event]) -> (Vec<Uuid>, Vec<&'e str>, Vec<Uuid>) {
    (
        column(events, |event| uuid(event.app.as_bytes())),
        column(events, |event| event.environment.as_str()),
        column(events, |event| uuid(event.id.as_bytes())),
    )
}

static NEXT_PAYMENTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "select {}, wanted.number
         from unnest($1, $2, $3, $4) with ordinality
              as wanted (app_id, environment, event_id, device_id, number)
         cross join lateral
              (select {EVENT_COLUMNS} from events
               where app_id = wanted.app_id and environment = wanted.environment
                 and device_id = wanted.device_id and event_id <> wanted.event_id
                 and uncounted is null and usd_micros > 0
               order by event_id limit 1) as events",
        qualified("events", EVENT_COLUMNS)
    )
});

/// The earliest other payments that count of the devices whose first payments these are, by event.
async fn next_payments(tx: &Tx, events: &[Event]) -> Result<BTreeMap<EventId, Event>, Failure> {
    let first: Vec<&Event> = events.iter().filter(|event| event.first_payment).collect();
    if first.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (apps, environments, ids) = keys(&first);
    let devices = column(&first, |event| {
        event.device.as_ref().map_or("", DeviceKey::as_str)
    });
    let rows = tx
        .query(&NEXT_PAYMENTS, &[&apps, &environments, &ids, &devices])
        .await?;
    let mut next = BTreeMap::new();
    for row in &rows {
        let number: i64 = row.try_get("number")?;
        let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let of = first.get(place).ok_or(Failure::Overtaken)?;
        next.insert(of.id, read_event(row)?);
    }
    Ok(next)
}

/// Stores what verified events change about the SDK events of the same ids, and cancels what waits to be sent of
/// these. Their devices are locked. The caller counts what was cancelled, when all else is written.
pub(crate) async fn demote(
    tx: &Tx,
    demotions: &[(Demotion, Timestamp)],
    ends: &mut Ends,
) -> Result<(), Failure> {
    if demotions.is_empty() {
        return Ok(());
    }
    let after: Vec<Event> = demotions
        .iter()
        .flat_map(|(demotion, _)| demotion.replacements())
        .map(|one| one.after.clone())
        .collect();
    event_rows::replace_all(tx, &after).await?;
    let vacated: Vec<&Demotion> = demotions
        .iter()
        .map(|(demotion, _)| demotion)
        .filter(|demotion| demotion.vacates_first_payment())
        .collect();
    let before = column(&vacated, |demotion| &demotion.event.before);
    let (apps, environments, ids) = keys(&before);
    tx.execute(
        "update identities as stored set first_payment_id = new.first_payment_id
         from unnest($1, $2, $3, $4, $5)
              as new (app_id, environment, event_id, device_id, first_payment_id)
         where stored.app_id = new.app_id and stored.environment = new.environment
           and stored.device_id = new.device_id and stored.first_payment_id = new.event_id",
        &[
            &apps,
            &environments,
            &ids,
            &column(&before, |event| {
                event.device.as_ref().map(DeviceKey::as_str)
            }),
            &column(&vacated, |demotion| {
                let promoted = demotion.promoted.as_ref();
                promoted.map(|one| uuid(one.after.id.as_bytes()))
            }),
        ],
    )
    .await?;
    let mut by_app: BTreeMap<AppId, (Vec<EventId>, Timestamp)> = BTreeMap::new();
    for (demotion, at) in demotions {
        let event = &demotion.event.before;
        let of_app = by_app.entry(event.app).or_insert((Vec::new(), *at));
        of_app.0.push(event.id);
    }
    for (app, (events, at)) in by_app {
        planned::cancel_all(tx, app, &events, (DUPLICATE_OF_VERIFIED, at), ends).await?;
    }
    Ok(())
}
