//! Events that two sources report.
//!
//! An SDK event that a verified source may report too reserves its id among the ids of web events: a key without a
//! fingerprint. A web event that finds its id reserved learns of the SDK event by that, and takes the key over.

use crate::batch::Batch;
use crate::events::{find_events, replace_event};
use crate::{Failure, planned};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use tributary_domain::access::Environment;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::duplicate::{Demotion, Reported, is_verifiable};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::course::DUPLICATE_OF_VERIFIED;
use tributary_domain::integration::Network;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;

/// Reserves the id of a new SDK event. Returns the event that has the id already, if there is one.
pub(crate) fn reserve(batch: &Batch<'_>, event: &Event) -> Result<Option<Event>, Failure> {
    if !is_verifiable(&event.name) {
        return Ok(None);
    }
    take(batch.connection, event, &event.given_id)
}

/// Reserves an id for an event. Returns the event that has the id already, if there is one.
fn take(connection: &Connection, event: &Event, id: &str) -> Result<Option<Event>, Failure> {
    let (app, environment) = (event.app.as_bytes(), event.environment.as_str());
    let source = EventSource::Web.as_str();
    let reserved = connection
        .prepare_cached(
            "insert into event_keys (app_id, environment, source, given_id, event_id)
             values (?1, ?2, ?3, ?4, ?5) on conflict do nothing",
        )?
        .execute(params![app, environment, source, id, event.id.as_bytes()])?;
    if reserved == 1 {
        return Ok(None);
    }
    let holder: Option<[u8; 16]> = connection
        .prepare_cached(
            "select event_id from event_keys
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4",
        )?
        .query_row(params![app, environment, source, id], |row| row.get(0))
        .optional()?;
    match holder {
        Some(holder) => find(
            connection,
            event.app,
            event.environment,
            EventId::from_bytes(holder),
        ),
        None => Ok(None),
    }
}

/// Gives a reserved id to a web event.
pub(crate) fn take_over(
    connection: &Connection,
    event: &Event,
    fingerprint: &[u8],
) -> Result<bool, Failure> {
    let taken = connection
        .prepare_cached(
            "update event_keys set event_id = ?5, fingerprint = ?6
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4
               and fingerprint is null",
        )?
        .execute(params![
            event.app.as_bytes(),
            event.environment.as_str(),
            event.source.as_str(),
            event.given_id,
            event.id.as_bytes(),
            fingerprint
        ])?;
    Ok(taken == 1)
}

fn find(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    event: EventId,
) -> Result<Option<Event>, Failure> {
    let environment = environment.as_str();
    let conditions = ["app_id = ?", "environment = ?", "event_id = ?"];
    let values: [&dyn ToSql; 3] = [app.as_bytes(), &environment, event.as_bytes()];
    Ok(find_events(connection, &conditions, &values, 1)?.pop())
}

/// The event that reserved an id, with what the rules need to know about it.
pub(crate) fn reported(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    event: EventId,
) -> Result<Option<Reported>, Failure> {
    let Some(event) = find(connection, app, environment, event)? else {
        return Ok(None);
    };
    let next_payment = if event.first_payment {
        next_payment(connection, &event)?
    } else {
        None
    };
    Ok(Some(Reported {
        event,
        next_payment,
    }))
}

/// The earliest other payment of the event's device that counts.
fn next_payment(connection: &Connection, event: &Event) -> Result<Option<Event>, Failure> {
    let id: Option<[u8; 16]> = connection
        .prepare_cached(
            "select event_id from events
             where app_id = ?1 and environment = ?2 and device_id = ?3 and event_id <> ?4
               and uncounted is null and usd_micros > 0
             order by event_id limit 1",
        )?
        .query_row(
            params![
                event.app.as_bytes(),
                event.environment.as_str(),
                event.device.as_ref().map(DeviceKey::as_str),
                event.id.as_bytes()
            ],
            |row| row.get(0),
        )
        .optional()?;
    match id {
        Some(id) => find(
            connection,
            event.app,
            event.environment,
            EventId::from_bytes(id),
        ),
        None => Ok(None),
    }
}

/// Stores what a verified event changes about the SDK event of the same id, moves their figures, and cancels what
/// waits to be sent of the SDK event.
pub(crate) fn demote(
    connection: &Connection,
    demotion: &Demotion,
    at: Timestamp,
    increments: &mut Increments,
) -> Result<(), Failure> {
    for one in demotion.replacements() {
        replace_event(connection, &one.after)?;
        increments.replace_event(&one.before, &one.after);
    }
    let event = &demotion.event.before;
    if demotion.vacates_first_payment() {
        let promoted = demotion.promoted.as_ref();
        connection
            .prepare_cached(
                "update identities set first_payment_id = ?5
                 where app_id = ?1 and environment = ?2 and device_id = ?3 and first_payment_id = ?4",
            )?
            .execute(params![
                event.app.as_bytes(),
                event.environment.as_str(),
                event.device.as_ref().map(DeviceKey::as_str),
                event.id.as_bytes(),
                promoted.map(|one| *one.after.id.as_bytes())
            ])?;
    }
    for network in Network::ALL {
        let id = (event.app, event.id);
        planned::cancel(connection, id, network, DUPLICATE_OF_VERIFIED, at)?;
    }
    Ok(())
}
