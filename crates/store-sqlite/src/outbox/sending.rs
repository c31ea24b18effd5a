//! Due deliveries in a leased queue.

use crate::Failure;
use crate::rows::read_row;
use rusqlite::{Connection, params};
use tributary_domain::forwarding::sharing::QueueShare;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, OutboxRow};
use tributary_store::{PendingDelivery, QueueRef};

/// Finds due deliveries of a share, oldest first.
pub(super) fn find_due(
    connection: &Connection,
    queue: QueueRef,
    share: QueueShare,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<PendingDelivery>, Failure> {
    let sql = format!(
        "select {} from outbox where app_id = ?1 and network = ?2 and due_at <= ?3
         order by due_at",
        OutboxRow::COLUMNS
    );
    let (app, network) = (queue.app.as_bytes(), queue.network.as_str());
    let mut find = connection.prepare_cached(&sql)?;
    let rows = find.query_map(
        params![app, network, now.as_millis()],
        read_row::<OutboxRow>,
    )?;
    let is_other = |row: &OutboxRow| !share.contains(&DeliveryId::from_bytes(row.delivery_id));
    // Rows of other shares are skipped one by one, and no row after the last one is read.
    let due = rows.filter(|row| !row.as_ref().is_ok_and(is_other));
    let due = due.take(usize::try_from(limit).unwrap_or(usize::MAX));
    due.map(|row| Ok(row?.read_pending()?)).collect()
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
