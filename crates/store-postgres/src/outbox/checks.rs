//! Requests whose outcome a network tells later.

use super::ends::{Ends, bring_back};
use crate::params::{Param, column};
use crate::rows::uuid;
use crate::tx::Tx;
use crate::{Failure, queues};
use tokio_postgres::Row;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{check_deliveries_from_json, check_deliveries_to_json, hour_of};
use tributary_store::{CheckOutcome, QueueRef, StatusCheck, StoreError};

/// Keeps requests to be asked about.
pub(super) async fn insert(
    tx: &Tx,
    queue: QueueRef,
    checks: &[StatusCheck],
) -> Result<(), Failure> {
    if checks.is_empty() {
        return Ok(());
    }
    let (app, network) = queues::columns(queue);
    let deliveries = column(checks, check_deliveries_to_json);
    tx.execute(
        "insert into status_checks (app_id, network, request_id, sent_at, step, due_at, deliveries)
         select $1, $2, new.* from unnest($3, $4, $5, $6, $7) as new
         on conflict (app_id, network, request_id) do nothing",
        &[
            &app,
            &network,
            &column(checks, |check| check.request.as_str()),
            &column(checks, |check| check.sent_at.as_millis()),
            &column(checks, |check| i64::from(check.step)),
            &column(checks, |check| check.due_at.as_millis()),
            &column(&deliveries, String::as_str),
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
        "select request_id, sent_at, step, due_at, deliveries from status_checks
         where app_id = $1 and network = $2 and {condition} order by due_at limit $4"
    );
    let rows = tx
        .query(&sql, &[&app, &network, value, &i64::from(limit)])
        .await?;
    let check = |row: &Row| {
        let step: i64 = row.try_get(2)?;
        let corrupt = |column| StoreError::corrupt("status_checks", column, queue.app);
        Ok(StatusCheck {
            request: row.try_get(0)?,
            sent_at: Timestamp::from_millis(row.try_get(1)?),
            step: u32::try_from(step).map_err(|_| corrupt("step"))?,
            due_at: Timestamp::from_millis(row.try_get(3)?),
            deliveries: check_deliveries_from_json(queue, row.try_get(4)?)?,
        })
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
    let ids = column(&check.deliveries, |id| uuid(id.as_bytes()));
    match outcome {
        CheckOutcome::Later { .. } | CheckOutcome::Over { note: None } => {}
        CheckOutcome::Over { note } => {
            let sql = "update deliveries set reason = $3
                       where app_id = $1 and delivery_id = any($2)";
            tx.execute(sql, &[&app, &ids, note]).await?;
        }
        CheckOutcome::Failed { reason } => {
            let failed = DeliveryStatus::Failed;
            let sql = "update deliveries set status = $3, reason = $4
                       where app_id = $1 and delivery_id = any($2)";
            let params: [&dyn Param; 4] = [&app, &ids, &failed.as_str(), reason];
            let written = tx.execute(sql, &params).await?;
            let written = usize::try_from(written).unwrap_or(usize::MAX);
            let mut ends = Ends::default();
            ends.add(queue, std::iter::repeat_n(failed, written));
            ends.count(tx, at).await?;
            uncount(tx, queue, check.sent_at, written).await?;
        }
        CheckOutcome::Again { due_at, .. } => {
            let back = bring_back(tx, queue.app, &check.deliveries, *due_at).await?;
            let back = usize::try_from(back).unwrap_or(usize::MAX);
            uncount(tx, queue, check.sent_at, back).await?;
        }
    }
    Ok(())
}

/// Takes back that some were delivered: the network changed its mind about them.
async fn uncount(tx: &Tx, queue: QueueRef, at: Timestamp, count: usize) -> Result<(), Failure> {
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
