//! The outbox: pending deliveries and their results.

pub(crate) mod due_queues;
mod sending;
pub(crate) mod settle;
pub(crate) mod status_checks;
mod sweep;
pub(crate) mod terminal;
mod waits;

use crate::tables::{SqliteTables, run};
use crate::{SqliteStore, conversions};
use async_trait::async_trait;
use tributary_domain::forwarding::quota::QuotaTurns;
use tributary_domain::forwarding::waits::LatestEnds;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{
    find_share, lease_queue, lock_lease, release_queue, renew_lease, reserve_turns,
    settle_deliveries, settle_status_check,
};
use tributary_store::records::count_to_u64;
use tributary_store::{
    CheckOutcome, DeliverySettlement, GatheredDelivery, LeaseId, LeaseRequest, LeasedQueue, Outbox,
    PendingDelivery, QueueRef, SettledQueue, StatusCheck, StoreResult,
};

#[async_trait]
impl Outbox for SqliteStore {
    async fn due_queues(
        &self,
        network: Network,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<QueueRef>> {
        self.read("due_queues", move |connection| {
            due_queues::find_due_queues(connection, network, now, limit)
        })
        .await
    }

    async fn end_mistaken_waits(&self, now: Timestamp) -> StoreResult<u64> {
        let latest = LatestEnds::at(now);
        // Read first without writing, because this may scan the whole outbox.
        let mistaken = self
            .read("mistaken_waits", move |connection| {
                waits::find_mistaken(connection, latest)
            })
            .await?;
        let count = mistaken.len() as u64;
        if count > 0 {
            self.write_keeping_cache("end_mistaken_waits", move |connection| {
                waits::end(connection, &mistaken, latest, now)
            })
            .await?;
        }
        Ok(count)
    }

    async fn lease_queue(
        &self,
        queue: QueueRef,
        request: LeaseRequest,
    ) -> StoreResult<Option<LeasedQueue>> {
        self.write_keeping_cache("lease_queue", move |connection| {
            run(lease_queue(&SqliteTables(connection), queue, request))
        })
        .await
    }

    async fn renew_lease(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        until: Timestamp,
    ) -> StoreResult<bool> {
        self.write_keeping_cache("renew_lease", move |connection| {
            run(renew_lease(&SqliteTables(connection), queue, lease, until))
        })
        .await
    }

    async fn release_queue(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
    ) -> StoreResult<()> {
        self.write_keeping_cache("release_queue", move |connection| {
            run(release_queue(&SqliteTables(connection), queue, lease, now))
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
            let tables = SqliteTables(connection);
            let share = run(find_share(&tables, queue, lease, revision, now))?;
            let due = share.map(|share| sending::find_due(connection, queue, share, now, limit));
            due.transpose()
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
        self.write_keeping_cache("begin_sending", move |connection| {
            if run(lock_lease(&SqliteTables(connection), queue, lease))?.is_none() {
                return Ok(None);
            }
            sending::mark_sending(connection, queue, deliveries, at).map(Some)
        })
        .await
    }

    async fn gather_conversions(
        &self,
        queue: QueueRef,
        pending: Vec<PendingDelivery>,
    ) -> StoreResult<Vec<GatheredDelivery>> {
        self.read("gather_conversions", move |connection| {
            let gathered = pending
                .into_iter()
                .map(|pending| conversions::gather(connection, queue, pending));
            gathered.collect()
        })
        .await
    }

    async fn settle_deliveries(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        settlement: DeliverySettlement,
    ) -> StoreResult<Option<SettledQueue>> {
        self.write_keeping_cache("settle_deliveries", move |connection| {
            let tables = SqliteTables(connection);
            run(settle_deliveries(&tables, queue, lease, &settlement))
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
            status_checks::find_due(connection, queue, now, limit)
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
        self.write_keeping_cache("settle_status_check", move |connection| {
            let tables = SqliteTables(connection);
            run(settle_status_check(
                &tables, queue, lease, &request, &outcome, at,
            ))
        })
        .await
    }

    async fn reserve_turns(&self, quota: Digest, now: Timestamp) -> StoreResult<QuotaTurns> {
        self.write_keeping_cache("reserve_turns", move |connection| {
            run(reserve_turns(&SqliteTables(connection), quota, now))
        })
        .await
    }

    async fn paused_integrations(&self) -> StoreResult<Vec<(Network, u64)>> {
        self.read("paused_integrations", |connection| {
            let sql = "select count(*) from queues where network = ?1 and paused_at is not null";
            let mut statement = connection.prepare_cached(sql)?;
            let mut counts = Vec::new();
            for network in Network::ALL {
                let count: i64 = statement.query_row([network.as_str()], |row| row.get(0))?;
                counts.push((network, count_to_u64(count)));
            }
            Ok(counts)
        })
        .await
    }

    async fn expire_deliveries(&self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        // Read first without writing, because this may scan the whole outbox.
        let late = self
            .read("late_deliveries", move |connection| {
                sweep::find_expired(connection, now, limit)
            })
            .await?;
        if late.is_empty() {
            return Ok(0);
        }
        self.write_keeping_cache("expire_deliveries", move |connection| {
            sweep::expire(connection, late, now)
        })
        .await
    }

    async fn remove_deliveries(&self, settled_before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write_keeping_cache("remove_deliveries", move |connection| {
            sweep::remove(connection, settled_before, limit)
        })
        .await
    }
}
