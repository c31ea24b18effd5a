//! Deliveries as they are planned, in the transaction that accepts their event.

use crate::Failure;
use crate::clicks::CLICK_COLUMNS;
use crate::outbox::settle::write_settled;
use crate::outbox::{checks, ends};
use crate::rows::read_row;
use crate::tables::Tables;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::click::Click;
use tributary_domain::event::Event;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::course::EVENT_CHANGED;
use tributary_domain::forwarding::delivery::delivery_id;
use tributary_domain::forwarding::plan::Planned;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, ClickId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::OutboxTable;
use tributary_store::records::{ClickRow, EndCounts, PlannedRow};
use tributary_store::{QueueRef, Settled, StatusCheck};

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

/// Puts deliveries of a new event into the outbox.
pub(crate) fn insert(
    connection: &Connection,
    event: &Event,
    planned: &[Planned],
    at: Timestamp,
) -> Result<(), Failure> {
    let row = |one| PlannedRow::write(event, one, at);
    insert_rows(connection, &planned.iter().map(row).collect::<Vec<_>>())
}

/// Puts deliveries into the outbox that are not in it.
fn insert_rows(connection: &Connection, rows: &[PlannedRow]) -> Result<(), Failure> {
    for row in rows {
        connection
            .prepare_cached(
                "insert into outbox (app_id, delivery_id, network, event_id, network_event, dedup_id,
                                     planned_at, due_at, expires_at)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                 on conflict (app_id, delivery_id) do nothing",
            )?
            .execute(params![
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
    }
    Ok(())
}

impl OutboxTable for Tables<'_> {
    async fn insert_planned(&self, rows: &[PlannedRow]) -> Result<(), Failure> {
        insert_rows(self.0, rows)
    }

    async fn withdraw(&self, event: &Event) -> Result<(), Failure> {
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

    async fn lock_waiting(
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
            ends::end(self.0, app, *id, DeliveryStatus::Cancelled, Some(why), at)?;
        }
        Ok(())
    }

    async fn count_ends(
        &self,
        ends: &BTreeMap<QueueRef, EndCounts>,
        at: Timestamp,
    ) -> Result<BTreeMap<QueueRef, (u64, u64)>, Failure> {
        let mut failures = BTreeMap::new();
        for (queue, counts) in ends {
            failures.insert(*queue, ends::count(self.0, *queue, counts, at)?);
        }
        Ok(failures)
    }

    async fn write_settled(
        &self,
        queue: QueueRef,
        settled: &[Settled],
        at: Timestamp,
    ) -> Result<(), Failure> {
        for one in settled {
            write_settled(self.0, queue, one, at)?;
        }
        Ok(())
    }

    async fn insert_checks(&self, queue: QueueRef, checks: &[StatusCheck]) -> Result<(), Failure> {
        for check in checks {
            checks::insert(self.0, queue, check)?;
        }
        Ok(())
    }

    async fn forget_cancelled(
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

    async fn ended(
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
