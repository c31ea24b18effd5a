//! Requests whose outcome a network tells later.

use super::ends::{bring_back, count};
use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{check_deliveries_from_json, check_deliveries_to_json, hour_of};
use tributary_store::{CheckOutcome, QueueRef, StatusCheck};

pub(super) fn insert(
    connection: &Connection,
    queue: QueueRef,
    check: &StatusCheck,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into status_checks (app_id, network, request_id, sent_at, step, due_at, deliveries)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7) on conflict do nothing",
        )?
        .execute(params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            check.request,
            check.sent_at.as_millis(),
            check.step,
            check.due_at.as_millis(),
            check_deliveries_to_json(check)
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
        "select request_id, sent_at, step, due_at, deliveries from status_checks
         where app_id = ?1 and network = ?2 and {condition} order by due_at limit ?4"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let key = params![queue.app.as_bytes(), queue.network.as_str(), value, limit];
    let rows = statement.query_map(key, |row| {
        let check = StatusCheck {
            request: row.get(0)?,
            sent_at: Timestamp::from_millis(row.get(1)?),
            step: row.get(2)?,
            due_at: Timestamp::from_millis(row.get(3)?),
            deliveries: Vec::new(),
        };
        Ok((check, row.get::<_, String>(4)?))
    })?;
    rows.map(|row| {
        let (check, deliveries) = row?;
        Ok(StatusCheck {
            deliveries: check_deliveries_from_json(queue, &deliveries)?,
            ..check
        })
    })
    .collect()
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
    for id in check.deliveries {
        let app = queue.app.as_bytes();
        match outcome {
            CheckOutcome::Later { .. } | CheckOutcome::Over { note: None } => {}
            CheckOutcome::Over { note } => {
                let sql =
                    "update deliveries set reason = ?3 where app_id = ?1 and delivery_id = ?2";
                connection
                    .prepare_cached(sql)?
                    .execute(params![app, id.as_bytes(), note])?;
            }
            CheckOutcome::Failed { reason } => {
                let failed = DeliveryStatus::Failed;
                let sql = "update deliveries set status = ?3, reason = ?4
                           where app_id = ?1 and delivery_id = ?2";
                let changed = connection.prepare_cached(sql)?.execute(params![
                    app,
                    id.as_bytes(),
                    failed.as_str(),
                    reason
                ])?;
                let ends = std::iter::repeat_n(failed, changed);
                count(connection, queue, ends, at)?;
                uncount(connection, queue, check.sent_at)?;
            }
            CheckOutcome::Again { due_at, .. } => {
                bring_back(connection, queue.app, id, *due_at)?;
                uncount(connection, queue, check.sent_at)?;
            }
        }
    }
    Ok(())
}

/// Takes back that one was delivered: the network changed its mind about it.
fn uncount(connection: &Connection, queue: QueueRef, at: Timestamp) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "update delivery_hours set delivered = max(delivered - 1, 0)
             where app_id = ?1 and network = ?2 and hour = ?3",
        )?
        .execute(params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            hour_of(at)
        ])?;
    Ok(())
}
