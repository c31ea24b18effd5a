//! What came of deliveries, written at once by whoever holds their queue.

use super::checks;
use super::ends::{count, end};
use crate::{Failure, alerts, queues};
use rusqlite::{Connection, params};
use tributary_domain::forwarding::course::Next;
use tributary_domain::forwarding::settlement::SettlementFacts;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::attempts_to_json;
use tributary_store::{LeaseId, QueueRef, Settled, Settlement};

pub(super) fn settle(
    connection: &Connection,
    queue: QueueRef,
    lease: LeaseId,
    settlement: &Settlement,
) -> Result<bool, Failure> {
    if !queues::is_held(connection, queue, lease)? {
        return Ok(false);
    }
    let at = settlement.at;
    for settled in &settlement.settled {
        write_settled(connection, queue, settled, at)?;
    }
    for check in &settlement.checks {
        checks::insert(connection, queue, check)?;
    }
    let facts = SettlementFacts {
        failures: count(connection, queue, settlement.counted_ends(), at)?,
        version: queues::version(connection, queue)?,
    };
    let (state, alerts) = settlement.decide(facts);
    for alert in alerts {
        alerts::insert(connection, alert)?;
    }
    queues::write(connection, queue, &state)?;
    Ok(true)
}

fn write_settled(
    connection: &Connection,
    queue: QueueRef,
    settled: &Settled,
    at: Timestamp,
) -> Result<(), Failure> {
    let (due_at, ambiguous_since) = match &settled.next {
        Next::Waits {
            due_at,
            ambiguous_since,
        } => (due_at.as_millis(), *ambiguous_since),
        Next::Ends { .. } => (at.as_millis(), None),
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
    if let Next::Ends { status, reason } = &settled.next {
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
