//! Leases of queues and of their parts.

use crate::Failure;
use crate::queues::find_version;
use crate::rows::{SqliteRow, read_row};
use crate::tables::SqliteTables;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::forwarding::settlement::IntegrationVersion;
use tributary_domain::forwarding::sharing::QueueSharing;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::QueueLeaseTable;
use tributary_store::records::{
    Columns, QueueLeaseRow, QueuePartRow, QueueRow, StoredLease, StoredPartLease,
};
use tributary_store::{LeaseId, QueueRef};

impl QueueLeaseTable for SqliteTables<'_> {
    async fn lock_queue_lease(&self, queue: QueueRef) -> Result<Option<StoredLease>, Failure> {
        find_lease(self.0, queue)
    }

    async fn queue_lease(
        &self,
        queue: QueueRef,
    ) -> Result<Option<(StoredLease, Option<IntegrationVersion>)>, Failure> {
        let Some(lease) = find_lease(self.0, queue)? else {
            return Ok(None);
        };
        Ok(Some((lease, find_version(self.0, queue)?)))
    }

    async fn insert_queue(&self, queue: QueueRef) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "insert into queues (app_id, network) values (?1, ?2)
                 on conflict (app_id, network) do nothing",
            )?
            .execute(params![queue.app.as_bytes(), queue.network.as_str()])?;
        Ok(())
    }

    async fn part_leases(&self, queue: QueueRef) -> Result<Vec<StoredPartLease>, Failure> {
        let sql = format!(
            "select {} from queue_parts where app_id = ?1 and network = ?2 order by part",
            QueuePartRow::COLUMNS
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let key = params![queue.app.as_bytes(), queue.network.as_str()];
        let rows = find.query_map(key, read_row::<QueuePartRow>)?;
        rows.map(|row| Ok(row?.read(queue)?)).collect()
    }

    async fn count_due(&self, queue: QueueRef, now: Timestamp, max: u32) -> Result<u32, Failure> {
        let mut count = self.0.prepare_cached(
            "select count(*) from (select 1 from outbox
                                   where app_id = ?1 and network = ?2 and due_at <= ?3 limit ?4)",
        )?;
        let (app, network) = (queue.app.as_bytes(), queue.network.as_str());
        let key = params![app, network, now.as_millis(), max];
        Ok(count.query_row(key, |row| row.get(0))?)
    }

    async fn write_queue_lease(
        &self,
        queue: QueueRef,
        lease: Option<LeaseId>,
        until: Timestamp,
        sharing: QueueSharing,
    ) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "update queues set lease_id = ?3, leased_until = ?4, sharing = ?5
                 where app_id = ?1 and network = ?2",
            )?
            .execute(params![
                queue.app.as_bytes(),
                queue.network.as_str(),
                lease.map(|lease| lease.0),
                until.as_millis(),
                sharing.as_str()
            ])?;
        Ok(())
    }

    async fn write_sharing(&self, queue: QueueRef, sharing: QueueSharing) -> Result<(), Failure> {
        let (app, network) = (queue.app.as_bytes(), queue.network.as_str());
        let sql = "update queues set sharing = ?3 where app_id = ?1 and network = ?2";
        let mut write = self.0.prepare_cached(sql)?;
        write.execute(params![app, network, sharing.as_str()])?;
        Ok(())
    }

    async fn write_part_lease(
        &self,
        queue: QueueRef,
        part: StoredPartLease,
    ) -> Result<(), Failure> {
        let sql = format!(
            "insert into queue_parts (app_id, network, {}) values (?1, ?2, ?3, ?4, ?5, ?6)
             on conflict (app_id, network, part) do update
             set split_id = excluded.split_id, lease_id = excluded.lease_id,
                 leased_until = excluded.leased_until",
            QueuePartRow::COLUMNS
        );
        self.0.prepare_cached(&sql)?.execute(params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            part.part.number(),
            part.split.0,
            part.lease.map(|lease| lease.0),
            part.until.as_millis()
        ])?;
        Ok(())
    }

    async fn renew_whole(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        until: Timestamp,
    ) -> Result<bool, Failure> {
        let held = self
            .0
            .prepare_cached(
                "update queues set leased_until = ?4
                 where app_id = ?1 and network = ?2 and lease_id = ?3",
            )?
            .execute(params![
                queue.app.as_bytes(),
                queue.network.as_str(),
                lease.0,
                until.as_millis()
            ])?;
        Ok(held == 1)
    }

    async fn release_whole(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
    ) -> Result<bool, Failure> {
        let released = self
            .0
            .prepare_cached(
                "update queues set lease_id = null, leased_until = ?4
                 where app_id = ?1 and network = ?2 and lease_id = ?3",
            )?
            .execute(params![
                queue.app.as_bytes(),
                queue.network.as_str(),
                lease.0,
                now.as_millis()
            ])?;
        Ok(released == 1)
    }
}

/// Finds the state and lease of a queue.
fn find_lease(connection: &Connection, queue: QueueRef) -> Result<Option<StoredLease>, Failure> {
    let sql = format!(
        "select {}, {} from queues where app_id = ?1 and network = ?2",
        QueueRow::COLUMNS,
        QueueLeaseRow::COLUMNS
    );
    let key = params![queue.app.as_bytes(), queue.network.as_str()];
    let found = connection
        .prepare_cached(&sql)?
        .query_row(key, |row| {
            let lease = QueueLeaseRow::from_row(&SqliteRow(row), QueueRow::COUNT)?;
            Ok((read_row::<QueueRow>(row)?, lease))
        })
        .optional()?;
    let lease = |(state, lease): (QueueRow, QueueLeaseRow)| lease.read(queue, state.read());
    Ok(found.map(lease).transpose()?)
}
