//! Writes the results of delivery attempts, if the queue's lease is still held.

use super::terminal::end;
use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::forwarding::lifecycle::NextStep;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::attempts_to_json;
use tributary_store::{QueueRef, SettledDelivery};

/// Writes the result of an attempt.
pub(crate) fn write_settled(
    connection: &Connection,
    queue: QueueRef,
    settled: &SettledDelivery,
    at: Timestamp,
) -> Result<(), Failure> {
    let (due_at, ambiguous_since) = match &settled.next {
        NextStep::Wait {
            due_at,
            ambiguous_since,
        } => (due_at.as_millis(), *ambiguous_since),
        NextStep::End { .. } => (at.as_millis(), None),
    };
    connection
        .prepare_cached(
            "update outbox set sending_at = null, due_at = ?3, ambiguous_since = ?4, attempts_made = ?5,
                               attempts = ?6
             where app_id = ?1 and delivery_id = ?2",
        )?
        .execute(params![
            queue.app.as_bytes(),
            settled.id.as_bytes(),
            due_at,
            ambiguous_since.map(Timestamp::as_millis),
            settled.attempts_made,
            attempts_to_json(&settled.attempts)
        ])?;
    if let NextStep::End { status, reason } = &settled.next {
        end(
            connection,
            queue.app,
            settled.id,
            *status,
            reason.as_deref(),
            at,
        )?;
    }
    Ok(())
}
