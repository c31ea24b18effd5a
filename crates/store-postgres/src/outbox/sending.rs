//! Due deliveries in a leased queue.

use super::terminal;
use crate::params::column;
use crate::rows::{id, read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, queues};
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, OutboxRow};
use tributary_store::{PendingDelivery, QueueRef};

/// Finds due deliveries, oldest first.
pub(super) async fn find_due(
    tx: &Tx,
    queue: QueueRef,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<PendingDelivery>, Failure> {
    let (app, network) = queues::key_columns(queue);
    let sql = format!(
        "select {} from outbox where app_id = $1 and network = $2 and due_at <= $3
         order by due_at, delivery_id limit $4",
        OutboxRow::COLUMNS
    );
    let params = [
        &app as _,
        &network as _,
        &now.as_millis() as _,
        &i64::from(limit) as _,
    ];
    let rows = tx.query(&sql, &params).await?;
    rows.iter()
        .map(|row| Ok(read_row::<OutboxRow>(row)?.read_pending()?))
        .collect()
}

/// Marks deliveries as being sent. Returns those still in the outbox; the others were cancelled
/// meanwhile.
pub(super) async fn mark_sending(
    tx: &Tx,
    queue: QueueRef,
    deliveries: &[DeliveryId],
    at: Timestamp,
) -> Result<Vec<DeliveryId>, Failure> {
    terminal::lock(tx, queue.app, deliveries).await?;
    let (app, _) = queues::key_columns(queue);
    let ids = column(deliveries, |id| uuid(id.as_bytes()));
    let rows = tx
        .query(
            "update outbox set sending_at = $3 where app_id = $1 and delivery_id = any($2)
             returning delivery_id",
            &[&app, &ids, &at.as_millis()],
        )
        .await?;
    rows.iter()
        .map(|row| Ok(DeliveryId::from_bytes(id(row, 0)?)))
        .collect()
}
