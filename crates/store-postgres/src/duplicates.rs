//! Event ids that two sources may share; see `recording::duplicates`.

use crate::Failure;
use crate::event_rows::{self, EVENT_COLUMNS, read_event};
use crate::params::column;
use crate::rows::{qualified, uuid};
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use tributary_domain::access::Environment;
use tributary_domain::event::{Event, EventKey, EventSource};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_recording::SharedId;
use tributary_recording::duplicates::{VerifiedEvents, find_verified_events};

/// Event id stored in a key that is reserved for a billing event. Billing events are found by
/// transaction id instead.
const BILLING_PLACEHOLDER: EventId = EventId::from_bytes([0; 16]);

static FIND_HOLDERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        // One index lookup per id, because of the grouping (see `devices::bulk::rows_of`). The
        // events are joined with the keys and not with `unnest`, so that a distributed database
        // recognises that both belong to the same app.
        "select {}, wanted.number
         from unnest($1, $2, $3) with ordinality as wanted (app_id, environment, given_id, number)
         cross join lateral
              (select app_id, environment, event_id from event_keys
               where app_id = wanted.app_id and environment = wanted.environment and source = $4
                 and given_id = wanted.given_id
                 /* distributed: and app_id = any($1) */
               group by app_id, environment, source, given_id) as taken
         cross join lateral
              (select {EVENT_COLUMNS} from events
               where app_id = taken.app_id and environment = taken.environment
                 and event_id = taken.event_id
                 /* distributed: and app_id = any($1) */
               group by app_id, environment, event_id) as events",
        qualified("events", EVENT_COLUMNS)
    )
});

/// Reserves ids for SDK events. Returns the verified events that already use one of these ids.
pub(crate) async fn reserve<'a>(
    tx: &Tx,
    wanted: &[(SharedId<'a>, EventId)],
) -> Result<VerifiedEvents<'a>, Failure> {
    if wanted.is_empty() {
        return Ok(VerifiedEvents::new());
    }
    let reserved = event_rows::claim(tx, &column(wanted, reservation)).await?;
    let mut taken: BTreeMap<SharedId<'a>, EventId> = BTreeMap::new();
    for ((id, event), reserved) in wanted.iter().zip(reserved) {
        if !reserved {
            taken.entry(*id).or_insert(*event);
        }
    }
    if taken.is_empty() {
        return Ok(VerifiedEvents::new());
    }
    let ids: Vec<SharedId<'a>> = taken.keys().copied().collect();
    lock_keys(tx, &ids).await?;
    take_from_billing(tx, &taken.into_iter().collect::<Vec<_>>()).await?;
    find_verified_events(tx, &ids).await
}

/// Reserves store transaction ids for billing events. Other transactions that reserve the same ids
/// wait until this one ends.
pub(crate) async fn reserve_transactions(
    tx: &Tx,
    transactions: &BTreeSet<SharedId<'_>>,
) -> Result<(), Failure> {
    if transactions.is_empty() {
        return Ok(());
    }
    let ids: Vec<SharedId<'_>> = transactions.iter().copied().collect();
    let keys = column(&ids, |id| reservation(&(*id, BILLING_PLACEHOLDER)));
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
        external_id: given_id,
        event: *event,
        fingerprint: None,
    }
}

/// Event ids by app and environment.
type IdsByApp<'a> = BTreeMap<(AppId, Environment), Vec<&'a str>>;

/// Groups ids by app, so that no statement takes locks on several shards.
fn by_app<'a>(ids: &[SharedId<'a>]) -> IdsByApp<'a> {
    let mut grouped = IdsByApp::new();
    for (app, environment, id) in ids {
        let of_app = grouped.entry((*app, *environment)).or_default();
        of_app.push(*id);
    }
    grouped
}

/// Locks existing keys. This is needed because inserting a key that is already committed does not
/// wait for a lock on it.
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

/// Reassigns ids reserved for billing events to SDK events, so that a later web event finds the SDK
/// events.
async fn take_from_billing(tx: &Tx, taken: &[(SharedId<'_>, EventId)]) -> Result<(), Failure> {
    tx.execute(
        "update event_keys as stored set event_id = new.event_id
         from unnest($1, $2, $3, $4) as new (app_id, environment, given_id, event_id)
         where stored.app_id = new.app_id and stored.environment = new.environment
           and stored.source = $5 and stored.given_id = new.given_id and stored.event_id = $6
           /* distributed: and stored.app_id = any($1) */",
        &[
            &column(taken, |((app, ..), _)| uuid(app.as_bytes())),
            &column(taken, |((_, environment, _), _)| environment.as_str()),
            &column(taken, |((.., given_id), _)| *given_id),
            &column(taken, |(_, event)| uuid(event.as_bytes())),
            &EventSource::Web.as_str(),
            &uuid(BILLING_PLACEHOLDER.as_bytes()),
        ],
    )
    .await?;
    Ok(())
}

/// Finds the events that a source reported under these ids. An id that is only reserved has no
/// event.
pub(crate) async fn find_by_source<'a>(
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
        let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let id = ids.get(index).ok_or(Failure::Conflict)?;
        let event = read_event(row)?;
        if event.source == source {
            found.push((*id, event));
        }
    }
    Ok(found)
}

/// Reassigns reserved ids to web events. Each id must still be reserved by the event that was read;
/// otherwise this is a conflict.
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
        .query(
            "update event_keys as stored set event_id = new.event_id, fingerprint = new.fingerprint
             from unnest($1, $2, $3, $4, $5, $6)
                  as new (app_id, environment, given_id, reserved_by, event_id, fingerprint)
             where stored.app_id = new.app_id and stored.environment = new.environment
               and stored.source = $7 and stored.given_id = new.given_id
               and stored.event_id = new.reserved_by and stored.fingerprint is null
               /* distributed: and stored.app_id = any($1) */
             returning stored.event_id",
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
    if written.len() == taken.len() {
        Ok(())
    } else {
        Err(Failure::Conflict)
    }
}
