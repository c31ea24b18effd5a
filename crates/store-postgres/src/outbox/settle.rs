//! What came of deliveries, written at once by whoever holds their queue.

use super::checks;
use super::ends::{self, Ended, Ends};
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use crate::{Failure, alerts, queues};
use tributary_domain::forwarding::course::Next;
use tributary_domain::forwarding::settlement::SettlementFacts;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::attempts_to_json;
use tributary_store::{LeaseId, QueueRef, Settled, Settlement};

/// Writes a settlement; false, and nothing is written, when the queue is somebody else's by now.
pub(super) async fn settle(
    tx: &Tx,
    queue: QueueRef,
    lease: LeaseId,
    settlement: &Settlement,
) -> Result<bool, Failure> {
    if !queues::lock_held(tx, queue, lease).await? {
        return Ok(false);
    }
    let at = settlement.at;
    write_settled(tx, queue, &settlement.settled, at).await?;
    checks::insert(tx, queue, &settlement.checks).await?;
    let mut ends = Ends::default();
    ends.add(queue, settlement.counted_ends());
    let failures = ends.count(tx, at).await?;
    let facts = SettlementFacts {
        failures: failures.get(&queue).copied().unwrap_or_default(),
        version: if settlement.stops_queue() {
            queues::version(tx, queue).await?
        } else {
            None
        },
    };
    let (state, alerts) = settlement.decide(facts);
    for alert in alerts {
        alerts::insert(tx, alert).await?;
    }
    queues::update(tx, queue, &state).await?;
    Ok(true)
}

/// Writes what came of deliveries: one statement for those that wait, two for those that are over.
async fn write_settled(
    tx: &Tx,
    queue: QueueRef,
    settled: &[Settled],
    at: Timestamp,
) -> Result<(), Failure> {
    if settled.is_empty() {
        return Ok(());
    }
    let ids: Vec<DeliveryId> = column(settled, |one| one.id);
    ends::lock(tx, queue.app, &ids).await?;
    let mut ended = Vec::new();
    let mut waiting = Vec::new();
    for one in settled {
        let attempts = (
            i64::from(one.attempts_made),
            attempts_to_json(&one.attempts),
        );
        match &one.next {
            Next::Ends { status, reason } => ended.push(Ended {
                id: one.id,
                status: *status,
                reason: reason.as_deref(),
                attempts: Some(attempts),
            }),
            Next::Waits {
                due_at,
                ambiguous_since,
            } => waiting.push(Waiting {
                id: one.id,
                due_at: *due_at,
                ambiguous_since: *ambiguous_since,
                attempts,
            }),
        }
    }
    ends::end(tx, queue.app, &ended, at).await?;
    write_waiting(tx, queue, &waiting).await
}

/// A delivery that is to be tried again.
struct Waiting {
    id: DeliveryId,
    due_at: Timestamp,
    ambiguous_since: Option<Timestamp>,
    attempts: (i64, String),
}

async fn write_waiting(tx: &Tx, queue: QueueRef, waiting: &[Waiting]) -> Result<(), Failure> {
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
