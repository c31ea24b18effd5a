//! What nobody comes back for: deliveries that grew too old, and the story of those that ended long ago.

use super::ends::{count, end};
use super::read_queue;
use crate::Failure;
use rusqlite::Connection;
use tributary_domain::forwarding::course::too_late;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::hour_of;

/// A delivery that nobody comes back for.
pub(super) struct Late {
    queue: QueueRef,
    id: DeliveryId,
    /// The first attempt of which nobody knows what came of it.
    ambiguous_since: Option<Timestamp>,
}

/// Deliveries that grew too old, except for those in the hands of somebody who holds their queue.
pub(super) fn find_late(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Late>, Failure> {
    type Columns = ([u8; 16], String, [u8; 16], Option<i64>);
    let rows: Vec<Columns> = connection
        .prepare_cached(
            "select app_id, network, delivery_id, coalesce(ambiguous_since, sending_at) from outbox
             where expires_at <= ?1
               and (sending_at is null
                    or not exists (select 1 from queues
                                   where queues.app_id = outbox.app_id
                                     and queues.network = outbox.network
                                     and queues.leased_until > ?1))
             limit ?2",
        )?
        .query_map((now.as_millis(), limit), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_, _>>()?;
    rows.into_iter()
        .map(|(app, network, delivery, ambiguous_since)| {
            Ok(Late {
                queue: read_queue((app, network))?,
                id: DeliveryId::from_bytes(delivery),
                ambiguous_since: ambiguous_since.map(Timestamp::from_millis),
            })
        })
        .collect()
}

pub(super) fn expire(
    connection: &Connection,
    late: Vec<Late>,
    now: Timestamp,
) -> Result<u64, Failure> {
    let mut ended = 0;
    for Late {
        queue,
        id,
        ambiguous_since,
    } in late
    {
        let (status, reason) = too_late(queue.network, ambiguous_since);
        if end(connection, queue, id, status, Some(reason), now)? {
            count(connection, queue, [status].into_iter(), now)?;
            ended += 1;
        }
    }
    Ok(ended)
}

/// Forgets the story of those that ended long ago; how many there were.
pub(super) fn remove(
    connection: &Connection,
    settled_before: Timestamp,
    limit: u32,
) -> Result<u64, Failure> {
    let removed = connection
        .prepare_cached(
            "delete from deliveries where (app_id, delivery_id) in (
                 select app_id, delivery_id from deliveries where settled_at < ?1 limit ?2)",
        )?
        .execute((settled_before.as_millis(), limit))?;
    connection
        .prepare_cached("delete from delivery_hours where hour < ?1")?
        .execute([hour_of(settled_before)])?;
    connection
        .prepare_cached("delete from alerts where due_at is null and at < ?1")?
        .execute([settled_before.as_millis()])?;
    Ok(u64::try_from(removed).unwrap_or(0))
}
