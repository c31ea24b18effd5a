//! Queue state.

use crate::rows::{SqliteRow, read_row};
use crate::tables::SqliteTables;
use crate::{Failure, alerts, integrations};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;
use tributary_domain::forwarding::alert::Alert;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::settlement::IntegrationVersion;
use tributary_domain::integration::{Integration, Network};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::IntegrationTable;
use tributary_store::records::{Columns, QueueRow, TerminalCounts, count_to_u64};
use tributary_store::{QueueRef, StoreError};

impl IntegrationTable for SqliteTables<'_> {
    async fn write_integration(&self, integration: &Integration) -> Result<(), Failure> {
        integrations::write(self.0, integration)
    }

    async fn integration_version(
        &self,
        queue: QueueRef,
    ) -> Result<Option<IntegrationVersion>, Failure> {
        find_version(self.0, queue)
    }

    async fn queue_states(&self, app: AppId) -> Result<BTreeMap<Network, QueueState>, Failure> {
        let sql = format!(
            "select {}, network from queues where app_id = ?1",
            QueueRow::COLUMNS
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let rows = find.query_map([app.as_bytes()], |row| {
            Ok((row.get::<_, String>("network")?, read_row::<QueueRow>(row)?))
        })?;
        rows.map(|row| {
            let (network, row) = row?;
            Ok((network_of(app, &network)?, row.read()))
        })
        .collect()
    }

    async fn lock_queue(&self, queue: QueueRef) -> Result<Option<QueueState>, Failure> {
        find_state(self.0, queue)
    }

    async fn postpone_queue(
        &self,
        queue: QueueRef,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "insert into queues (app_id, network, not_before) values (?1, ?2, ?3)
                 on conflict (app_id, network) do update set not_before = excluded.not_before
                 where leased_until <= ?4",
            )?
            .execute(params![
                queue.app.as_bytes(),
                queue.network.as_str(),
                until.as_millis(),
                now.as_millis()
            ])?;
        Ok(())
    }

    async fn write_queue(
        &self,
        queue: QueueRef,
        state: &QueueState,
        _is_stored: bool,
    ) -> Result<(), Failure> {
        let row = QueueRow::write(state);
        self.0
            .prepare_cached(
                "insert into queues (app_id, network, paused_at, pause_code, pause_words, failures,
                                     not_before, probing, rejection_code, rejections,
                                     last_delivered_at, resumed_at)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                 on conflict (app_id, network) do update set
                     paused_at = excluded.paused_at, pause_code = excluded.pause_code,
                     pause_words = excluded.pause_words, failures = excluded.failures,
                     not_before = excluded.not_before, probing = excluded.probing,
                     rejection_code = excluded.rejection_code, rejections = excluded.rejections,
                     last_delivered_at = excluded.last_delivered_at,
                     resumed_at = excluded.resumed_at",
            )?
            .execute(params![
                queue.app.as_bytes(),
                queue.network.as_str(),
                row.paused_at,
                row.pause_code,
                row.pause_words,
                row.failures,
                row.not_before,
                row.probing,
                row.rejection_code,
                row.rejections,
                row.last_delivered_at,
                row.resumed_at
            ])?;
        Ok(())
    }

    async fn lock_quota(&self, quota: Digest) -> Result<Option<Timestamp>, Failure> {
        let sql = "select free_from from request_quotas where quota = ?1";
        let mut statement = self.0.prepare_cached(sql)?;
        let free_from = statement.query_row((quota.as_bytes(),), |row| row.get(0));
        Ok(free_from.optional()?.map(Timestamp::from_millis))
    }

    async fn write_quota(&self, quota: Digest, free_from: Timestamp) -> Result<(), Failure> {
        let sql = "insert into request_quotas (quota, free_from) values (?1, ?2)
                   on conflict (quota) do update set free_from = excluded.free_from";
        let mut statement = self.0.prepare_cached(sql)?;
        statement.execute((quota.as_bytes(), free_from.as_millis()))?;
        Ok(())
    }

    async fn pending_delivery_counts(&self, app: AppId) -> Result<BTreeMap<Network, u64>, Failure> {
        let mut count = self
            .0
            .prepare_cached("select count(*) from outbox where app_id = ?1 and network = ?2")?;
        let mut counts = BTreeMap::new();
        for network in Network::ALL {
            let key = (app.as_bytes(), network.as_str());
            counts.insert(
                network,
                count_to_u64(count.query_row(key, |row| row.get(0))?),
            );
        }
        Ok(counts)
    }

    async fn terminal_counts_since(
        &self,
        app: AppId,
        hour: i64,
    ) -> Result<BTreeMap<Network, TerminalCounts>, Failure> {
        let sql = format!(
            "select {} from delivery_hours where app_id = ?1 and network = ?2 and hour >= ?3",
            TerminalCounts::summed_columns()
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let mut ended = BTreeMap::new();
        for network in Network::ALL {
            let key = (app.as_bytes(), network.as_str(), hour);
            let counts = find.query_row(key, |row| TerminalCounts::from_row(&SqliteRow(row), 0))?;
            ended.insert(network, counts);
        }
        Ok(ended)
    }

    async fn insert_alert(&self, alert: &Alert) -> Result<(), Failure> {
        alerts::insert(self.0, alert)
    }
}

fn network_of(app: AppId, text: &str) -> Result<Network, StoreError> {
    Network::parse(text).ok_or_else(|| StoreError::corrupt("queues", "network", app))
}

/// Finds the state of a queue.
pub(crate) fn find_state(
    connection: &Connection,
    queue: QueueRef,
) -> Result<Option<QueueState>, Failure> {
    let sql = format!(
        "select {} from queues where app_id = ?1 and network = ?2",
        QueueRow::COLUMNS
    );
    let row = connection
        .prepare_cached(&sql)?
        .query_row(
            params![queue.app.as_bytes(), queue.network.as_str()],
            read_row::<QueueRow>,
        )
        .optional()?;
    Ok(row.map(QueueRow::read))
}

/// Returns the version of the queue's integration.
pub(crate) fn find_version(
    connection: &Connection,
    queue: QueueRef,
) -> Result<Option<IntegrationVersion>, Failure> {
    let version = connection
        .prepare_cached(
            "select revision, enabled from integrations where app_id = ?1 and network = ?2",
        )?
        .query_row(
            params![queue.app.as_bytes(), queue.network.as_str()],
            |row| {
                Ok(IntegrationVersion {
                    revision: row.get(0)?,
                    enabled: row.get(1)?,
                })
            },
        )
        .optional()?;
    Ok(version)
}
