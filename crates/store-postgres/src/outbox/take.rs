//! Taking what is due out of a queue that is held.

use crate::rows::{id, qualified};
use crate::tx::Tx;
use crate::{Failure, queues};
use tokio_postgres::Row;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::OutboxRow;
use tributary_store::{PendingDelivery, QueueRef};

/// Reads the columns of an [`OutboxRow`].
pub(crate) fn outbox_row(row: &Row) -> Result<OutboxRow, tokio_postgres::Error> {
    Ok(OutboxRow {
        app_id: id(row, 0)?,
        delivery_id: id(row, 1)?,
        network: row.try_get(2)?,
        event_id: id(row, 3)?,
        network_event: row.try_get(4)?,
        dedup_id: row.try_get(5)?,
        planned_at: row.try_get(6)?,
        due_at: row.try_get(7)?,
        attempts_made: row.try_get(8)?,
        ambiguous_since: row.try_get(9)?,
        sending_at: row.try_get(10)?,
        attempts: row.try_get(11)?,
    })
}

/// Takes what is due, oldest due first, and notes that it is being sent. A delivery that is locked is just being
/// planned anew or brought to its end; it is left alone this time.
pub(super) async fn take(
    tx: &Tx,
    queue: QueueRef,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<PendingDelivery>, Failure> {
    let (app, network) = queues::columns(queue);
    // When it was taken before is what the row said until now.
    let columns = qualified("outbox", OutboxRow::COLUMNS)
        .replace("outbox.sending_at", "due.taken_before as sending_at");
    let sql = format!(
        "update outbox set sending_at = $3
         from (select delivery_id, sending_at as taken_before from outbox
               where app_id = $1 and network = $2 and due_at <= $3
               order by due_at limit $4 for update skip locked) as due
         where outbox.app_id = $1 and outbox.delivery_id = due.delivery_id
         returning {columns}"
    );
    let params = [
        &app as _,
        &network as _,
        &now.as_millis() as _,
        &i64::from(limit) as _,
    ];
    let mut rows = tx
        .query(&sql, &params)
        .await?
        .iter()
        .map(outbox_row)
        .collect::<Result<Vec<_>, _>>()?;
    rows.sort_by_key(|row| (row.due_at, row.delivery_id));
    let pending = rows.into_iter().map(OutboxRow::read_pending);
    Ok(pending.collect::<Result<_, _>>()?)
}
