//! Event ids that two sources may share; see `recording::duplicates`.

use crate::Failure;
use crate::event_rows::{EVENT_COLUMNS, read_events};
use crate::tables::{SqliteTables, run};
use crate::write_batch::WriteBatch;
use rusqlite::{CachedStatement, Connection, Statement, params};
use std::collections::BTreeSet;
use tributary_domain::event::{Event, EventSource};
use tributary_domain::vocabulary::id::EventId;
use tributary_recording::SharedId;
use tributary_recording::duplicates::{VerifiedEvents, find_verified_events};

/// Event id stored in a key that is reserved for a billing event. Billing events are found by
/// transaction id instead.
const BILLING_PLACEHOLDER: [u8; 16] = [0; 16];

const RESERVE: &str = "insert into event_keys (app_id, environment, source, given_id, event_id)
     values (?1, ?2, ?3, ?4, ?5) on conflict do nothing";

/// Reserves an id. Returns false if the id is already in use.
fn reserve_key(
    reserve: &mut Statement<'_>,
    (app, environment, id): SharedId<'_>,
    holder: &[u8; 16],
) -> Result<bool, Failure> {
    let reserved = reserve.execute(params![
        app.as_bytes(),
        environment.as_str(),
        EventSource::Web.as_str(),
        id,
        holder
    ])?;
    Ok(reserved == 1)
}

/// Reserves the id of a new SDK event. Returns the verified events that already use this id.
pub(crate) fn reserve_in(
    batch: &WriteBatch<'_>,
    id: SharedId<'_>,
    event: EventId,
) -> Result<Vec<Event>, Failure> {
    let connection = batch.connection;
    let reserve = |reserve: &mut CachedStatement<'_>| reserve_key(reserve, id, event.as_bytes());
    let statement = &batch.statements.reservation;
    if statement.with(connection, RESERVE, reserve)? {
        return Ok(Vec::new());
    }
    take_from_billing(connection, id, event)
}

/// Reserves the ids of new SDK events. Returns the verified events that already use these ids.
pub(crate) fn reserve_all<'a>(
    connection: &Connection,
    wanted: &[(SharedId<'a>, EventId)],
) -> Result<VerifiedEvents<'a>, Failure> {
    let mut verified = VerifiedEvents::new();
    let mut reserve = connection.prepare_cached(RESERVE)?;
    for (id, event) in wanted {
        if !reserve_key(&mut reserve, *id, event.as_bytes())? {
            verified.insert(*id, take_from_billing(connection, *id, *event)?);
        }
    }
    Ok(verified)
}

/// Reassigns an id reserved for a billing event to an SDK event, so that a later web event finds the
/// SDK event. Returns the verified events that use the id.
fn take_from_billing(
    connection: &Connection,
    id: SharedId<'_>,
    event: EventId,
) -> Result<Vec<Event>, Failure> {
    let (app, environment, given_id) = id;
    connection
        .prepare_cached(
            "update event_keys set event_id = ?5
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4
               and event_id = ?6",
        )?
        .execute(params![
            app.as_bytes(),
            environment.as_str(),
            EventSource::Web.as_str(),
            given_id,
            event.as_bytes(),
            BILLING_PLACEHOLDER
        ])?;
    let mut holders = run(find_verified_events(&SqliteTables(connection), &[id]))?;
    Ok(holders.remove(&id).unwrap_or_default())
}

/// Reassigns a reserved id to a web event.
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
            event.external_id,
            event.id.as_bytes(),
            fingerprint
        ])?;
    Ok(taken == 1)
}

/// Finds the event that a source reported under an id. An id that is only reserved has no event.
pub(crate) fn find_by_source(
    connection: &Connection,
    (app, environment, id): SharedId<'_>,
    source: EventSource,
) -> Result<Option<Event>, Failure> {
    let sql = format!(
        "select {EVENT_COLUMNS} from events
         where app_id = ?1 and environment = ?2 and source = ?3
           and event_id = (select event_id from event_keys
                           where app_id = ?1 and environment = ?2 and source = ?3
                             and given_id = ?4)"
    );
    let (environment, source) = (environment.as_str(), source.as_str());
    let mut find = connection.prepare_cached(&sql)?;
    let found = read_events(&mut find, params![app.as_bytes(), environment, source, id])?;
    Ok(found.into_iter().next())
}

/// Reserves store transaction ids for billing events.
pub(crate) fn reserve_transactions(
    connection: &Connection,
    transactions: &BTreeSet<SharedId<'_>>,
) -> Result<(), Failure> {
    let mut reserve = connection.prepare_cached(RESERVE)?;
    for transaction in transactions {
        reserve_key(&mut reserve, *transaction, &BILLING_PLACEHOLDER)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::SqliteStore;
    use rusqlite::Connection;
    use std::sync::Arc;
    use tributary_store::contract::billing_duplicates::{
        UNDO_MATCHING_SQL, assert_pairs_corrected, store_pairs,
    };
    use tributary_store::contract::fixtures::SharedStore;

    #[tokio::test]
    async fn duplicates_from_before_the_upgrade_are_corrected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let opened = path.clone();
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
        let store: SharedStore = Arc::new(opened.unwrap().unwrap());
        let one = store_pairs(&store).await;
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(UNDO_MATCHING_SQL).unwrap();
        connection
            .execute_batch(include_str!("../migrations/0018_transactions.sql"))
            .unwrap();
        assert_pairs_corrected(&store, &one).await;
    }
}
