//! `OutboxTable`: planned deliveries, written in the transaction that accepts the event.

use crate::Failure;
use crate::clicks::CLICK_COLUMNS;
use crate::deliveries::find;
use crate::outbox::settle::write_settled;
use crate::outbox::terminal;
use crate::rows::{page_start, read_row};
use crate::tables::SqliteTables;
use crate::write_batch::WriteBatch;
use rusqlite::{Connection, OptionalExtension, Statement, params};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::click::Click;
use tributary_domain::event::Event;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::delivery::{DeliveryFilter, delivery_id};
use tributary_domain::forwarding::lifecycle::EVENT_CHANGED;
use tributary_domain::forwarding::plan::PlannedDelivery;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, ClickId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::OutboxTable;
use tributary_store::records::{ClickRow, PlannedRow, TerminalCounts, hour_of};
use tributary_store::{DeliveryWithEvent, QueueRef, SettledDelivery};

pub(crate) fn find_click(
    connection: &Connection,
    app: AppId,
    click: ClickId,
) -> Result<Option<Click>, Failure> {
    let sql = format!("select {CLICK_COLUMNS} from clicks where app_id = ?1 and click_id = ?2");
    let row = connection
        .prepare_cached(&sql)?
        .query_row((app.as_bytes(), click.as_bytes()), read_row::<ClickRow>)
        .optional()?;
    Ok(row.map(ClickRow::read).transpose()?)
}

/// Inserts a delivery. One that is already there is kept.
const INSERT: &str =
    "insert into outbox (app_id, delivery_id, network, event_id, network_event, dedup_id,
                         planned_at, due_at, expires_at)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
     on conflict (app_id, delivery_id) do nothing";

/// Inserts a new event's planned deliveries into the outbox, with the batch's prepared statement.
pub(crate) fn insert_in(
    batch: &WriteBatch<'_>,
    event: &Event,
    planned: &[PlannedDelivery],
) -> Result<(), Failure> {
    if planned.is_empty() {
        return Ok(());
    }
    let statement = &batch.statements.delivery;
    statement.with(batch.connection, INSERT, |insert| {
        for one in planned {
            insert_row(insert, &PlannedRow::write(event, one, event.received_at))?;
        }
        Ok(())
    })
}

fn insert_row(insert: &mut Statement<'_>, row: &PlannedRow) -> Result<(), Failure> {
    insert.execute(params![
        row.app_id,
        row.delivery_id,
        row.network,
        row.event_id,
        row.network_event,
        row.dedup_id,
        row.planned_at,
        row.due_at,
        row.expires_at
    ])?;
    Ok(())
}

impl OutboxTable for SqliteTables<'_> {
    async fn insert_planned(&self, rows: &[PlannedRow]) -> Result<(), Failure> {
        let mut insert = self.0.prepare_cached(INSERT)?;
        for row in rows {
            insert_row(&mut insert, row)?;
        }
        Ok(())
    }

    async fn remove_unsent(&self, event: &Event) -> Result<(), Failure> {
        let mut withdraw = self.0.prepare_cached(
            "delete from outbox where app_id = ?1 and delivery_id = ?2 and attempts_made = 0
               and sending_at is null",
        )?;
        for network in Network::ALL {
            let id = delivery_id(event.id, network);
            withdraw.execute((event.app.as_bytes(), id.as_bytes()))?;
        }
        Ok(())
    }

    async fn lock_pending(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
        now: Timestamp,
    ) -> Result<BTreeSet<DeliveryId>, Failure> {
        let sql = "select 1 from outbox where app_id = ?1 and delivery_id = ?2
               and (sending_at is null
                    or not exists (select 1 from queues
                                   where queues.app_id = ?1 and queues.network = outbox.network
                                     and queues.leased_until > ?3))";
        let mut waits = self.0.prepare_cached(sql)?;
        let mut waiting = BTreeSet::new();
        for id in deliveries {
            if waits.exists(params![app.as_bytes(), id.as_bytes(), now.as_millis()])? {
                waiting.insert(*id);
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
        for id in deliveries {
            terminal::end(self.0, app, *id, DeliveryStatus::Cancelled, Some(why), at)?;
        }
        Ok(())
    }

    async fn add_terminal_counts(
        &self,
        ends: &BTreeMap<QueueRef, TerminalCounts>,
        at: Timestamp,
    ) -> Result<BTreeMap<QueueRef, (u64, u64)>, Failure> {
        let mut failures = BTreeMap::new();
        for (queue, counts) in ends {
            failures.insert(*queue, terminal::count(self.0, *queue, counts, at)?);
        }
        Ok(failures)
    }

    async fn write_settled(
        &self,
        queue: QueueRef,
        settled: &[SettledDelivery],
        at: Timestamp,
    ) -> Result<(), Failure> {
        for one in settled {
            write_settled(self.0, queue, one, at)?;
        }
        Ok(())
    }

    async fn delivery(
        &self,
        app: AppId,
        delivery: DeliveryId,
    ) -> Result<DeliveryWithEvent, Failure> {
        find::find_one(self.0, app, delivery)
    }

    async fn ended_matching(
        &self,
        app: AppId,
        filter: &DeliveryFilter,
        limit: u64,
    ) -> Result<Vec<DeliveryId>, Failure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let found = find::find(self.0, app, filter, page_start(None), limit)?;
        Ok(found.into_iter().map(|delivery| delivery.id).collect())
    }

    async fn requeue(
        &self,
        app: AppId,
        deliveries: &[DeliveryId],
        due_at: Timestamp,
    ) -> Result<u64, Failure> {
        let mut brought = 0;
        for id in deliveries {
            brought += u64::from(terminal::requeue(self.0, app, *id, due_at)?);
        }
        Ok(brought)
    }

    async fn write_ended(
        &self,
        app: AppId,
        deliveries: &[DeliveryId],
        status: Option<DeliveryStatus>,
        reason: &str,
    ) -> Result<u64, Failure> {
        let mut write = self.0.prepare_cached(
            "update deliveries set status = coalesce(?3, status), reason = ?4
             where app_id = ?1 and delivery_id = ?2",
        )?;
        let status = status.map(DeliveryStatus::as_str);
        let mut written = 0;
        for id in deliveries {
            written += write.execute(params![app.as_bytes(), id.as_bytes(), status, reason])?;
        }
        Ok(u64::try_from(written).unwrap_or(u64::MAX))
    }

    async fn subtract_delivered(
        &self,
        queue: QueueRef,
        at: Timestamp,
        count: u64,
    ) -> Result<(), Failure> {
        self.0
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

    async fn remove_cancelled(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<(), Failure> {
        let mut forget = self.0.prepare_cached(
            "delete from deliveries where app_id = ?1 and delivery_id = ?2 and status = ?3
               and attempts_made = 0 and reason in (?4, ?5, ?6)",
        )?;
        let status = DeliveryStatus::Cancelled.as_str();
        let [one, two, three] = EVENT_CHANGED;
        for id in deliveries {
            forget.execute(params![
                app.as_bytes(),
                id.as_bytes(),
                status,
                one,
                two,
                three
            ])?;
        }
        Ok(())
    }

    async fn was_sent(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<bool, Failure> {
        let sql = "select 1 from outbox where app_id = ?1 and delivery_id = ?2
               and (attempts_made > 0 or sending_at is not null)
             union all
             select 1 from deliveries where app_id = ?1 and delivery_id = ?2 and attempts_made > 0";
        let mut find = self.0.prepare_cached(sql)?;
        for id in deliveries {
            if find.exists((app.as_bytes(), id.as_bytes()))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn find_ended(
        &self,
        app: AppId,
        deliveries: &BTreeSet<DeliveryId>,
    ) -> Result<BTreeSet<DeliveryId>, Failure> {
        let sql = "select 1 from deliveries where app_id = ?1 and delivery_id = ?2";
        let mut find = self.0.prepare_cached(sql)?;
        let mut ended = BTreeSet::new();
        for id in deliveries {
            if find.exists((app.as_bytes(), id.as_bytes()))? {
                ended.insert(*id);
            }
        }
        Ok(ended)
    }
}
