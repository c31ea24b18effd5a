//! Counts events that were not delivered, by network, event name and reason.

use super::skipped::{SKIPPED_EVENTS, count};
use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::access::Environment;
use tributary_domain::forwarding::skipped::SKIPPED_SCANNED_MAX;
use tributary_domain::forwarding::undelivered::{
    UNDELIVERED_STATUSES, UndeliveredCounts, UndeliveredEvents, UndeliveredReason,
};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::skipped_from_json_lossy;

/// Counts finished deliveries with one status. One condition on the status is redundant, but makes
/// the planner use the partial index.
const ENDED: &str = "select newest.network, newest.reason, events.name, count(*) from (
         select network, reason, event_id from deliveries
         where app_id = ?1 and status = ?2 and status <> 'delivered' and delivery_id >= ?3
         order by delivery_id desc limit ?4) as newest
     left join events on events.app_id = ?1 and events.environment = ?5
         and events.event_id = newest.event_id
     group by newest.network, newest.reason, events.name";

/// Counts an app's live events since a time that were not delivered.
pub(super) fn find(
    connection: &Connection,
    app: AppId,
    since: Timestamp,
) -> Result<UndeliveredCounts, Failure> {
    let live = Environment::Live.as_str();
    let mut counts = UndeliveredCounts::default();
    let mut scanned = 0;
    let mut statement = connection.prepare_cached(SKIPPED_EVENTS)?;
    let first = EventId::first_at(since);
    let mut rows = statement.query(params![
        app.as_bytes(),
        live,
        first.as_bytes(),
        SKIPPED_SCANNED_MAX
    ])?;
    while let Some(row) = rows.next()? {
        let (name, text): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let count = count(row, 2)?;
        scanned += count;
        counts.add_skipped(&name, &skipped_from_json_lossy(text.as_deref()), count);
    }
    counts.note_scanned(scanned);
    let first = DeliveryId::first_at(since);
    for status in UNDELIVERED_STATUSES {
        let mut scanned = 0;
        let mut statement = connection.prepare_cached(ENDED)?;
        let mut rows = statement.query(params![
            app.as_bytes(),
            status.as_str(),
            first.as_bytes(),
            SKIPPED_SCANNED_MAX,
            live
        ])?;
        while let Some(row) = rows.next()? {
            let network: String = row.get(0)?;
            let count = count(row, 3)?;
            scanned += count;
            if let Some(network) = Network::parse(&network) {
                let reason = UndeliveredReason::Ended(status, row.get(1)?);
                let event = row.get(2)?;
                let events = UndeliveredEvents {
                    network,
                    event,
                    reason,
                };
                counts.add(events, count);
            }
        }
        counts.note_scanned(scanned);
    }
    Ok(counts)
}
