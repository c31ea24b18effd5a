//! The outbox: pending deliveries and their results.
//!
//! Two nodes never work on the same queue, or on the same part of a shared queue. A node writes a
//! lease, and every later write to the queue first locks the queue's row and compares the lease id
//! (`sending`, `settle`, `status_checks`). A node that was presumed dead does not find its lease
//! and writes nothing.

pub(crate) mod due_queues;
mod paused;
mod sending;
pub(crate) mod settle;
pub(crate) mod status_checks;
mod sweep;
pub(crate) mod terminal;
mod waits;

pub(crate) use paused::PausedCounts;

use crate::begin::read_of_all_apps;
use crate::tx;
use crate::{PostgresStore, conversions};
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
use tributary_store::{
    CheckOutcome, DeliverySettlement, GatheredDelivery, LeaseId, LeaseRequest, LeasedQueue, Outbox,
    PendingDelivery, QueueRef, SettledQueue, StatusCheck, StoreResult,
};

#[async_trait]
impl Outbox for PostgresStore {
    async fn due_queues(
        &self,
        network: Network,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<QueueRef>> {
        if self.pool.is_distributed() {
            return due_queues::find_hinted_queues(&self.pool, network, now, limit).await;
        }
        self.read("due_queues", async move |tx| {
            due_queues::find_due_queues(tx, network, now, limit).await
        })
        .await
    }

    async fn end_mistaken_waits(&self, now: Timestamp) -> StoreResult<u64> {
        let latest = LatestEnds::at(now);
        let mode = read_of_all_apps(self.pool.is_distributed());
        let find = async move |tx: &tx::Tx| waits::find_mistaken(tx, latest).await;
        let mistaken = tx::run(&self.pool, "mistaken_waits", mode, find).await?;
        let count = mistaken.len() as u64;
        for queue in mistaken {
            self.write("end_mistaken_waits", async move |tx| {
                waits::end(tx, queue, latest, now).await
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
        self.write("lease_queue", async move |tx| {
            lease_queue(tx, queue, request).await
        })
        .await
    }

    async fn renew_lease(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        until: Timestamp,
    ) -> StoreResult<bool> {
        self.write("renew_lease", async move |tx| {
            renew_lease(tx, queue, lease, until).await
        })
        .await
    }

    async fn release_queue(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
    ) -> StoreResult<()> {
        self.write("release_queue", async move |tx| {
            release_queue(tx, queue, lease, now).await
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
        self.read("due_deliveries", async move |tx| {
            let Some(share) = find_share(tx, queue, lease, revision, now).await? else {
                return Ok(None);
            };
            let due = sending::find_due(tx, queue, share, now, limit).await?;
            Ok(Some(due))
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
        self.write("begin_sending", async move |tx| {
            if lock_lease(tx, queue, lease).await?.is_none() {
                return Ok(None);
            }
            sending::mark_sending(tx, queue, &deliveries, at)
                .await
                .map(Some)
        })
        .await
    }

    async fn gather_conversions(
        &self,
        queue: QueueRef,
        pending: Vec<PendingDelivery>,
    ) -> StoreResult<Vec<GatheredDelivery>> {
        self.read("gather_conversions", async move |tx| {
            conversions::gather(tx, queue, &pending).await
        })
        .await
    }

    async fn settle_deliveries(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        settlement: DeliverySettlement,
    ) -> StoreResult<Option<SettledQueue>> {
        let settled = self.write("settle_deliveries", async move |tx| {
            settle_deliveries(tx, queue, lease, &settlement).await
        });
        let settled = settled.await;
        self.paused.forget();
        settled
    }

    async fn due_status_checks(
        &self,
        queue: QueueRef,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<StatusCheck>> {
        self.read("due_status_checks", async move |tx| {
            status_checks::find_due(tx, queue, now, limit).await
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
        self.write("settle_status_check", async move |tx| {
            settle_status_check(tx, queue, lease, &request, &outcome, at).await
        })
        .await
    }

    async fn reserve_turns(&self, quota: Digest, now: Timestamp) -> StoreResult<QuotaTurns> {
        self.write("reserve_turns", async move |tx| {
            reserve_turns(tx, quota, now).await
        })
        .await
    }

    async fn paused_integrations(&self) -> StoreResult<Vec<(Network, u64)>> {
        if self.pool.is_distributed()
            && let Some(counts) = self.paused.recent()
        {
            return Ok(counts);
        }
        let name = "paused_integrations";
        let mode = read_of_all_apps(self.pool.is_distributed());
        let counts = tx::run(&self.pool, name, mode, paused::count).await?;
        self.paused.keep(counts.clone());
        Ok(counts)
    }

    async fn expire_deliveries(&self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("expire_deliveries", async move |tx| {
            sweep::expire(tx, now, limit).await
        })
        .await
    }

    async fn remove_deliveries(&self, settled_before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_deliveries", async move |tx| {
            sweep::remove(tx, settled_before, limit).await
        })
        .await
    }
}
