//! Counts events that were not delivered, by network, event name and reason.

use super::skipped::count;
use crate::Failure;
use rusqlite::{Connection, ToSql, params};
use std::sync::LazyLock;
use tributary_domain::access::Environment;
use tributary_domain::forwarding::skipped::SKIPPED_SCANNED_MAX;
use tributary_domain::forwarding::undelivered::{
    UNDELIVERED_STATUSES, UndeliveredCounts, UndeliveredEvents, UndeliveredQuery, UndeliveredReason,
};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_store::records::{skipped_from_json_lossy, skipped_network_pattern};

/// The newest events, through the primary key.
static EVENTS: LazyLock<[String; 2]> = LazyLock::new(|| skipped_events("?6 is null"));
/// The newest events with a name, through the index on names.
static EVENTS_OF_NAME: LazyLock<[String; 2]> = LazyLock::new(|| skipped_events("name = ?6"));

/// Returns the statement that counts the newest events by name and the networks skipped for them,
/// and the one that finds the oldest of these events.
fn skipped_events(name: &str) -> [String; 2] {
    let newest = format!(
        "select event_id, name, skipped from events
         where app_id = ?1 and environment = ?2 and event_id >= ?3 and {name}
           and (?5 is null or skipped like ?5 escape '\\')
         order by event_id desc limit ?4"
    );
    [
        format!("select name, skipped, count(*) from ({newest}) group by name, skipped"),
        format!("select event_id from ({newest}) order by event_id limit 1"),
    ]
}

/// The statements for finished deliveries with one status.
static ENDED: LazyLock<[String; 2]> = LazyLock::new(|| {
    // One condition on the status is redundant, but makes the planner use the partial index.
    let newest = "select deliveries.delivery_id, deliveries.network, deliveries.reason, events.name
         from deliveries
         left join events on events.app_id = ?1 and events.environment = ?5
                         and events.event_id = deliveries.event_id
         where deliveries.app_id = ?1 and deliveries.status = ?2
           and deliveries.status <> 'delivered' and deliveries.delivery_id >= ?3
           and (?6 is null or deliveries.network = ?6) and (?7 is null or events.name = ?7)
         order by deliveries.delivery_id desc limit ?4";
    [
        format!(
            "select network, reason, name, count(*) from ({newest}) group by network, reason, name"
        ),
        format!("select delivery_id from ({newest}) order by delivery_id limit 1"),
    ]
});

/// Counts an app's live events that were not delivered.
pub(super) fn find(
    connection: &Connection,
    app: AppId,
    query: &UndeliveredQuery,
) -> Result<UndeliveredCounts, Failure> {
    let mut counts = UndeliveredCounts::default();
    count_skipped(connection, app, query, &mut counts)?;
    count_ended(connection, app, query, &mut counts)?;
    if let Some(network) = query.network {
        counts.retain(network);
    }
    Ok(counts)
}

fn count_skipped(
    connection: &Connection,
    app: AppId,
    query: &UndeliveredQuery,
    counts: &mut UndeliveredCounts,
) -> Result<(), Failure> {
    let [sql, oldest] = match query.event {
        Some(_) => &*EVENTS_OF_NAME,
        None => &*EVENTS,
    };
    let first = EventId::first_at(query.since);
    let pattern = query.network.map(skipped_network_pattern);
    let key: [&dyn ToSql; 6] = [
        app.as_bytes(),
        &Environment::Live.as_str(),
        first.as_bytes(),
        &SKIPPED_SCANNED_MAX,
        &pattern,
        &query.event,
    ];
    let mut scanned = 0;
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(key.as_slice())?;
    while let Some(row) = rows.next()? {
        let (name, text): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let count = count(row, 2)?;
        scanned += count;
        counts.add_skipped(&name, &skipped_from_json_lossy(text.as_deref()), count);
    }
    if UndeliveredCounts::is_cut(scanned) {
        let mut statement = connection.prepare_cached(oldest)?;
        let id = statement.query_row(key.as_slice(), |row| row.get(0))?;
        counts.note_cut(EventId::from_bytes(id).at());
    }
    Ok(())
}

fn count_ended(
    connection: &Connection,
    app: AppId,
    query: &UndeliveredQuery,
    counts: &mut UndeliveredCounts,
) -> Result<(), Failure> {
    let [sql, oldest] = &*ENDED;
    let first = DeliveryId::first_at(query.since);
    for status in UNDELIVERED_STATUSES {
        let key = params![
            app.as_bytes(),
            status.as_str(),
            first.as_bytes(),
            SKIPPED_SCANNED_MAX,
            Environment::Live.as_str(),
            query.network.map(Network::as_str),
            query.event
        ];
        let mut scanned = 0;
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(key)?;
        while let Some(row) = rows.next()? {
            let network: String = row.get(0)?;
            let count = count(row, 3)?;
            scanned += count;
            if let Some(network) = Network::parse(&network) {
                let events = UndeliveredEvents {
                    network,
                    event: row.get(2)?,
                    reason: UndeliveredReason::Ended(status, row.get(1)?),
                };
                counts.add(events, count);
            }
        }
        if UndeliveredCounts::is_cut(scanned) {
            let mut statement = connection.prepare_cached(oldest)?;
            let id = statement.query_row(key, |row| row.get(0))?;
            counts.note_cut(DeliveryId::from_bytes(id).at());
        }
    }
    Ok(())
}
