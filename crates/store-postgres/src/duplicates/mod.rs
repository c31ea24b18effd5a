//! Events that two sources report.
//!
//! An SDK event that a verified source may report too reserves its id among the ids of web events: a key without a
//! fingerprint. A web event that finds its id reserved learns of the SDK event by that, and takes the key over. A billing
//! event reserves the id of its store transaction for no event at all. The SDK event that comes later learns by that
//! that it has to look for billing events. Since all of them insert or lock the same key, the second of two nodes waits
//! for the first and then finds its event.
//!
//! Reservations are made before devices are locked, in the order in which web events take both.

mod settle;

pub(crate) use settle::{rejudge, settle_reported};

use crate::devices::{DeviceRef, locked};
use crate::event_rows::{self, EVENT_COLUMNS, EventKey, read_event};
use crate::outbox::ends::Ends;
use crate::params::column;
use crate::rows::{qualified, uuid};
use crate::tx::Tx;
use crate::{Failure, billing, planned};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use tributary_domain::access::Environment;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::duplicate::Replacement;
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::course::DUPLICATE_OF_VERIFIED;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use uuid::Uuid;

/// The event of a reserved key that belongs to a billing event. Those are found by their transactions.
const BILLING: EventId = EventId::from_bytes([0; 16]);

/// An app, an environment and an id that a sender gave.
pub(crate) type SharedId<'a> = (AppId, Environment, &'a str);

/// The verified events that have ids already, those of each in the order of their ids.
pub(crate) type Holders<'a> = BTreeMap<SharedId<'a>, Vec<Event>>;

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

/// Reserves ids for SDK events. Returns the verified events that have some of them already.
pub(crate) async fn reserve<'a>(
    tx: &Tx,
    wanted: &[(SharedId<'a>, EventId)],
) -> Result<Holders<'a>, Failure> {
    if wanted.is_empty() {
        return Ok(Holders::new());
    }
    let reserved = event_rows::claim(tx, &column(wanted, reservation)).await?;
    let mut taken: BTreeMap<SharedId<'a>, EventId> = BTreeMap::new();
    for ((id, event), reserved) in wanted.iter().zip(reserved) {
        if !reserved {
            taken.entry(*id).or_insert(*event);
        }
    }
    if taken.is_empty() {
        return Ok(Holders::new());
    }
    let ids: Vec<SharedId<'a>> = taken.keys().copied().collect();
    lock_keys(tx, &ids).await?;
    take_from_billing(tx, &taken.into_iter().collect::<Vec<_>>()).await?;
    verified(tx, &ids).await
}

/// Reserves the ids of store transactions for billing events. No other transaction reserves them until this one ends.
pub(crate) async fn reserve_transactions(
    tx: &Tx,
    transactions: BTreeSet<SharedId<'_>>,
) -> Result<(), Failure> {
    if transactions.is_empty() {
        return Ok(());
    }
    let ids: Vec<SharedId<'_>> = transactions.into_iter().collect();
    let keys = column(&ids, |id| reservation(&(*id, BILLING)));
    event_rows::claim(tx, &keys).await?;
    lock_keys(tx, &ids).await
}

const fn reservation<'a>(
    ((app, environment, given_id), event): &(SharedId<'a>, EventId),
) -> EventKey<'a> {
    EventKey {
        app: *app,
        environment: *environment,
        source: EventSource::Web,
        given_id,
        event: *event,
        fingerprint: None,
    }
}

/// Some ids of one app and environment.
type OfApp<'a> = BTreeMap<(AppId, Environment), Vec<&'a str>>;

/// Groups ids: no lock is taken on several machines by one statement.
fn by_app<'a>(ids: &[SharedId<'a>]) -> OfApp<'a> {
    let mut grouped = OfApp::new();
    for (app, environment, id) in ids {
        let of_app = grouped.entry((*app, *environment)).or_default();
        of_app.push(*id);
    }
    grouped
}

/// Locks keys that are there already: inserting one that is committed would not wait.
async fn lock_keys(tx: &Tx, ids: &[SharedId<'_>]) -> Result<(), Failure> {
    for ((app, environment), ids) in by_app(ids) {
        tx.query(
            "select given_id from event_keys
             where app_id = $1 and environment = $2 and source = $3 and given_id = any($4)
             order by given_id for no key update",
            &[
                &uuid(app.as_bytes()),
                &environment.as_str(),
                &EventSource::Web.as_str(),
                &ids,
            ],
        )
        .await?;
    }
    Ok(())
}

/// Gives ids that are reserved for billing events to SDK events, so that a web event finds these.
async fn take_from_billing(tx: &Tx, taken: &[(SharedId<'_>, EventId)]) -> Result<(), Failure> {
    tx.execute(
        "update event_keys as stored set event_id = new.event_id
         from unnest($1, $2, $3, $4) as new (app_id, environment, given_id, event_id)
         where stored.app_id = new.app_id and stored.environment = new.environment
           and stored.source = $5 and stored.given_id = new.given_id and stored.event_id = $6",
        &[
            &column(taken, |((app, ..), _)| uuid(app.as_bytes())),
            &column(taken, |((_, environment, _), _)| environment.as_str()),
            &column(taken, |((.., given_id), _)| *given_id),
            &column(taken, |(_, event)| uuid(event.as_bytes())),
            &EventSource::Web.as_str(),
            &uuid(BILLING.as_bytes()),
        ],
    )
    .await?;
    Ok(())
}

/// The events that have ids among those of a source. A reservation is not an event.
async fn of_source<'a>(
    tx: &Tx,
    ids: &[SharedId<'a>],
    source: EventSource,
) -> Result<Vec<(SharedId<'a>, Event)>, Failure> {
    let rows = tx
        .query(
            &FIND_HOLDERS,
            &[
                &column(ids, |(app, ..)| uuid(app.as_bytes())),
                &column(ids, |(_, environment, _)| environment.as_str()),
                &column(ids, |(.., given_id)| *given_id),
                &source.as_str(),
            ],
        )
        .await?;
    let mut found = Vec::new();
    for row in &rows {
        let number: i64 = row.try_get("number")?;
        let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let id = ids.get(place).ok_or(Failure::Overtaken)?;
        let event = read_event(row)?;
        if event.source == source {
            found.push((*id, event));
        }
    }
    Ok(found)
}

/// The SDK event of an id.
pub(crate) async fn reported(tx: &Tx, id: SharedId<'_>) -> Result<Option<Event>, Failure> {
    let found = of_source(tx, &[id], EventSource::Sdk).await?.pop();
    Ok(found.map(|(_, event)| event))
}

/// The verified events of ids: the website's, and those of store transactions.
async fn verified<'a>(tx: &Tx, ids: &[SharedId<'a>]) -> Result<Holders<'a>, Failure> {
    let mut holders = Holders::new();
    for (id, event) in of_source(tx, ids, EventSource::Web).await? {
        holders.entry(id).or_default().push(event);
    }
    for (of, ids) in by_app(ids) {
        for (id, event) in billing::of_transactions(tx, of, &ids).await? {
            let id = (of.0, of.1, id);
            holders.entry(id).or_default().push(event);
        }
    }
    for events in holders.values_mut() {
        events.sort_by_key(|event| event.id);
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
/// ends no other changes them.
pub(crate) async fn lock_reported(
    tx: &Tx,
    events: &[&Event],
    at: Timestamp,
) -> Result<BTreeMap<EventId, Event>, Failure> {
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
    let mut reported = BTreeMap::new();
    for event in now {
        let before = events.iter().find(|one| one.id == event.id);
        if before.is_none_or(|before| before.device != event.device) {
            return Err(Failure::Overtaken);
        }
        reported.insert(event.id, event);
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

/// Stores SDK events that verified events make duplicates, and cancels what waits to be sent of these. Their devices are
/// locked. The caller settles the first payments of the devices, and counts what was cancelled, when all else is written.
pub(crate) async fn demote(
    tx: &Tx,
    demotions: &[(Replacement, Timestamp)],
    ends: &mut Ends,
) -> Result<(), Failure> {
    if demotions.is_empty() {
        return Ok(());
    }
    let after = column(demotions, |(demotion, _)| demotion.after.clone());
    event_rows::replace_all(tx, &after).await?;
    let vacated = demotions.iter().map(|(demotion, _)| demotion);
    let vacated = vacated.filter(|demotion| demotion.vacates_first_payment());
    let before: Vec<&Event> = vacated.map(|demotion| &demotion.before).collect();
    if !before.is_empty() {
        let (apps, environments, ids) = keys(&before);
        let devices = column(&before, |event| {
            event.device.as_ref().map(DeviceKey::as_str)
        });
        tx.execute(
            "update identities as stored set first_payment_id = null
             from unnest($1, $2, $3, $4) as new (app_id, environment, event_id, device_id)
             where stored.app_id = new.app_id and stored.environment = new.environment
               and stored.device_id = new.device_id and stored.first_payment_id = new.event_id",
            &[&apps, &environments, &ids, &devices],
        )
        .await?;
    }
    let mut by_app: BTreeMap<AppId, (Vec<EventId>, Timestamp)> = BTreeMap::new();
    for (demotion, at) in demotions {
        let event = &demotion.before;
        let of_app = by_app.entry(event.app).or_insert((Vec::new(), *at));
        of_app.0.push(event.id);
    }
    for (app, (events, at)) in by_app {
        planned::cancel_all(tx, app, &events, (DUPLICATE_OF_VERIFIED, at), ends).await?;
    }
    Ok(())
}
