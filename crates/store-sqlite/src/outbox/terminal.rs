//! Finished deliveries: moving them out of the outbox, requeueing them, and counting them.

use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::vocabulary::id::{AppId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::{TerminalCounts, hour_of};

/// Moves a delivery from the outbox to `deliveries`. Returns false if the delivery is not in the
/// outbox.
pub(crate) fn end(
    connection: &Connection,
    app: AppId,
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
            app.as_bytes(),
            id.as_bytes(),
            at.as_millis(),
            status.as_str(),
            reason
        ])?;
    connection
        .prepare_cached("delete from outbox where app_id = ?1 and delivery_id = ?2")?
        .execute((app.as_bytes(), id.as_bytes()))?;
    Ok(moved == 1)
}

/// Adds finished deliveries to the counts of the current hour. Returns the number of failures in
/// this hour, before and after the addition.
pub(crate) fn count(
    connection: &Connection,
    queue: QueueRef,
    counts: &TerminalCounts,
    at: Timestamp,
) -> Result<(u64, u64), Failure> {
    if counts.is_empty() {
        return Ok((0, 0));
    }
    let sql = format!(
        "insert into delivery_hours as stored (app_id, network, hour, {})
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         on conflict (app_id, network, hour) do update set {}
         returning failed",
        TerminalCounts::COLUMNS,
        TerminalCounts::upsert_additions("stored")
    );
    let [
        delivered,
        validated,
        unconfirmed,
        failed,
        expired,
        cancelled,
    ] = counts.0;
    let failed_now = connection.prepare_cached(&sql)?.query_row(
        params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            hour_of(at),
            delivered,
            validated,
            unconfirmed,
            failed,
            expired,
            cancelled
        ],
        |row| row.get(0),
    )?;
    Ok(counts.failures_before_and_after(failed_now))
}

/// Moves a finished delivery back into the outbox. The delivery no longer counts as ambiguous, even
/// if the outcome of an earlier attempt is unknown. Returns false if the delivery does not exist.
pub(crate) fn requeue(
    connection: &Connection,
    app: AppId,
    id: DeliveryId,
    due_at: Timestamp,
) -> Result<bool, Failure> {
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
    let removed = connection
        .prepare_cached("delete from deliveries where app_id = ?1 and delivery_id = ?2")?
        .execute((app.as_bytes(), id.as_bytes()))?;
    Ok(removed == 1)
}
