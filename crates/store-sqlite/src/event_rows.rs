//! Reads and writes rows of `events`.

use crate::Failure;
use crate::rows::SqliteRow;
use crate::write_batch::WriteBatch;
use rusqlite::{
    CachedStatement, Connection, Params, Row, Statement, ToSql, params, params_from_iter,
};
use std::sync::LazyLock;
use tributary_domain::event::{Event, EventKey};
use tributary_store::records::{CampaignCache, Columns, EventRow};

/// The columns of `events`, in the order of an [`EventRow`].
pub(crate) const EVENT_COLUMNS: &str = EventRow::COLUMNS;

/// Reads an event from a row of [`EVENT_COLUMNS`].
pub(crate) fn read_event(row: &Row<'_>) -> Result<Event, Failure> {
    Ok(EventRow::from_row(&SqliteRow(row), 0)?.read()?)
}

/// Reads the events that a query for [`EVENT_COLUMNS`] returns.
pub(crate) fn read_events(
    statement: &mut Statement<'_>,
    values: impl Params,
) -> Result<Vec<Event>, Failure> {
    let mut campaigns = CampaignCache::default();
    let read =
        |row: &Row<'_>| Ok(EventRow::from_row(&SqliteRow(row), 0)?.read_cached(&mut campaigns)?);
    let rows = statement.query_and_then(values, read)?;
    rows.collect()
}

const CLAIM: &str =
    "insert into event_keys (app_id, environment, source, given_id, event_id, fingerprint)
     values (?1, ?2, ?3, ?4, ?5, ?6) on conflict do nothing";

/// Claims an event id. Returns false if an event already uses the id.
fn claim_key(claim: &mut Statement<'_>, key: EventKey<'_>) -> Result<bool, Failure> {
    let claimed = claim.execute(params![
        key.app.as_bytes(),
        key.environment.as_str(),
        key.source.as_str(),
        key.external_id,
        key.event.as_bytes(),
        key.fingerprint.map(|digest| digest.as_bytes().as_slice())
    ])?;
    Ok(claimed == 1)
}

/// Inserts an event unless its id is in use. Returns true if the event is new.
pub(crate) fn insert_event(connection: &Connection, event: &Event) -> Result<bool, Failure> {
    let key = EventKey::of(event, None);
    let claimed = claim_key(&mut *connection.prepare_cached(CLAIM)?, key)?;
    if claimed {
        insert_row(&mut *connection.prepare_cached(&INSERT)?, event)?;
    }
    Ok(claimed)
}

/// Claims event ids. Returns false if an event already uses one of them.
pub(crate) fn claim_all<'e>(
    connection: &Connection,
    keys: impl Iterator<Item = EventKey<'e>>,
) -> Result<bool, Failure> {
    let mut claim = connection.prepare_cached(CLAIM)?;
    let mut claimed = true;
    for key in keys {
        claimed &= claim_key(&mut claim, key)?;
    }
    Ok(claimed)
}

/// Inserts events whose ids are claimed.
pub(crate) fn insert_all<'e>(
    connection: &Connection,
    events: impl Iterator<Item = &'e Event>,
) -> Result<(), Failure> {
    let mut insert = connection.prepare_cached(&INSERT)?;
    for event in events {
        insert_row(&mut insert, event)?;
    }
    Ok(())
}

/// Like [`claim_key`], with the batch's prepared statement.
pub(crate) fn claim_in(batch: &WriteBatch<'_>, key: EventKey<'_>) -> Result<bool, Failure> {
    let claim = |claim: &mut CachedStatement<'_>| claim_key(claim, key);
    batch.statements.key.with(batch.connection, CLAIM, claim)
}

/// Inserts an event whose id is claimed, with the batch's prepared statement.
pub(crate) fn insert_in(batch: &WriteBatch<'_>, event: &Event) -> Result<(), Failure> {
    let insert = |insert: &mut CachedStatement<'_>| insert_row(insert, event);
    batch
        .statements
        .event
        .with(batch.connection, &INSERT, insert)
}

/// Deletes an event and its key, so that the event can be stored again.
pub(crate) fn delete_event(connection: &Connection, event: &Event) -> Result<(), Failure> {
    let (app, environment) = (event.app.as_bytes(), event.environment.as_str());
    connection
        .prepare_cached(
            "delete from events where app_id = ?1 and environment = ?2 and event_id = ?3",
        )?
        .execute(params![app, environment, event.id.as_bytes()])?;
    connection
        .prepare_cached(
            "delete from event_keys
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4",
        )?
        .execute(params![
            app,
            environment,
            event.source.as_str(),
            event.external_id
        ])?;
    Ok(())
}

/// Replaces the stored event with the same id.
pub(crate) fn replace_event(connection: &Connection, event: &Event) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "delete from events where app_id = ?1 and environment = ?2 and event_id = ?3",
        )?
        .execute(params![
            event.app.as_bytes(),
            event.environment.as_str(),
            event.id.as_bytes()
        ])?;
    insert_row(&mut *connection.prepare_cached(&INSERT)?, event)
}

static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "insert into events ({EVENT_COLUMNS})
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
                 ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36,
                 ?37)"
    )
});

fn insert_row(insert: &mut Statement<'_>, event: &Event) -> Result<(), Failure> {
    let row = EventRow::write(event);
    insert.execute(params![
        row.app_id,
        row.environment,
        row.event_id,
        row.given_id,
        row.source,
        row.name,
        row.original_name,
        row.occurred_at,
        row.received_at,
        row.device_id,
        row.user_id,
        row.platform,
        row.country,
        row.amount_micros,
        row.currency,
        row.usd_micros,
        row.rate,
        row.rate_day,
        row.rate_source,
        row.uncounted,
        row.network,
        row.match_type,
        row.link_id,
        row.click_id,
        row.campaign,
        row.params,
        row.first_payment,
        row.own,
        row.skipped,
        row.source_url,
        row.parent_given_id,
        row.email_sha256,
        row.duplicate_of,
        row.dedup_root,
        row.device_spelling,
        row.hold,
        row.consent
    ])?;
    Ok(())
}

/// Finds matching events, newest first. The conditions are SQL with `?` placeholders; the values
/// follow in the same order.
pub(crate) fn find_events(
    connection: &Connection,
    conditions: &[&str],
    values: &[&dyn ToSql],
    limit: i64,
) -> Result<Vec<Event>, Failure> {
    let conditions = conditions.join(" and ");
    let sql = format!(
        "select {EVENT_COLUMNS} from events where {conditions} order by event_id desc limit ?"
    );
    let all = values.iter().copied().chain([&limit as &dyn ToSql]);
    let mut statement = connection.prepare_cached(&sql)?;
    read_events(&mut statement, params_from_iter(all))
}
