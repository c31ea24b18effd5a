//! Ends waits that a clock which was ahead has stored.

use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::forwarding::waits::LatestEnds;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::queue_ref;

/// Finds the queues with a wait that ends too late.
pub(super) fn find_mistaken(
    connection: &Connection,
    latest: LatestEnds,
) -> Result<Vec<QueueRef>, Failure> {
    let rows: Vec<([u8; 16], String)> = connection
        .prepare_cached(
            "select app_id, network from queues where leased_until > ?1 or not_before > ?2
             union select app_id, network from queue_parts where leased_until > ?1
             union select app_id, network from outbox where due_at > ?3",
        )?
        .query_map(
            params![
                latest.lease.as_millis(),
                latest.back_off.as_millis(),
                latest.delivery.as_millis()
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect::<Result<_, _>>()?;
    let queues = rows.iter().map(|(app, network)| queue_ref(*app, network));
    Ok(queues.collect::<Result<_, _>>()?)
}

/// Ends the waits of these queues that end too late. Only deliveries of failed requests wait, so there
/// are few.
pub(super) fn end(
    connection: &Connection,
    queues: &[QueueRef],
    latest: LatestEnds,
    now: Timestamp,
) -> Result<(), Failure> {
    let mut end_queue = connection.prepare_cached(
        "update queues
         set leased_until = case when leased_until > ?4 then ?3 else leased_until end,
             not_before = case when not_before > ?5 then ?3 else not_before end
         where app_id = ?1 and network = ?2",
    )?;
    let mut end_parts = connection.prepare_cached(
        "update queue_parts set leased_until = ?3
         where app_id = ?1 and network = ?2 and leased_until > ?4",
    )?;
    let mut end_deliveries = connection.prepare_cached(
        "update outbox set due_at = ?3 where app_id = ?1 and network = ?2 and due_at > ?4",
    )?;
    let (now, lease) = (now.as_millis(), latest.lease.as_millis());
    for queue in queues {
        let (app, network) = (queue.app.as_bytes(), queue.network.as_str());
        end_queue.execute(params![
            app,
            network,
            now,
            lease,
            latest.back_off.as_millis()
        ])?;
        end_parts.execute(params![app, network, now, lease])?;
        end_deliveries.execute(params![app, network, now, latest.delivery.as_millis()])?;
    }
    Ok(())
}
