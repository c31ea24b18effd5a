//! Finds queues with due work.

use crate::Failure;
use crate::rows::id;
use crate::tx::Tx;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::queue_ref;

/// Finds queues with due work on all shards, with one index lookup per integration.
///
/// Deliveries and status checks are queried separately. With an `or`, the planner might scan the
/// whole outbox for every integration.
pub(super) async fn find_due_queues(
    tx: &Tx,
    network: Network,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<QueueRef>, Failure> {
    let with_due = |table: &str| {
        format!(
            "select integrations.app_id, integrations.network,
                    coalesce(queues.leased_until, 0) as last_turn
             from integrations
             left join queues on queues.app_id = integrations.app_id
                             and queues.network = integrations.network
             where integrations.network = $3 and integrations.enabled and queues.paused_at is null
               and coalesce(queues.not_before, 0) <= $1 and coalesce(queues.leased_until, 0) <= $1
               and exists (select 1 from {table}
                           where {table}.app_id = integrations.app_id
                             and {table}.network = integrations.network and {table}.due_at <= $1)"
        )
    };
    let sql = format!(
        "select app_id, network from ({} union {}) as due
         order by last_turn, app_id, network limit $2",
        with_due("outbox"),
        with_due("status_checks")
    );
    let params = [
        &now.as_millis() as _,
        &i64::from(limit) as _,
        &network.as_str() as _,
    ];
    let rows = tx.query(&sql, &params).await?;
    rows.iter()
        .map(|row| Ok(queue_ref(id(row, 0)?, row.try_get(1)?)?))
        .collect()
}
