//! Writes the results of delivery attempts, if the queue's lease is still held.

use super::terminal::{self, TerminalDelivery};
use crate::Failure;
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_domain::forwarding::lifecycle::NextStep;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::attempts_to_json;
use tributary_store::{QueueRef, SettledDelivery};

/// Writes results: one statement for retried deliveries, and two for finished deliveries.
pub(crate) async fn write_settled(
    tx: &Tx,
    queue: QueueRef,
    settled: &[SettledDelivery],
    at: Timestamp,
) -> Result<(), Failure> {
    if settled.is_empty() {
        return Ok(());
    }
    let ids: Vec<DeliveryId> = column(settled, |one| one.id);
    terminal::lock(tx, queue.app, &ids).await?;
    let mut ended = Vec::new();
    let mut waiting = Vec::new();
    for one in settled {
        let attempts = (
            i64::from(one.attempts_made),
            attempts_to_json(&one.attempts),
        );
        match &one.next {
            NextStep::End { status, reason } => ended.push(TerminalDelivery {
                id: one.id,
                status: *status,
                reason: reason.as_deref(),
                attempts: Some(attempts),
            }),
            NextStep::Wait {
                due_at,
                ambiguous_since,
            } => waiting.push(RetriedDelivery {
                id: one.id,
                due_at: *due_at,
                ambiguous_since: *ambiguous_since,
                attempts,
            }),
        }
    }
    terminal::end(tx, queue.app, &ended, at).await?;
    write_waiting(tx, queue, &waiting).await
}

/// A delivery that will be retried.
struct RetriedDelivery {
    id: DeliveryId,
    due_at: Timestamp,
    ambiguous_since: Option<Timestamp>,
    attempts: (i64, String),
}

async fn write_waiting(
    tx: &Tx,
    queue: QueueRef,
    waiting: &[RetriedDelivery],
) -> Result<(), Failure> {
    if waiting.is_empty() {
        return Ok(());
    }
    tx.execute(
        "update outbox set sending_at = null, due_at = new.due_at,
                           ambiguous_since = new.ambiguous_since,
                           attempts_made = new.attempts_made, attempts = new.attempts
         from unnest($2, $3, $4, $5, $6)
              as new (delivery_id, due_at, ambiguous_since, attempts_made, attempts)
         where outbox.app_id = $1 and outbox.delivery_id = new.delivery_id",
        &[
            &uuid(queue.app.as_bytes()),
            &column(waiting, |one| uuid(one.id.as_bytes())),
            &column(waiting, |one| one.due_at.as_millis()),
            &column(waiting, |one| one.ambiguous_since.map(Timestamp::as_millis)),
            &column(waiting, |one| one.attempts.0),
            &column(waiting, |one| one.attempts.1.as_str()),
        ],
    )
    .await?;
    Ok(())
}
