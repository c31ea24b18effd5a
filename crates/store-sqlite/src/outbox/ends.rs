//! Deliveries that come to their end, and those that are brought back from it.

use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::vocabulary::id::{AppId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::{END_COLUMNS, count_ends, hour_of};

/// Moves a delivery to those that came to their end; false when it is not in the outbox.
pub(crate) fn end(
    connection: &Connection,
    queue: QueueRef,
    id: DeliveryId,
    status: DeliveryStatus,
    reason: Option<&str>,
    at: Timestamp,
) -> Result<bool, Failure> {
    let moved = connection
        .prepare_cached(
            "insert into deliveries (app_id, delivery_id, network, event_id, network_event, dedup_id,
                                     planned_at, expires_at, settled_at, status, reason, attempts_made,
                                     attempts)
             select app_id, delivery_id, network, event_id, network_event, dedup_id, planned_at,
                    expires_at, ?3, ?4, ?5, attempts_made, attempts
             from outbox where app_id = ?1 and delivery_id = ?2",
        )?
        .execute(params![
            queue.app.as_bytes(),
            id.as_bytes(),
            at.as_millis(),
            status.as_str(),
            reason
        ])?;
    connection
        .prepare_cached("delete from outbox where app_id = ?1 and delivery_id = ?2")?
        .execute((queue.app.as_bytes(), id.as_bytes()))?;
    Ok(moved == 1)
}

/// Counts how deliveries ended. Gives how many failed in this hour, before and now.
pub(crate) fn count(
    connection: &Connection,
    queue: QueueRef,
    ends: impl Iterator<Item = DeliveryStatus>,
    at: Timestamp,
) -> Result<(u64, u64), Failure> {
    let counts = count_ends(ends);
    if counts.iter().all(|count| *count == 0) {
        return Ok((0, 0));
    }
    let updates: Vec<String> = END_COLUMNS
        .split(", ")
        .map(|column| format!("{column} = {column} + excluded.{column}"))
        .collect();
    let sql = format!(
        "insert into delivery_hours (app_id, network, hour, {END_COLUMNS})
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         on conflict (app_id, network, hour) do update set {}
         returning failed",
        updates.join(", ")
    );
    let failed: i64 = connection.prepare_cached(&sql)?.query_row(
        params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            hour_of(at),
            counts[0],
            counts[1],
            counts[2],
            counts[3],
            counts[4],
            counts[5]
        ],
        |row| row.get(0),
    )?;
    let whole = |count: i64| u64::try_from(count).unwrap_or(0);
    Ok((whole(failed - counts[3]), whole(failed)))
}

/// Puts a delivery that came to its end back into the outbox, as if nobody had ever been unsure about it.
pub(crate) fn bring_back(
    connection: &Connection,
    app: AppId,
    id: DeliveryId,
    due_at: Timestamp,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into outbox (app_id, delivery_id, network, event_id, network_event, dedup_id,
                                 planned_at, due_at, expires_at, attempts_made, attempts)
             select app_id, delivery_id, network, event_id, network_event, dedup_id, planned_at, ?3,
                    expires_at, attempts_made, attempts
             from deliveries where app_id = ?1 and delivery_id = ?2
             on conflict (app_id, delivery_id) do nothing",
        )?
        .execute(params![app.as_bytes(), id.as_bytes(), due_at.as_millis()])?;
    connection
        .prepare_cached("delete from deliveries where app_id = ?1 and delivery_id = ?2")?
        .execute((app.as_bytes(), id.as_bytes()))?;
    Ok(())
}
