//! `OutboxTable`: planned deliveries, written in the transaction that accepts the event.

use crate::clicks::CLICK_COLUMNS;
use crate::deliveries::find;
use crate::outbox::settle::write_settled;
use crate::outbox::terminal::{self, TerminalDelivery};
use crate::params::{Param, column, placeholders};
use crate::rows::{id, qualified, read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, queues};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::click::Click;
use tributary_domain::due_work::WorkKind;
use tributary_domain::event::Event;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::delivery::{DeliveryFilter, delivery_id};
use tributary_domain::forwarding::lifecycle::EVENT_CHANGED;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, ClickId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::OutboxTable;
use tributary_store::records::{ClickRow, PlannedRow, TerminalCounts, hour_of, queue_ref};
use tributary_store::{DeliveryWithEvent, QueueRef, SettledDelivery};
use uuid::Uuid;

/// Finds clicks by app and id.
pub(crate) async fn find_clicks(
    tx: &Tx,
    wanted: BTreeSet<(AppId, ClickId)>,
) -> Result<BTreeMap<(AppId, ClickId), Click>, Failure> {
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let wanted: Vec<_> = wanted.into_iter().collect();
    let sql = format!(
        "select {} from unnest($1, $2) as wanted (app_id, click_id)
         join clicks on clicks.app_id = wanted.app_id and clicks.click_id = wanted.click_id
         /* distributed: where clicks.app_id = any($1) */",
        qualified("clicks", CLICK_COLUMNS)
    );
    let apps = column(&wanted, |(app, _)| uuid(app.as_bytes()));
    let clicks = column(&wanted, |(_, click)| uuid(click.as_bytes()));
    let rows = tx.query(&sql, &[&apps, &clicks]).await?;
    let click = |row| {
        let click = read_row::<ClickRow>(row)?.read()?;
        Ok(((click.app, click.id), click))
    };
    rows.iter().map(click).collect()
}

/// Inserts planned deliveries into the outbox. Deliveries that are already there are kept.
pub(crate) async fn insert_rows(tx: &Tx, rows: &[PlannedRow]) -> Result<(), Failure> {
    const COLUMNS: &str = "app_id, delivery_id, network, event_id, network_event, dedup_id, \
         planned_at, due_at, expires_at";
    if rows.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "insert into outbox ({COLUMNS}) select * from unnest({})
         on conflict (app_id, delivery_id) do nothing",
        placeholders(9)
    );
    tx.execute(
        &sql,
        &[
            &column(rows, |row| uuid(&row.app_id)),
            &column(rows, |row| uuid(&row.delivery_id)),
            &column(rows, |row| row.network.as_str()),
            &column(rows, |row| uuid(&row.event_id)),
            &column(rows, |row| row.network_event.as_str()),
            &column(rows, |row| row.dedup_id.as_str()),
            &column(rows, |row| row.planned_at),
            &column(rows, |row| row.due_at),
            &column(rows, |row| row.expires_at),
        ],
    )
    .await?;
    for row in rows {
        let queue = queue_ref(row.app_id, &row.network)?;
        let due_at = Timestamp::from_millis(row.due_at);
        tx.hint(WorkKind::Deliveries(queue.network), queue.app, due_at);
    }
    Ok(())
}

impl OutboxTable for Tx {
    async fn insert_planned(&self, rows: &[PlannedRow]) -> Result<(), Failure> {
        insert_rows(self, rows).await
    }

    async fn remove_unsent(&self, event: &Event) -> Result<(), Failure> {
        let ids = column(&Network::ALL, |network| {
            uuid(delivery_id(event.id, *network).as_bytes())
        });
        self.execute(
            "delete from outbox where app_id = $1 and delivery_id = any($2) and attempts_made = 0
               and sending_at is null",
            &[&uuid(event.app.as_bytes()), &ids],
        )
        .await?;
        Ok(())
    }

    async fn lock_pending(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
        now: Timestamp,
    ) -> Result<BTreeSet<DeliveryId>, Failure> {
        let rows = self
            .query(
                "select delivery_id,
                        sending_at is null
                        or not exists (select 1 from queues
                                       where queues.app_id = $1
                                         and queues.network = outbox.network
                                         and queues.leased_until > $3) as waits
                 from outbox
                 where app_id = $1 and delivery_id = any($2) order by delivery_id for update",
                &[&uuid(app.as_bytes()), &uuids(deliveries), &now.as_millis()],
            )
            .await?;
        let mut waiting = BTreeSet::new();
        for row in &rows {
            if row.try_get("waits")? {
                waiting.insert(DeliveryId::from_bytes(id(row, "delivery_id")?));
            }
        }
        Ok(waiting)
    }

    async fn cancel(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
        why: &'static str,
        at: Timestamp,
    ) -> Result<(), Failure> {
        let cancelled = |id: &DeliveryId| TerminalDelivery {
            id: *id,
            status: DeliveryStatus::Cancelled,
            reason: Some(why),
            attempts: None,
        };
        let ended: Vec<TerminalDelivery<'_>> = deliveries.iter().map(cancelled).collect();
        terminal::end(self, app, &ended, at).await
    }

    async fn add_terminal_counts(
        &self,
        ends: &BTreeMap<QueueRef, TerminalCounts>,
        at: Timestamp,
    ) -> Result<BTreeMap<QueueRef, (u64, u64)>, Failure> {
        terminal::count(self, ends, at).await
    }

    async fn write_settled(
        &self,
        queue: QueueRef,
        settled: &[SettledDelivery],
        at: Timestamp,
    ) -> Result<(), Failure> {
        write_settled(self, queue, settled, at).await
    }

    async fn delivery(
        &self,
        app: AppId,
        delivery: DeliveryId,
    ) -> Result<DeliveryWithEvent, Failure> {
        find::find_one(self, app, delivery).await
    }

    async fn ended_matching(
        &self,
        app: AppId,
        filter: &DeliveryFilter,
        limit: u64,
    ) -> Result<Vec<DeliveryId>, Failure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        find::find_ended_ids(self, app, filter, limit).await
    }

    async fn requeue(
        &self,
        app: AppId,
        deliveries: &[DeliveryId],
        due_at: Timestamp,
    ) -> Result<u64, Failure> {
        terminal::requeue(self, app, deliveries, due_at).await
    }

    async fn write_ended(
        &self,
        app: AppId,
        deliveries: &[DeliveryId],
        status: Option<DeliveryStatus>,
        reason: &str,
    ) -> Result<u64, Failure> {
        self.execute_counting(
            "update deliveries set status = coalesce($3, status), reason = $4
             where app_id = $1 and delivery_id = any($2)",
            &[
                &uuid(app.as_bytes()),
                &column(deliveries, |id| uuid(id.as_bytes())),
                &status.map(DeliveryStatus::as_str),
                &reason,
            ],
        )
        .await
    }

    async fn subtract_delivered(
        &self,
        queue: QueueRef,
        at: Timestamp,
        count: u64,
    ) -> Result<(), Failure> {
        let (app, network) = queues::key_columns(queue);
        self.execute(
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

    async fn remove_cancelled(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<(), Failure> {
        self.execute(
            "delete from deliveries where app_id = $1 and delivery_id = any($2) and status = $3
               and attempts_made = 0 and reason = any($4)",
            &[
                &uuid(app.as_bytes()),
                &uuids(deliveries),
                &DeliveryStatus::Cancelled.as_str(),
                &EVENT_CHANGED.to_vec(),
            ],
        )
        .await?;
        Ok(())
    }

    async fn was_sent(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<bool, Failure> {
        let sql = "select exists (select 1 from outbox
                                  where app_id = $1 and delivery_id = any($2)
                                    and (attempts_made > 0 or sending_at is not null))
                       or exists (select 1 from deliveries
                                  where app_id = $1 and delivery_id = any($2)
                                    and attempts_made > 0)";
        let params: [&dyn Param; 2] = [&uuid(app.as_bytes()), &uuids(deliveries)];
        Ok(self.query_one(sql, &params).await?.try_get(0)?)
    }

    async fn find_ended(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<BTreeSet<DeliveryId>, Failure> {
        let sql = "select delivery_id from deliveries where app_id = $1 and delivery_id = any($2)";
        let params: [&dyn Param; 2] = [&uuid(app.as_bytes()), &uuids(deliveries)];
        let rows = self.query(sql, &params).await?;
        rows.iter()
            .map(|row| Ok(DeliveryId::from_bytes(id(row, "delivery_id")?)))
            .collect()
    }
}

fn uuids(deliveries: &BTreeSet<DeliveryId>) -> Vec<Uuid> {
    deliveries.iter().map(|id| uuid(id.as_bytes())).collect()
}
