//! Due deliveries in a leased queue.

use crate::Failure;
use crate::rows::read_row;
use rusqlite::{Connection, params};
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, OutboxRow};
use tributary_store::{PendingDelivery, QueueRef};

pub(super) fn find_due(
    connection: &Connection,
    queue: QueueRef,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<PendingDelivery>, Failure> {
    let sql = format!(
        "select {} from outbox where app_id = ?1 and network = ?2 and due_at <= ?3
         order by due_at limit ?4",
        OutboxRow::COLUMNS
    );
    let key = params![
        queue.app.as_bytes(),
        queue.network.as_str(),
        now.as_millis(),
        limit
    ];
    let rows: Vec<OutboxRow> = connection
        .prepare_cached(&sql)?
        .query_map(key, read_row::<OutboxRow>)?
        .collect::<Result<_, _>>()?;
    let pending = rows.into_iter().map(OutboxRow::read_pending);
    Ok(pending.collect::<Result<_, _>>()?)
}

pub(super) fn mark_sending(
    connection: &Connection,
    queue: QueueRef,
    deliveries: Vec<DeliveryId>,
    at: Timestamp,
) -> Result<Vec<DeliveryId>, Failure> {
    let mut statement = connection.prepare_cached(
        "update outbox set sending_at = ?3 where app_id = ?1 and delivery_id = ?2",
    )?;
    let mut begun = Vec::with_capacity(deliveries.len());
    for id in deliveries {
        let key = params![queue.app.as_bytes(), id.as_bytes(), at.as_millis()];
        if statement.execute(key)? == 1 {
            begun.push(id);
        }
    }
    Ok(begun)
}
