//! Finds queues with due work.

use crate::due_work::{Look, look_at_apps};
use crate::pool::Pool;
use crate::rows::id;
use crate::tx::{self, TransactionMode, Tx};
use crate::{Failure, queues};
use std::sync::Arc;
use tributary_domain::due_work::{AppWork, WorkKind};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::queue_ref;
use tributary_store::{QueueRef, StoreResult};

/// Whether a queue can be leased, or shared with its holder, at `$1`.
pub(crate) const CAN_BE_LEASED: &str = "integrations.enabled and queues.paused_at is null
    and coalesce(queues.not_before, 0) <= $1
    and (coalesce(queues.leased_until, 0) <= $1 or queues.sharing <> 'off')";

/// Finds queues with due work, with one index lookup per integration. A queue that nodes share is due
/// even while it is leased. Not for a distributed database, where it would query every shard.
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
             where integrations.network = $3 and {CAN_BE_LEASED}
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

/// Finds queues with due work among the apps with hints.
pub(super) async fn find_hinted_queues(
    pool: &Arc<Pool>,
    network: Network,
    now: Timestamp,
    limit: u32,
) -> StoreResult<Vec<QueueRef>> {
    let kind = WorkKind::Deliveries(network);
    let shared = pool.clone();
    let look = async move |app, _| {
        let queue = QueueRef { app, network };
        let find = async move |tx: &Tx| find_work(tx, queue).await;
        let left = tx::run(&shared, "due_queues", TransactionMode::Read, find).await?;
        let taken = left
            .can_be_taken(now)
            .then_some(queue)
            .into_iter()
            .collect();
        Ok(Look { taken, left })
    };
    look_at_apps(pool, kind, now, limit, look).await
}

/// Finds a queue's work, and what keeps it from being taken.
async fn find_work(tx: &Tx, queue: QueueRef) -> Result<AppWork, Failure> {
    let (app, network) = queues::key_columns(queue);
    let sql = "select enabled, paused_at, leased_until, not_before,
                      (select min(due_at) from outbox where app_id = $1 and network = $2),
                      (select min(due_at) from status_checks where app_id = $1 and network = $2),
                      coalesce(queues.sharing <> 'off', false)
               from integrations
               left join queues on queues.app_id = $1 and queues.network = $2
               where integrations.app_id = $1 and integrations.network = $2";
    let Some(row) = tx.query_opt(sql, &[&app, &network]).await? else {
        return Ok(AppWork::default());
    };
    let is_shared: bool = row.try_get(6)?;
    let time = |index| -> Result<Option<Timestamp>, tokio_postgres::Error> {
        let millis: Option<i64> = row.try_get(index)?;
        Ok(millis.map(Timestamp::from_millis))
    };
    let due = [time(4)?, time(5)?];
    let leased_until = time(2)?;
    Ok(AppWork {
        earliest_due: due.into_iter().flatten().min(),
        blocked_until: leased_until.filter(|_| !is_shared).max(time(3)?),
        shared_until: leased_until.filter(|_| is_shared),
        is_stopped: !row.try_get::<_, bool>(0)? || time(1)?.is_some(),
    })
}
