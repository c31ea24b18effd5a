//! Due deliveries in a leased queue.

use super::terminal;
use crate::params::{Param, column};
use crate::rows::{id, read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, queues};
use tributary_domain::forwarding::sharing::{PARTS, QueueShare};
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, OutboxRow};
use tributary_store::{PendingDelivery, QueueRef};

/// Finds due deliveries of a share, oldest first.
pub(super) async fn find_due(
    tx: &Tx,
    queue: QueueRef,
    share: QueueShare,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<PendingDelivery>, Failure> {
    let (app, network) = queues::key_columns(queue);
    let (now, limit) = (now.as_millis(), i64::from(limit));
    let mut params: Vec<&dyn Param> = vec![&app, &network, &now, &limit];
    let (mut condition, number) = (String::new(), part_number(share));
    if let Some(number) = &number {
        // The same rule as `QueuePart::of`: the last byte of the id.
        condition = format!("and get_byte(uuid_send(delivery_id), 15) % {PARTS} = $5");
        params.push(number);
    }
    let sql = format!(
        "select {} from outbox where app_id = $1 and network = $2 and due_at <= $3 {condition}
         order by due_at, delivery_id limit $4",
        OutboxRow::COLUMNS
    );
    let rows = tx.query(&sql, &params).await?;
    rows.iter()
        .map(|row| Ok(read_row::<OutboxRow>(row)?.read_pending()?))
        .collect()
}

fn part_number(share: QueueShare) -> Option<i64> {
    match share {
        QueueShare::Whole => None,
        QueueShare::Part(part) => Some(part.number()),
    }
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
