//! Expires old deliveries, and deletes finished deliveries after their retention period.

use super::terminal::{count, end};
use crate::Failure;
use rusqlite::Connection;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{ExpiredDelivery, ExpiredRow, TerminalCounts, hour_of};

/// Finds expired deliveries, except those that a process is sending.
pub(super) fn find_expired(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<ExpiredDelivery>, Failure> {
    let sql = format!(
        "select {} from outbox
         where expires_at <= ?1
           and (sending_at is null
                or not exists (select 1 from queues
                               where queues.app_id = outbox.app_id
                                 and queues.network = outbox.network
                                 and queues.leased_until > ?1))
         limit ?2",
        ExpiredRow::COLUMNS
    );
    let rows: Vec<ExpiredRow> = connection
        .prepare_cached(&sql)?
        .query_map((now.as_millis(), limit), |row| {
            Ok(ExpiredRow {
                app_id: row.get("app_id")?,
                network: row.get("network")?,
                delivery_id: row.get("delivery_id")?,
                ambiguous_since: row.get("ambiguous_since")?,
                sending_at: row.get("sending_at")?,
            })
        })?
        .collect::<Result<_, _>>()?;
    let late = rows.into_iter().map(ExpiredRow::read);
    Ok(late.collect::<Result<_, _>>()?)
}

pub(super) fn expire(
    connection: &Connection,
    late: Vec<ExpiredDelivery>,
    now: Timestamp,
) -> Result<u64, Failure> {
    let mut ended = 0;
    for one in late {
        let (queue, status) = (one.queue, one.status);
        if end(connection, queue.app, one.id, status, Some(one.reason), now)? {
            count(connection, queue, &TerminalCounts::of([status]), now)?;
            ended += 1;
        }
    }
    Ok(ended)
}

/// Deletes deliveries that finished before a timestamp, and hourly counts and alerts from before
/// it. Returns the number of deleted deliveries.
pub(super) fn remove(
    connection: &Connection,
    settled_before: Timestamp,
    limit: u32,
) -> Result<u64, Failure> {
    let removed = connection
        .prepare_cached(
            "delete from deliveries where (app_id, delivery_id) in (
                 select app_id, delivery_id from deliveries where settled_at < ?1 limit ?2)",
        )?
        .execute((settled_before.as_millis(), limit))?;
    connection
        .prepare_cached("delete from delivery_hours where hour < ?1")?
        .execute([hour_of(settled_before)])?;
    connection
        .prepare_cached("delete from alerts where due_at is null and at < ?1")?
        .execute([settled_before.as_millis()])?;
    Ok(u64::try_from(removed).unwrap_or(0))
}
