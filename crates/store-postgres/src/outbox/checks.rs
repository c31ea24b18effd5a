//! Requests whose outcome a network tells later.

use super::ends::{self, bring_back};
use crate::params::{Param, column};
use crate::rows::uuid;
use crate::tx::Tx;
use crate::{Failure, queues};
use std::collections::BTreeMap;
use tokio_postgres::Row;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::status_check::Recount;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{EndCounts, StatusCheckRow, hour_of};
use tributary_store::{CheckOutcome, QueueRef, StatusCheck};

/// Keeps requests to be asked about.
pub(crate) async fn insert(
    tx: &Tx,
    queue: QueueRef,
    checks: &[StatusCheck],
) -> Result<(), Failure> {
    if checks.is_empty() {
        return Ok(());
    }
    let (app, network) = queues::columns(queue);
    let rows = column(checks, StatusCheckRow::write);
    let sql = format!(
        "insert into status_checks (app_id, network, {})
         select $1, $2, new.* from unnest($3, $4, $5, $6, $7) as new
         on conflict (app_id, network, request_id) do nothing",
        StatusCheckRow::COLUMNS
    );
    tx.execute(
        &sql,
        &[
            &app,
            &network,
            &column(&rows, |row| row.request_id.as_str()),
            &column(&rows, |row| row.sent_at),
            &column(&rows, |row| row.step),
            &column(&rows, |row| row.due_at),
            &column(&rows, |row| row.deliveries.as_str()),
        ],
    )
    .await?;
    Ok(())
}

async fn find(
    tx: &Tx,
    queue: QueueRef,
    condition: &str,
    value: &dyn Param,
    limit: u32,
) -> Result<Vec<StatusCheck>, Failure> {
    let (app, network) = queues::columns(queue);
    let sql = format!(
        "select {} from status_checks
         where app_id = $1 and network = $2 and {condition} order by due_at limit $4",
        StatusCheckRow::COLUMNS
    );
    let rows = tx
        .query(&sql, &[&app, &network, value, &i64::from(limit)])
        .await?;
    let check = |row: &Row| {
        let row = StatusCheckRow {
            request_id: row.try_get("request_id")?,
            sent_at: row.try_get("sent_at")?,
            step: row.try_get("step")?,
            due_at: row.try_get("due_at")?,
            deliveries: row.try_get("deliveries")?,
        };
        Ok(row.read(queue)?)
    };
    rows.iter().map(check).collect()
}

/// Requests to be asked about.
pub(super) async fn due(
    tx: &Tx,
    queue: QueueRef,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<StatusCheck>, Failure> {
    find(tx, queue, "due_at <= $3", &now.as_millis(), limit).await
}

/// Writes what came of asking.
pub(super) async fn settle(
    tx: &Tx,
    queue: QueueRef,
    request: &str,
    outcome: &CheckOutcome,
    at: Timestamp,
) -> Result<(), Failure> {
    let found = find(tx, queue, "request_id = $3", &request, 1).await?;
    let Some(check) = found.into_iter().next() else {
        return Ok(());
    };
    let (app, network) = queues::columns(queue);
    if let CheckOutcome::Later { step, due_at } = outcome {
        tx.execute(
            "update status_checks set step = $4, due_at = $5
             where app_id = $1 and network = $2 and request_id = $3",
            &[
                &app,
                &network,
                &request,
                &i64::from(*step),
                &due_at.as_millis(),
            ],
        )
        .await?;
        return Ok(());
    }
    tx.execute(
        "delete from status_checks where app_id = $1 and network = $2 and request_id = $3",
        &[&app, &network, &request],
    )
    .await?;
    let changed = change(tx, queue, &check.deliveries, outcome).await?;
    let Recount {
        failed,
        undelivered,
    } = outcome.recount(changed);
    let failed = usize::try_from(failed).unwrap_or(usize::MAX);
    let failed = std::iter::repeat_n(DeliveryStatus::Failed, failed);
    let ends = BTreeMap::from([(queue, EndCounts::of(failed))]);
    ends::count(tx, &ends, at).await?;
    uncount(tx, queue, check.sent_at, undelivered).await
}

/// Writes what the network says about deliveries. Returns how many that changed.
async fn change(
    tx: &Tx,
    queue: QueueRef,
    deliveries: &[DeliveryId],
    outcome: &CheckOutcome,
) -> Result<u64, Failure> {
    let (app, _) = queues::columns(queue);
    let ids = column(deliveries, |id| uuid(id.as_bytes()));
    match outcome {
        CheckOutcome::Later { .. } | CheckOutcome::Over { note: None } => Ok(0),
        CheckOutcome::Over { note } => {
            let sql = "update deliveries set reason = $3
                       where app_id = $1 and delivery_id = any($2)";
            tx.execute(sql, &[&app, &ids, note]).await
        }
        CheckOutcome::Failed { reason } => {
            let failed = DeliveryStatus::Failed.as_str();
            let sql = "update deliveries set status = $3, reason = $4
                       where app_id = $1 and delivery_id = any($2)";
            tx.execute(sql, &[&app, &ids, &failed, reason]).await
        }
        CheckOutcome::Again { due_at, .. } => bring_back(tx, queue.app, deliveries, *due_at).await,
    }
}

/// Takes back that some were delivered: the network changed its mind about them.
async fn uncount(tx: &Tx, queue: QueueRef, at: Timestamp, count: u64) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    let (app, network) = queues::columns(queue);
    tx.execute(
        "update delivery_hours set delivered = greatest(delivered - $4, 0)
         where app_id = $1 and network = $2 and hour = $3",
        &[
            &app,
            &network,
            &hour_of(at),
            &i64::try_from(count).unwrap_or(i64::MAX),
        ],
    )
    .await?;
    Ok(())
}
