//! The outbox: deliveries that are to be made, and what came of them.
//!
//! Two nodes never work on one queue: whoever takes it writes a lease into its row (`lease`), and everything that is
//! written about the queue begins with locking that row by the lease's name (`take`, `settle`, `checks`). A node that
//! was thought dead finds no row of its name, and writes nothing.

pub(crate) mod checks;
pub(crate) mod ends;
mod lease;
pub(crate) mod settle;
mod sweep;
mod take;

use crate::{PostgresStore, conversions, queues};
use async_trait::async_trait;
use tributary_domain::forwarding::settlement::may_go_on;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{lease_queue, settle_deliveries, settle_status_check};
use tributary_store::records::whole;
use tributary_store::{
    CheckOutcome, Gathered, LeaseId, LeasedQueue, Outbox, PendingDelivery, QueueRef, Settlement,
    StatusCheck, StoreResult,
};

#[async_trait]
impl Outbox for PostgresStore {
    async fn due_queues(
        &self,
        network: Network,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<QueueRef>> {
        self.read("due_queues", async move |tx| {
            lease::due_queues(tx, network, now, limit).await
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
        self.write("lease_queue", async move |tx| {
            lease_queue(tx, queue, lease_id, now, until).await
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
            queues::hold(tx, queue, lease, until).await
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
            queues::release(tx, queue, lease, now).await
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
            if !may_go_on(revision, queues::held_version(tx, queue, lease).await?) {
                return Ok(None);
            }
            take::due(tx, queue, now, limit).await.map(Some)
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
            if !queues::lock_held(tx, queue, lease).await? {
                return Ok(None);
            }
            take::begin(tx, queue, &deliveries, at).await.map(Some)
        })
        .await
    }

    async fn gather(
        &self,
        queue: QueueRef,
        pending: Vec<PendingDelivery>,
    ) -> StoreResult<Vec<Gathered>> {
        self.read("gather_conversions", async move |tx| {
            conversions::gather(tx, queue, &pending).await
        })
        .await
    }

    async fn settle(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        settlement: Settlement,
    ) -> StoreResult<bool> {
        self.write("settle_deliveries", async move |tx| {
            settle_deliveries(tx, queue, lease, &settlement).await
        })
        .await
    }

    async fn due_status_checks(
        &self,
        queue: QueueRef,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<StatusCheck>> {
        self.read("due_status_checks", async move |tx| {
            checks::due(tx, queue, now, limit).await
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

    async fn paused_integrations(&self) -> StoreResult<Vec<(Network, u64)>> {
        self.read("paused_integrations", async move |tx| {
            let sql = "select count(*) from queues where network = $1 and paused_at is not null";
            let mut counts = Vec::new();
            for network in Network::ALL {
                let row = tx.query_one(sql, &[&network.as_str()]).await?;
                let count: i64 = row.try_get(0)?;
                counts.push((network, whole(count)));
            }
            Ok(counts)
        })
        .await
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
