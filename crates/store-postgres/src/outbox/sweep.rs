//! Expires old deliveries, and deletes finished deliveries after their retention period.
//!
//! Rows are found on all shards, then changed by key, app by app.

use super::terminal::{self, TerminalDelivery};
use crate::Failure;
use crate::params::column;
use crate::rows::{id, uuid};
use crate::tx::Tx;
use std::collections::BTreeMap;
use tokio_postgres::Row;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::{ExpiredDelivery, ExpiredRow, TerminalCounts, hour_of};
use uuid::Uuid;

/// Moves expired deliveries out of the outbox. Returns the number of moved deliveries.
pub(super) async fn expire(tx: &Tx, now: Timestamp, limit: u32) -> Result<u64, Failure> {
    let rows = tx
        .query(
            "select app_id, delivery_id from outbox
             where expires_at <= $1
               and (outbox.sending_at is null
                    or not exists (select 1 from queues
                                   where queues.app_id = outbox.app_id
                                     and queues.network = outbox.network
                                     and queues.leased_until > $1))
             limit $2",
            &[&now.as_millis(), &i64::from(limit)],
        )
        .await?;
    let mut by_app: BTreeMap<AppId, Vec<Uuid>> = BTreeMap::new();
    for row in &rows {
        let app = AppId::from_bytes(id(row, 0)?);
        by_app.entry(app).or_default().push(row.try_get(1)?);
    }
    let mut counted: BTreeMap<QueueRef, TerminalCounts> = BTreeMap::new();
    let mut expired = 0;
    for (app, ids) in by_app {
        let mut ended = Vec::new();
        for late in lock(tx, app, &ids, now).await? {
            counted.entry(late.queue).or_default().add([late.status]);
            expired += 1;
            ended.push(TerminalDelivery {
                id: late.id,
                status: late.status,
                reason: Some(late.reason),
                attempts: None,
            });
        }
        terminal::end(tx, app, &ended, now).await?;
    }
    terminal::count(tx, &counted, now).await?;
    Ok(expired)
}

/// Locks the deliveries that are still expired. Skips rows that another transaction has locked.
async fn lock(
    tx: &Tx,
    app: AppId,
    ids: &Vec<Uuid>,
    now: Timestamp,
) -> Result<Vec<ExpiredDelivery>, Failure> {
    let sql = format!(
        "select {} from outbox
         where app_id = $1 and delivery_id = any($2) and expires_at <= $3
           and (outbox.sending_at is null
                or not exists (select 1 from queues
                               where queues.app_id = $1
                                 and queues.network = outbox.network
                                 and queues.leased_until > $3))
         order by delivery_id for update skip locked",
        ExpiredRow::COLUMNS
    );
    let params = [&uuid(app.as_bytes()) as _, ids as _, &now.as_millis() as _];
    let late = |row: &Row| {
        let row = ExpiredRow {
            app_id: id(row, 0)?,
            network: row.try_get(1)?,
            delivery_id: id(row, 2)?,
            ambiguous_since: row.try_get(3)?,
            sending_at: row.try_get(4)?,
        };
        Ok(row.read()?)
    };
    tx.query(&sql, &params).await?.iter().map(late).collect()
}

/// Deletes deliveries that finished before a timestamp, and hourly counts and alerts from before
/// it. Returns the number of deleted deliveries.
pub(super) async fn remove(tx: &Tx, before: Timestamp, limit: u32) -> Result<u64, Failure> {
    let rows = tx
        .query(
            "select app_id, delivery_id from deliveries where settled_at < $1 limit $2",
            &[&before.as_millis(), &i64::from(limit)],
        )
        .await?;
    let mut keys: Vec<(Uuid, Uuid)> = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<_, tokio_postgres::Error>>()?;
    keys.sort_unstable();
    // Checked again, because a delivery may have been requeued and finished again meanwhile.
    let removed = tx
        .execute_counting(
            "delete from deliveries using unnest($1, $2) as old (app_id, delivery_id)
             where deliveries.app_id = old.app_id and deliveries.delivery_id = old.delivery_id
               and deliveries.settled_at < $3
               /* distributed: and deliveries.app_id = any($1) */",
            &[
                &column(&keys, |(app, _)| *app),
                &column(&keys, |(_, delivery)| *delivery),
                &before.as_millis(),
            ],
        )
        .await?;
    let sql = "delete from delivery_hours where hour < $1";
    tx.execute(sql, &[&hour_of(before)]).await?;
    let sql = "delete from alerts where due_at is null and at < $1";
    tx.execute(sql, &[&before.as_millis()]).await?;
    Ok(removed)
}
