//! Finding queues with something to do, and taking them.

use crate::rows::{app_by_id, id};
use crate::tx::Tx;
use crate::{Failure, integrations, queues};
use tributary_domain::forwarding::queue::{LeaseDecision, lease as decide};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::queue_ref;
use tributary_store::{LeaseId, LeasedQueue, QueueRef, StoreError};

/// Queues with something due. All machines are asked; each integration costs a look into an index.
///
/// Deliveries and requests are asked for apart. Together, with an `or`, the database would not see two joins, and might
/// read the whole outbox once for every integration in the belief that something is found at once.
pub(super) async fn due_queues(
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

pub(super) async fn lease(
    tx: &Tx,
    queue: QueueRef,
    lease: LeaseId,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<LeasedQueue>, Failure> {
    let all = integrations::find_integrations(tx, queue.app).await?;
    let found = all.into_iter().find(|one| one.network == queue.network);
    match decide(found.as_ref(), now) {
        LeaseDecision::Take => {}
        LeaseDecision::Rest(until) => {
            queues::rest(tx, queue, now, until).await?;
            return Ok(None);
        }
        LeaseDecision::Refuse => return Ok(None),
    }
    let state = queues::take(tx, queue, lease, now, until).await?;
    let Some((state, integration)) = state.zip(found) else {
        return Ok(None);
    };
    let (app, _) = queues::columns(queue);
    let app = app_by_id(tx, app)
        .await?
        .ok_or_else(|| StoreError::corrupt("queues", "app_id", queue.app))?;
    Ok(Some(LeasedQueue {
        app,
        integration,
        state,
    }))
}
