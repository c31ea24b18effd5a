//! Ends waits that a clock which was ahead has stored.

use crate::Failure;
use crate::queues::key_columns;
use crate::rows::id;
use crate::tx::Tx;
use tributary_domain::forwarding::waits::LatestEnds;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::queue_ref;

/// Finds the queues with a wait that ends too late.
pub(super) async fn find_mistaken(tx: &Tx, latest: LatestEnds) -> Result<Vec<QueueRef>, Failure> {
    let sql = "select app_id, network from queues where leased_until > $1 or not_before > $2
               union select app_id, network from queue_parts where leased_until > $1
               union select app_id, network from outbox where due_at > $3";
    let params = [
        &latest.lease.as_millis() as _,
        &latest.back_off.as_millis() as _,
        &latest.delivery.as_millis() as _,
    ];
    let rows = tx.query(sql, &params).await?;
    rows.iter()
        .map(|row| Ok(queue_ref(id(row, 0)?, row.try_get(1)?)?))
        .collect()
}

/// Ends the waits of a queue that end too late. Only deliveries of failed requests wait, so there are
/// few.
pub(super) async fn end(
    tx: &Tx,
    queue: QueueRef,
    latest: LatestEnds,
    now: Timestamp,
) -> Result<(), Failure> {
    let (app, network) = key_columns(queue);
    let (millis, lease) = (now.as_millis(), latest.lease.as_millis());
    tx.execute(
        "update queues
         set leased_until = case when leased_until > $4 then $3 else leased_until end,
             not_before = case when not_before > $5 then $3 else not_before end
         where app_id = $1 and network = $2",
        &[
            &app,
            &network,
            &millis,
            &lease,
            &latest.back_off.as_millis(),
        ],
    )
    .await?;
    tx.execute(
        "update queue_parts set leased_until = $3
         where app_id = $1 and network = $2 and leased_until > $4",
        &[&app, &network, &millis, &lease],
    )
    .await?;
    tx.execute(
        "update outbox set due_at = $3 where app_id = $1 and network = $2 and due_at > $4",
        &[&app, &network, &millis, &latest.delivery.as_millis()],
    )
    .await?;
    tx.hint_queue(queue, now);
    Ok(())
}
