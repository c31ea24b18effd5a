//! Requests whose outcome a network tells later.

use super::ends::{bring_back, count};
use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::status_check::Recount;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{EndCounts, StatusCheckRow, hour_of};
use tributary_store::{CheckOutcome, QueueRef, StatusCheck};

pub(crate) fn insert(
    connection: &Connection,
    queue: QueueRef,
    check: &StatusCheck,
) -> Result<(), Failure> {
    let row = StatusCheckRow::write(check);
    let sql = format!(
        "insert into status_checks (app_id, network, {})
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7) on conflict do nothing",
        StatusCheckRow::COLUMNS
    );
    connection.prepare_cached(&sql)?.execute(params![
        queue.app.as_bytes(),
        queue.network.as_str(),
        row.request_id,
        row.sent_at,
        row.step,
        row.due_at,
        row.deliveries
    ])?;
    Ok(())
}

fn find(
    connection: &Connection,
    queue: QueueRef,
    condition: &str,
    value: &dyn rusqlite::ToSql,
    limit: u32,
) -> Result<Vec<StatusCheck>, Failure> {
    let sql = format!(
        "select {} from status_checks
         where app_id = ?1 and network = ?2 and {condition} order by due_at limit ?4",
        StatusCheckRow::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let key = params![queue.app.as_bytes(), queue.network.as_str(), value, limit];
    let rows = statement.query_map(key, |row| {
        Ok(StatusCheckRow {
            request_id: row.get("request_id")?,
            sent_at: row.get("sent_at")?,
            step: row.get("step")?,
            due_at: row.get("due_at")?,
            deliveries: row.get("deliveries")?,
        })
    })?;
    rows.map(|row| Ok(row?.read(queue)?)).collect()
}

/// Those that are due.
pub(super) fn due(
    connection: &Connection,
    queue: QueueRef,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<StatusCheck>, Failure> {
    find(connection, queue, "due_at <= ?3", &now.as_millis(), limit)
}

pub(super) fn settle(
    connection: &Connection,
    queue: QueueRef,
    request: &str,
    outcome: &CheckOutcome,
    at: Timestamp,
) -> Result<(), Failure> {
    let found = find(connection, queue, "request_id = ?3", &request, 1)?;
    let Some(check) = found.into_iter().next() else {
        return Ok(());
    };
    let key = params![queue.app.as_bytes(), queue.network.as_str(), request];
    if let CheckOutcome::Later { step, due_at } = outcome {
        connection
            .prepare_cached(
                "update status_checks set step = ?4, due_at = ?5
                 where app_id = ?1 and network = ?2 and request_id = ?3",
            )?
            .execute(params![
                queue.app.as_bytes(),
                queue.network.as_str(),
                request,
                step,
                due_at.as_millis()
            ])?;
        return Ok(());
    }
    connection
        .prepare_cached(
            "delete from status_checks where app_id = ?1 and network = ?2 and request_id = ?3",
        )?
        .execute(key)?;
    let mut changed = 0;
    for id in check.deliveries {
        changed += change(connection, queue, id, outcome)?;
    }
    let Recount {
        failed,
        undelivered,
    } = outcome.recount(changed);
    let failed = usize::try_from(failed).unwrap_or(usize::MAX);
    let failed = std::iter::repeat_n(DeliveryStatus::Failed, failed);
    count(connection, queue, &EndCounts::of(failed), at)?;
    uncount(connection, queue, check.sent_at, undelivered)
}

/// Writes what the network says about a delivery. Returns how many deliveries that changed.
fn change(
    connection: &Connection,
    queue: QueueRef,
    id: DeliveryId,
    outcome: &CheckOutcome,
) -> Result<u64, Failure> {
    let app = queue.app.as_bytes();
    let changed = match outcome {
        CheckOutcome::Later { .. } | CheckOutcome::Over { note: None } => 0,
        CheckOutcome::Over { note } => {
            let sql = "update deliveries set reason = ?3 where app_id = ?1 and delivery_id = ?2";
            connection
                .prepare_cached(sql)?
                .execute(params![app, id.as_bytes(), note])?
        }
        CheckOutcome::Failed { reason } => {
            let failed = DeliveryStatus::Failed.as_str();
            let sql = "update deliveries set status = ?3, reason = ?4
                       where app_id = ?1 and delivery_id = ?2";
            connection
                .prepare_cached(sql)?
                .execute(params![app, id.as_bytes(), failed, reason])?
        }
        CheckOutcome::Again { due_at, .. } => {
            usize::from(bring_back(connection, queue.app, id, *due_at)?)
        }
    };
    Ok(u64::try_from(changed).unwrap_or(0))
}

/// Takes back that some were delivered: the network changed its mind about them.
fn uncount(
    connection: &Connection,
    queue: QueueRef,
    at: Timestamp,
    count: u64,
) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    connection
        .prepare_cached(
            "update delivery_hours set delivered = max(delivered - ?4, 0)
             where app_id = ?1 and network = ?2 and hour = ?3",
        )?
        .execute(params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            hour_of(at),
            i64::try_from(count).unwrap_or(i64::MAX)
        ])?;
    Ok(())
}
