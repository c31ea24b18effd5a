//! Finds queues with due work.

use crate::Failure;
use rusqlite::Connection;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::queue_ref;

/// Whether a queue can be leased, or shared with its holder, at `?1`, and has due work.
pub(crate) const IS_DUE: &str = "integrations.enabled = 1 and queues.paused_at is null
    and coalesce(queues.not_before, 0) <= ?1
    and (coalesce(queues.leased_until, 0) <= ?1 or queues.sharing <> 'off')
    and (exists (select 1 from outbox
                 where outbox.app_id = integrations.app_id
                   and outbox.network = integrations.network and outbox.due_at <= ?1)
         or exists (select 1 from status_checks
                    where status_checks.app_id = integrations.app_id
                      and status_checks.network = integrations.network
                      and status_checks.due_at <= ?1))";

/// Finds queues with due work. A queue that nodes share is due even while it is leased.
pub(super) fn find_due_queues(
    connection: &Connection,
    network: Network,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<QueueRef>, Failure> {
    let rows: Vec<([u8; 16], String)> = connection
        .prepare_cached(&format!(
            "select integrations.app_id, integrations.network from integrations
             left join queues on queues.app_id = integrations.app_id
                             and queues.network = integrations.network
             where integrations.network = ?3 and {IS_DUE}
             order by coalesce(queues.leased_until, 0) limit ?2",
        ))?
        .query_map((now.as_millis(), limit, network.as_str()), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    let queues = rows.iter().map(|(app, network)| queue_ref(*app, network));
    Ok(queues.collect::<Result<_, _>>()?)
}
