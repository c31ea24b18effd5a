//! Leases of queues and of their parts.

use crate::Failure;
use crate::queues::{key_columns, version_row};
use crate::rows::{read_row, read_row_at, uuid};
use crate::tx::Tx;
use tokio_postgres::Row;
use tributary_domain::due_work::WorkKind;
use tributary_domain::forwarding::settlement::IntegrationVersion;
use tributary_domain::forwarding::sharing::QueueSharing;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::QueueLeaseTable;
use tributary_store::records::{
    Columns, QueueLeaseRow, QueuePartRow, QueueRow, StoredLease, StoredPartLease,
};
use tributary_store::{LeaseId, QueueRef};

impl QueueLeaseTable for Tx {
    async fn lock_queue_lease(&self, queue: QueueRef) -> Result<Option<StoredLease>, Failure> {
        let (app, network) = key_columns(queue);
        let sql = format!(
            "select {}, {} from queues where app_id = $1 and network = $2 for update",
            QueueRow::COLUMNS,
            QueueLeaseRow::COLUMNS
        );
        let found = self.query_opt(&sql, &[&app, &network]).await?;
        found.map(|row| read_lease(queue, &row)).transpose()
    }

    async fn queue_lease(
        &self,
        queue: QueueRef,
    ) -> Result<Option<(StoredLease, Option<IntegrationVersion>)>, Failure> {
        let (app, network) = key_columns(queue);
        let sql = format!(
            "select {}, {}, integrations.revision, integrations.enabled from queues
             join integrations on integrations.app_id = queues.app_id
                              and integrations.network = queues.network
             where queues.app_id = $1 and queues.network = $2",
            QueueRow::COLUMNS,
            QueueLeaseRow::COLUMNS
        );
        let found = self.query_opt(&sql, &[&app, &network]).await?;
        let lease = |row: Row| Ok((read_lease(queue, &row)?, Some(version_row(&row)?)));
        found.map(lease).transpose()
    }

    async fn insert_queue(&self, queue: QueueRef) -> Result<(), Failure> {
        let (app, network) = key_columns(queue);
        let sql = "insert into queues (app_id, network) values ($1, $2)
                   on conflict (app_id, network) do nothing";
        self.execute(sql, &[&app, &network]).await
    }

    async fn part_leases(&self, queue: QueueRef) -> Result<Vec<StoredPartLease>, Failure> {
        let (app, network) = key_columns(queue);
        let sql = format!(
            "select {} from queue_parts where app_id = $1 and network = $2 order by part",
            QueuePartRow::COLUMNS
        );
        let rows = self.query(&sql, &[&app, &network]).await?;
        rows.iter()
            .map(|row| Ok(read_row::<QueuePartRow>(row)?.read(queue)?))
            .collect()
    }

    async fn count_due(&self, queue: QueueRef, now: Timestamp, max: u32) -> Result<u32, Failure> {
        let (app, network) = key_columns(queue);
        let row = self
            .query_one(
                "select count(*) from (select 1 from outbox
                                       where app_id = $1 and network = $2 and due_at <= $3
                                       limit $4) as due",
                &[&app, &network, &now.as_millis(), &i64::from(max)],
            )
            .await?;
        let count: i64 = row.try_get(0)?;
        Ok(u32::try_from(count).unwrap_or(max))
    }

    async fn write_queue_lease(
        &self,
        queue: QueueRef,
        lease: Option<LeaseId>,
        until: Timestamp,
        sharing: QueueSharing,
    ) -> Result<(), Failure> {
        if lease.is_some() && sharing != QueueSharing::Off {
            // Nodes look at a shared queue even while it is leased.
            self.hint(WorkKind::Deliveries(queue.network), queue.app, until);
        } else {
            self.hint_queue(queue, until);
        }
        let (app, network) = key_columns(queue);
        self.execute(
            "update queues set lease_id = $3, leased_until = $4, sharing = $5
             where app_id = $1 and network = $2",
            &[
                &app,
                &network,
                &lease.map(|lease| uuid(&lease.0)),
                &until.as_millis(),
                &sharing.as_str(),
            ],
        )
        .await
    }

    // Leaves no hint: the lease of another node does not change. That node may release the queue
    // before a hint is stored, which would then block a free queue.
    async fn write_sharing(&self, queue: QueueRef, sharing: QueueSharing) -> Result<(), Failure> {
        let (app, network) = key_columns(queue);
        let sql = "update queues set sharing = $3 where app_id = $1 and network = $2";
        self.execute(sql, &[&app, &network, &sharing.as_str()])
            .await
    }

    async fn write_part_lease(
        &self,
        queue: QueueRef,
        part: StoredPartLease,
    ) -> Result<(), Failure> {
        let (app, network) = key_columns(queue);
        let sql = format!(
            "insert into queue_parts (app_id, network, {})
             values ($1, $2, $3, $4, $5, $6)
             on conflict (app_id, network, part) do update
             set split_id = excluded.split_id, lease_id = excluded.lease_id,
                 leased_until = excluded.leased_until",
            QueuePartRow::COLUMNS
        );
        self.execute(
            &sql,
            &[
                &app,
                &network,
                &part.part.number(),
                &uuid(&part.split.0),
                &part.lease.map(|lease| uuid(&lease.0)),
                &part.until.as_millis(),
            ],
        )
        .await
    }

    async fn renew_whole(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        until: Timestamp,
    ) -> Result<bool, Failure> {
        let (app, network) = key_columns(queue);
        let held = self
            .execute_counting(
                "update queues set leased_until = $4
                 where app_id = $1 and network = $2 and lease_id = $3",
                &[&app, &network, &uuid(&lease.0), &until.as_millis()],
            )
            .await?;
        Ok(held == 1)
    }

    async fn release_whole(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
    ) -> Result<bool, Failure> {
        let (app, network) = key_columns(queue);
        let released = self
            .execute_counting(
                "update queues set lease_id = null, leased_until = $4
                 where app_id = $1 and network = $2 and lease_id = $3",
                &[&app, &network, &uuid(&lease.0), &now.as_millis()],
            )
            .await?;
        if released == 1 {
            self.hint_queue(queue, now);
        }
        Ok(released == 1)
    }
}

/// Reads the columns of [`QueueRow`] and [`QueueLeaseRow`].
fn read_lease(queue: QueueRef, row: &Row) -> Result<StoredLease, Failure> {
    let state = read_row::<QueueRow>(row)?.read();
    let lease = read_row_at::<QueueLeaseRow>(row, QueueRow::COUNT)?;
    Ok(lease.read(queue, state)?)
}
