//! The outbox: deliveries that are to be made, and what came of them.

use crate::rows::{APP_COLUMNS, app_row, app_secrets};
use crate::{Failure, SqliteStore, alerts, conversions, integrations, queues};
use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use std::time::Duration;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::alert::fails_in_bulk;
use tributary_domain::forwarding::course::{Next, too_late};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{
    END_COLUMNS, OutboxRow, attempts_to_json, check_deliveries_from_json, check_deliveries_to_json,
    count_ends, hour_of,
};
use tributary_store::{
    CheckOutcome, Gathered, LeaseId, LeasedQueue, Outbox, PendingDelivery, QueueRef, Settled,
    Settlement, StatusCheck, StoreError, StoreResult,
};

/// A queue that cannot be worked on, because its integration lacks something, is looked at again after this.
const INCOMPLETE_WAIT: Duration = Duration::from_mins(1);

pub(crate) fn outbox_row(row: &Row<'_>) -> rusqlite::Result<OutboxRow> {
    Ok(OutboxRow {
        app_id: row.get(0)?,
        delivery_id: row.get(1)?,
        network: row.get(2)?,
        event_id: row.get(3)?,
        network_event: row.get(4)?,
        dedup_id: row.get(5)?,
        planned_at: row.get(6)?,
        due_at: row.get(7)?,
        attempts_made: row.get(8)?,
        ambiguous_since: row.get(9)?,
        sending_at: row.get(10)?,
        attempts: row.get(11)?,
    })
}

fn queue_ref(row: &Row<'_>) -> rusqlite::Result<([u8; 16], String)> {
    Ok((row.get(0)?, row.get(1)?))
}

pub(crate) fn read_queue((app, network): ([u8; 16], String)) -> Result<QueueRef, Failure> {
    let app = AppId::from_bytes(app);
    let network = Network::parse(&network);
    Ok(QueueRef {
        app,
        network: network.ok_or_else(|| StoreError::corrupt("queues", "network", app))?,
    })
}

fn due_queues(
    connection: &Connection,
    network: Network,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<QueueRef>, Failure> {
    let rows: Vec<([u8; 16], String)> = connection
        .prepare_cached(
            "select integrations.app_id, integrations.network from integrations
             left join queues on queues.app_id = integrations.app_id
                             and queues.network = integrations.network
             where integrations.network = ?3 and integrations.enabled = 1 and queues.paused_at is null
               and coalesce(queues.not_before, 0) <= ?1 and coalesce(queues.leased_until, 0) <= ?1
               and (exists (select 1 from outbox
                            where outbox.app_id = integrations.app_id
                              and outbox.network = integrations.network and outbox.due_at <= ?1)
                    or exists (select 1 from status_checks
                               where status_checks.app_id = integrations.app_id
                                 and status_checks.network = integrations.network
                                 and status_checks.due_at <= ?1))
             order by coalesce(queues.leased_until, 0) limit ?2",
        )?
        .query_map((now.as_millis(), limit, network.as_str()), queue_ref)?
        .collect::<Result<_, _>>()?;
    rows.into_iter().map(read_queue).collect()
}

fn lease(
    connection: &Connection,
    queue: QueueRef,
    lease: LeaseId,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<LeasedQueue>, Failure> {
    let mut state = queues::find(connection, queue)?;
    let all = integrations::find_integrations(connection, queue.app)?;
    let found = all.into_iter().find(|one| one.network == queue.network);
    let Some(integration) = found.filter(|one| one.enabled && state.pause.is_none()) else {
        return Ok(None);
    };
    if !integration.is_active() {
        state.not_before = Some(now.plus(INCOMPLETE_WAIT));
        queues::write(connection, queue, &state)?;
        return Ok(None);
    }
    if !queues::take(connection, queue, lease, now, until)? {
        return Ok(None);
    }
    let sql = format!("select {APP_COLUMNS} from apps where app_id = ?1");
    let app = connection
        .prepare_cached(&sql)?
        .query_row([queue.app.as_bytes()], app_row)?;
    Ok(Some(LeasedQueue {
        app: app.read(app_secrets(connection, queue.app)?)?,
        integration,
        state,
    }))
}

fn due(
    connection: &Connection,
    queue: QueueRef,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<PendingDelivery>, Failure> {
    let sql = format!(
        "select {} from outbox where app_id = ?1 and network = ?2 and due_at <= ?3
         order by due_at limit ?4",
        OutboxRow::COLUMNS
    );
    let key = params![
        queue.app.as_bytes(),
        queue.network.as_str(),
        now.as_millis(),
        limit
    ];
    let rows: Vec<OutboxRow> = connection
        .prepare_cached(&sql)?
        .query_map(key, outbox_row)?
        .collect::<Result<_, _>>()?;
    let pending = rows.into_iter().map(OutboxRow::read_pending);
    Ok(pending.collect::<Result<_, _>>()?)
}

/// Whether the integration is the one that was leased, and on.
fn is_unchanged(connection: &Connection, queue: QueueRef, revision: i64) -> Result<bool, Failure> {
    let unchanged = connection
        .prepare_cached(
            "select 1 from integrations
             where app_id = ?1 and network = ?2 and revision = ?3 and enabled = 1",
        )?
        .exists(params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            revision
        ])?;
    Ok(unchanged)
}

fn begin(
    connection: &Connection,
    queue: QueueRef,
    deliveries: Vec<DeliveryId>,
    at: Timestamp,
) -> Result<Vec<DeliveryId>, Failure> {
    let mut statement = connection.prepare_cached(
        "update outbox set sending_at = ?3 where app_id = ?1 and delivery_id = ?2",
    )?;
    let mut begun = Vec::with_capacity(deliveries.len());
    for id in deliveries {
        let key = params![queue.app.as_bytes(), id.as_bytes(), at.as_millis()];
        if statement.execute(key)? == 1 {
            begun.push(id);
        }
    }
    Ok(begun)
}

/// Moves a delivery to those that came to their end; false when it is not in the outbox.
pub(crate) fn end(
    connection: &Connection,
    queue: QueueRef,
    id: DeliveryId,
    status: DeliveryStatus,
    reason: Option<&str>,
    at: Timestamp,
) -> Result<bool, Failure> {
    let moved = connection
        .prepare_cached(
            "insert into deliveries (app_id, delivery_id, network, event_id, network_event, dedup_id,
                                     planned_at, expires_at, settled_at, status, reason, attempts_made,
                                     attempts)
             select app_id, delivery_id, network, event_id, network_event, dedup_id, planned_at,
                    expires_at, ?3, ?4, ?5, attempts_made, attempts
             from outbox where app_id = ?1 and delivery_id = ?2",
        )?
        .execute(params![
            queue.app.as_bytes(),
            id.as_bytes(),
            at.as_millis(),
            status.as_str(),
            reason
        ])?;
    connection
        .prepare_cached("delete from outbox where app_id = ?1 and delivery_id = ?2")?
        .execute((queue.app.as_bytes(), id.as_bytes()))?;
    Ok(moved == 1)
}

/// Counts how deliveries ended. Gives how many failed in this hour, before and now.
pub(crate) fn count(
    connection: &Connection,
    queue: QueueRef,
    ends: impl Iterator<Item = DeliveryStatus>,
    at: Timestamp,
) -> Result<(u64, u64), Failure> {
    let counts = count_ends(ends);
    if counts.iter().all(|count| *count == 0) {
        return Ok((0, 0));
    }
    let updates: Vec<String> = END_COLUMNS
        .split(", ")
        .map(|column| format!("{column} = {column} + excluded.{column}"))
        .collect();
    let sql = format!(
        "insert into delivery_hours (app_id, network, hour, {END_COLUMNS})
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         on conflict (app_id, network, hour) do update set {}
         returning failed",
        updates.join(", ")
    );
    let failed: i64 = connection.prepare_cached(&sql)?.query_row(
        params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            hour_of(at),
            counts[0],
            counts[1],
            counts[2],
            counts[3],
            counts[4],
            counts[5]
        ],
        |row| row.get(0),
    )?;
    let whole = |count: i64| u64::try_from(count).unwrap_or(0);
    Ok((whole(failed - counts[3]), whole(failed)))
}

fn write_settled(
    connection: &Connection,
    queue: QueueRef,
    settled: &Settled,
    at: Timestamp,
) -> Result<(), Failure> {
    let (due_at, ambiguous_since) = match &settled.next {
        Next::Waits {
            due_at,
            ambiguous_since,
        } => (due_at.as_millis(), *ambiguous_since),
        Next::Ends { .. } => (at.as_millis(), None),
    };
    connection
        .prepare_cached(
            "update outbox set sending_at = null, due_at = ?3, ambiguous_since = ?4, attempts_made = ?5,
                               attempts = ?6
             where app_id = ?1 and delivery_id = ?2",
        )?
        .execute(params![
            queue.app.as_bytes(),
            settled.id.as_bytes(),
            due_at,
            ambiguous_since.map(Timestamp::as_millis),
            settled.attempts_made,
            attempts_to_json(&settled.attempts)
        ])?;
    if let Next::Ends { status, reason } = &settled.next {
        end(
            connection,
            queue,
            settled.id,
            *status,
            reason.as_deref(),
            at,
        )?;
    }
    Ok(())
}

fn settle(
    connection: &Connection,
    queue: QueueRef,
    lease: LeaseId,
    mut settlement: Settlement,
) -> Result<bool, Failure> {
    if !queues::is_held(connection, queue, lease)? {
        return Ok(false);
    }
    let at = settlement.at;
    for settled in &settlement.settled {
        write_settled(connection, queue, settled, at)?;
    }
    for check in &settlement.checks {
        insert_check(connection, queue, check)?;
    }
    let ends = settlement
        .settled
        .iter()
        .filter_map(|settled| match settled.next {
            Next::Ends { status, .. } => Some(status),
            Next::Waits { .. } => None,
        });
    let ends = ends.filter(|_| !settlement.is_test);
    let (failed_before, failed_now) = count(connection, queue, ends, at)?;
    if let Some(alert) = &settlement.failing
        && fails_in_bulk(failed_before, failed_now)
    {
        alerts::insert(connection, alert)?;
    }
    let all = integrations::find_integrations(connection, queue.app)?;
    let changed = all
        .iter()
        .any(|one| one.network == queue.network && one.revision.number() != settlement.revision);
    if changed && settlement.state.pause.is_some() {
        settlement.state.resume();
    } else if let Some(alert) = &settlement.paused
        && settlement.state.pause.is_some()
    {
        alerts::insert(connection, alert)?;
    }
    queues::write(connection, queue, &settlement.state)?;
    Ok(true)
}

fn insert_check(
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

fn find_checks(
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

fn settle_check(
    connection: &Connection,
    queue: QueueRef,
    request: &str,
    outcome: &CheckOutcome,
    at: Timestamp,
) -> Result<(), Failure> {
    let found = find_checks(connection, queue, "request_id = ?3", &request, 1)?;
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

/// Puts a delivery that came to its end back into the outbox, as if nobody had ever been unsure about it.
pub(crate) fn bring_back(
    connection: &Connection,
    app: AppId,
    id: DeliveryId,
    due_at: Timestamp,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into outbox (app_id, delivery_id, network, event_id, network_event, dedup_id,
                                 planned_at, due_at, expires_at, attempts_made, attempts)
             select app_id, delivery_id, network, event_id, network_event, dedup_id, planned_at, ?3,
                    expires_at, attempts_made, attempts
             from deliveries where app_id = ?1 and delivery_id = ?2
             on conflict (app_id, delivery_id) do nothing",
        )?
        .execute(params![app.as_bytes(), id.as_bytes(), due_at.as_millis()])?;
    connection
        .prepare_cached("delete from deliveries where app_id = ?1 and delivery_id = ?2")?
        .execute((app.as_bytes(), id.as_bytes()))?;
    Ok(())
}

/// A delivery that nobody comes back for.
struct Late {
    queue: QueueRef,
    id: DeliveryId,
    /// The first attempt of which nobody knows what came of it.
    ambiguous_since: Option<Timestamp>,
}

/// Deliveries that grew too old, except for those in the hands of somebody who holds their queue.
fn find_late(connection: &Connection, now: Timestamp, limit: u32) -> Result<Vec<Late>, Failure> {
    type Columns = ([u8; 16], String, [u8; 16], Option<i64>);
    let rows: Vec<Columns> = connection
        .prepare_cached(
            "select app_id, network, delivery_id, coalesce(ambiguous_since, sending_at) from outbox
             where expires_at <= ?1
               and (sending_at is null
                    or not exists (select 1 from queues
                                   where queues.app_id = outbox.app_id
                                     and queues.network = outbox.network
                                     and queues.leased_until > ?1))
             limit ?2",
        )?
        .query_map((now.as_millis(), limit), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_, _>>()?;
    rows.into_iter()
        .map(|(app, network, delivery, ambiguous_since)| {
            Ok(Late {
                queue: read_queue((app, network))?,
                id: DeliveryId::from_bytes(delivery),
                ambiguous_since: ambiguous_since.map(Timestamp::from_millis),
            })
        })
        .collect()
}

fn expire(connection: &Connection, late: Vec<Late>, now: Timestamp) -> Result<u64, Failure> {
    let mut ended = 0;
    for Late {
        queue,
        id,
        ambiguous_since,
    } in late
    {
        let (status, reason) = too_late(queue.network, ambiguous_since);
        if end(connection, queue, id, status, Some(reason), now)? {
            count(connection, queue, [status].into_iter(), now)?;
            ended += 1;
        }
    }
    Ok(ended)
}

#[async_trait]
impl Outbox for SqliteStore {
    async fn due_queues(
        &self,
        network: Network,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<QueueRef>> {
        self.read("due_queues", move |connection| {
            due_queues(connection, network, now, limit)
        })
        .await
    }

    async fn lease_queue(
        &self,
        queue: QueueRef,
        lease_id: LeaseId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Option<LeasedQueue>> {
        self.write("lease_queue", move |connection| {
            lease(connection, queue, lease_id, now, until)
        })
        .await
    }

    async fn renew_lease(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        until: Timestamp,
    ) -> StoreResult<bool> {
        self.write("renew_lease", move |connection| {
            queues::hold(connection, queue, lease, until)
        })
        .await
    }

    async fn release_queue(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
    ) -> StoreResult<()> {
        self.write("release_queue", move |connection| {
            queues::release(connection, queue, lease, now)
        })
        .await
    }

    async fn due_deliveries(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        revision: i64,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Option<Vec<PendingDelivery>>> {
        self.read("due_deliveries", move |connection| {
            let is_held = queues::is_held(connection, queue, lease)?;
            if !is_held || !is_unchanged(connection, queue, revision)? {
                return Ok(None);
            }
            due(connection, queue, now, limit).map(Some)
        })
        .await
    }

    async fn begin_sending(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        deliveries: Vec<DeliveryId>,
        at: Timestamp,
    ) -> StoreResult<Option<Vec<DeliveryId>>> {
        self.write("begin_sending", move |connection| {
            if !queues::is_held(connection, queue, lease)? {
                return Ok(None);
            }
            begin(connection, queue, deliveries, at).map(Some)
        })
        .await
    }

    async fn gather(
        &self,
        queue: QueueRef,
        pending: Vec<PendingDelivery>,
    ) -> StoreResult<Vec<Gathered>> {
        self.read("gather_conversions", move |connection| {
            let gathered = pending
                .into_iter()
                .map(|pending| conversions::gather(connection, queue, pending));
            gathered.collect()
        })
        .await
    }

    async fn settle(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        settlement: Settlement,
    ) -> StoreResult<bool> {
        self.write("settle_deliveries", move |connection| {
            settle(connection, queue, lease, settlement)
        })
        .await
    }

    async fn due_status_checks(
        &self,
        queue: QueueRef,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<StatusCheck>> {
        self.read("due_status_checks", move |connection| {
            find_checks(connection, queue, "due_at <= ?3", &now.as_millis(), limit)
        })
        .await
    }

    async fn settle_status_check(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        request: String,
        outcome: CheckOutcome,
        at: Timestamp,
    ) -> StoreResult<bool> {
        self.write("settle_status_check", move |connection| {
            if !queues::is_held(connection, queue, lease)? {
                return Ok(false);
            }
            settle_check(connection, queue, &request, &outcome, at)?;
            Ok(true)
        })
        .await
    }

    async fn expire_deliveries(&self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        // Looked for by a reader: it may have to read through all that waits.
        let late = self
            .read("late_deliveries", move |connection| {
                find_late(connection, now, limit)
            })
            .await?;
        if late.is_empty() {
            return Ok(0);
        }
        self.write("expire_deliveries", move |connection| {
            expire(connection, late, now)
        })
        .await
    }

    async fn remove_deliveries(&self, settled_before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_deliveries", move |connection| {
            let removed = connection
                .prepare_cached(
                    "delete from deliveries where (app_id, delivery_id) in (
                         select app_id, delivery_id from deliveries where settled_at < ?1 limit ?2)",
                )?
                .execute((settled_before.as_millis(), limit))?;
            connection
                .prepare_cached("delete from delivery_hours where hour < ?1")?
                .execute([hour_of(settled_before)])?;
            connection
                .prepare_cached("delete from alerts where due_at is null and at < ?1")?
                .execute([settled_before.as_millis()])?;
            Ok(u64::try_from(removed).unwrap_or(0))
        })
        .await
    }
}
