//! Finished deliveries: moving them out of the outbox, requeueing them, and counting them.

use crate::Failure;
use crate::params::{Param, column, placeholders};
use crate::rows::{id, uuid};
use crate::tx::Tx;
use std::collections::BTreeMap;
use tributary_domain::due_work::WorkKind;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::vocabulary::id::{AppId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::{TerminalCounts, hour_of, queue_ref};

/// A delivery to move out of the outbox, with its final status.
pub(crate) struct TerminalDelivery<'a> {
    pub(crate) id: DeliveryId,
    pub(crate) status: DeliveryStatus,
    pub(crate) reason: Option<&'a str>,
    /// The number of attempts, and the attempts as JSON; `None` leaves both unchanged.
    pub(crate) attempts: Option<(i64, String)>,
}

/// Locks the outbox rows of these deliveries in id order. Every transaction that moves deliveries
/// must do this.
pub(crate) async fn lock(tx: &Tx, app: AppId, ids: &[DeliveryId]) -> Result<(), Failure> {
    let ids = column(ids, |id| uuid(id.as_bytes()));
    tx.execute(
        "select 1 from outbox where app_id = $1 and delivery_id = any($2)
         order by delivery_id for update",
        &[&uuid(app.as_bytes()), &ids],
    )
    .await?;
    Ok(())
}

/// Moves an app's locked deliveries from the outbox to `deliveries`. A row that is already in
/// `deliveries` is kept.
pub(crate) async fn end(
    tx: &Tx,
    app: AppId,
    ended: &[TerminalDelivery<'_>],
    at: Timestamp,
) -> Result<(), Failure> {
    if ended.is_empty() {
        return Ok(());
    }
    let app = uuid(app.as_bytes());
    let ids = column(ended, |one| uuid(one.id.as_bytes()));
    tx.execute(
        "insert into deliveries (app_id, delivery_id, network, event_id, network_event, dedup_id,
                                 planned_at, expires_at, settled_at, status, reason, attempts_made,
                                 attempts)
         select outbox.app_id, outbox.delivery_id, outbox.network, outbox.event_id,
                outbox.network_event, outbox.dedup_id, outbox.planned_at, outbox.expires_at, $2,
                ended.status, ended.reason, coalesce(ended.attempts_made, outbox.attempts_made),
                coalesce(ended.attempts, outbox.attempts)
         from unnest($3, $4, $5, $6, $7)
              as ended (delivery_id, status, reason, attempts_made, attempts)
         join outbox on outbox.app_id = $1 and outbox.delivery_id = ended.delivery_id
         on conflict (app_id, delivery_id) do nothing",
        &[
            &app,
            &at.as_millis(),
            &ids,
            &column(ended, |one| one.status.as_str()),
            &column(ended, |one| one.reason),
            &column(ended, |one| one.attempts.as_ref().map(|(count, _)| *count)),
            &column(ended, |one| {
                one.attempts.as_ref().map(|(_, attempts)| attempts.as_str())
            }),
        ],
    )
    .await?;
    let sql = "delete from outbox where app_id = $1 and delivery_id = any($2)";
    tx.execute(sql, &[&app, &ids]).await?;
    Ok(())
}

/// Moves finished deliveries back into the outbox. They no longer count as ambiguous, even if the
/// outcome of an earlier attempt is unknown. Returns the number of moved deliveries.
pub(crate) async fn requeue(
    tx: &Tx,
    app: AppId,
    ids: &[DeliveryId],
    due_at: Timestamp,
) -> Result<u64, Failure> {
    if ids.is_empty() {
        return Ok(0);
    }
    let key = uuid(app.as_bytes());
    let ids = column(ids, |id| uuid(id.as_bytes()));
    tx.execute(
        "insert into outbox (app_id, delivery_id, network, event_id, network_event, dedup_id,
                             planned_at, due_at, expires_at, attempts_made, attempts)
         select app_id, delivery_id, network, event_id, network_event, dedup_id, planned_at, $3,
                expires_at, attempts_made, attempts
         from deliveries where app_id = $1 and delivery_id = any($2)
         on conflict (app_id, delivery_id) do nothing",
        &[&key, &ids, &due_at.as_millis()],
    )
    .await?;
    let sql = "delete from deliveries where app_id = $1 and delivery_id = any($2)
               returning app_id, network";
    let moved = tx.query(sql, &[&key, &ids]).await?;
    for row in &moved {
        let network = queue_ref(id(row, 0)?, row.try_get(1)?)?.network;
        tx.hint(WorkKind::Deliveries(network), app, due_at);
    }
    Ok(u64::try_from(moved.len()).unwrap_or(u64::MAX))
}

/// Adds finished deliveries to the counts of the current hour. Returns the number of failures per
/// queue in this hour, before and after the addition.
pub(crate) async fn count(
    tx: &Tx,
    ends: &BTreeMap<QueueRef, TerminalCounts>,
    at: Timestamp,
) -> Result<BTreeMap<QueueRef, (u64, u64)>, Failure> {
    let counted = ends.iter().filter(|(_, counts)| !counts.is_empty());
    let counted: Vec<(&QueueRef, &TerminalCounts)> = counted.collect();
    if counted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let apps = column(&counted, |(queue, _)| uuid(queue.app.as_bytes()));
    let networks = column(&counted, |(queue, _)| queue.network.as_str());
    let hours = vec![hour_of(at); counted.len()];
    let counts: Vec<Vec<i64>> = (0..6)
        .map(|index| column(&counted, |(_, counts)| counts.0[index]))
        .collect();
    let mut params: Vec<&dyn Param> = vec![&apps, &networks, &hours];
    params.extend(counts.iter().map(|counts| counts as &dyn Param));
    let sql = format!(
        "insert into delivery_hours as stored (app_id, network, hour, {})
         select * from unnest({})
         on conflict (app_id, network, hour) do update set {}
         returning app_id, network, failed",
        TerminalCounts::COLUMNS,
        placeholders(params.len()),
        TerminalCounts::upsert_additions("stored")
    );
    let mut failures = BTreeMap::new();
    for row in &tx.query(&sql, &params).await? {
        let queue = queue_ref(id(row, 0)?, row.try_get(1)?)?;
        let counts = ends.get(&queue).copied().unwrap_or_default();
        failures.insert(queue, counts.failures_before_and_after(row.try_get(2)?));
    }
    Ok(failures)
}
