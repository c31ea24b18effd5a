//! Counts conversions that were not sent, by network, reason and event name.

use crate::Failure;
use rusqlite::{Connection, Row, params};
use tributary_domain::access::Environment;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::skipped::{SKIPPED_SCANNED_MAX, SkippedCounts, skipped_since};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::skipped_from_json_lossy;

/// Counts events by name and the networks skipped for them. The newest events are found through the primary
/// key.
const SKIPPED_EVENTS: &str = "select name, skipped, count(*) from (
         select name, skipped from events where app_id = ?1 and environment = ?2 and event_id >= ?3
         order by event_id desc limit ?4)
     group by name, skipped";
/// Counts deliveries that failed before their first attempt. One condition on the status is
/// redundant, but makes the planner use the partial index.
const UNSENDABLE: &str =
    "select network, case when attempts_made = 0 then reason end as unsendable, count(*) from (
         select network, reason, attempts_made from deliveries
         where app_id = ?1 and status = ?2 and status <> 'delivered' and delivery_id >= ?3
         order by delivery_id desc limit ?4)
     group by network, unsendable";

pub(super) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let count: i64 = row.get(column)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Counts an app's conversions that were not sent.
pub(super) fn find(
    connection: &Connection,
    app: AppId,
    now: Timestamp,
) -> Result<SkippedCounts, Failure> {
    let since = skipped_since(now);
    let mut counts = SkippedCounts::default();
    let mut scanned = 0;
    let mut statement = connection.prepare_cached(SKIPPED_EVENTS)?;
    let mut rows = statement.query(params![
        app.as_bytes(),
        Environment::Live.as_str(),
        EventId::first_at(since).as_bytes(),
        SKIPPED_SCANNED_MAX
    ])?;
    while let Some(row) = rows.next()? {
        let (name, text): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let count = count(row, 2)?;
        scanned += count;
        counts.add_planned(&name, &skipped_from_json_lossy(text.as_deref()), count);
    }
    counts.note_scanned(scanned);
    let mut scanned = 0;
    let mut statement = connection.prepare_cached(UNSENDABLE)?;
    let mut rows = statement.query(params![
        app.as_bytes(),
        DeliveryStatus::Failed.as_str(),
        DeliveryId::first_at(since).as_bytes(),
        SKIPPED_SCANNED_MAX
    ])?;
    while let Some(row) = rows.next()? {
        let (network, reason): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let count = count(row, 2)?;
        scanned += count;
        if let (Some(network), Some(reason)) = (Network::parse(&network), reason) {
            counts.add_unsendable(network, &reason, count);
        }
    }
    counts.note_scanned(scanned);
    Ok(counts)
}
