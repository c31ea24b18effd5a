//! Queue state.

use crate::rows::{PostgresRow, read_row, read_row_at, uuid};
use crate::tx::Tx;
use crate::{Failure, alerts, integrations};
use std::collections::BTreeMap;
use tokio_postgres::Row;
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
use uuid::Uuid;

/// The key of a queue as SQL values.
pub(crate) fn key_columns(queue: QueueRef) -> (Uuid, &'static str) {
    (uuid(queue.app.as_bytes()), queue.network.as_str())
}

/// Finds an app's queue states. A missing row means the default state.
pub(crate) async fn find_states(
    tx: &Tx,
    app: AppId,
) -> Result<BTreeMap<Network, QueueState>, Failure> {
    let sql = format!(
        "select network, {} from queues where app_id = $1",
        QueueRow::COLUMNS
    );
    let state = |row: &Row| {
        let network = network_of(app, row.try_get(0)?)?;
        Ok((network, read_row_at::<QueueRow>(row, 1)?.read()))
    };
    let rows = tx.query(&sql, &[&uuid(app.as_bytes())]).await?;
    rows.iter().map(state).collect()
}

impl IntegrationTable for Tx {
    async fn write_integration(&self, integration: &Integration) -> Result<(), Failure> {
        integrations::write(self, integration).await
    }

    async fn integration_version(
        &self,
        queue: QueueRef,
    ) -> Result<Option<IntegrationVersion>, Failure> {
        let (app, network) = key_columns(queue);
        let sql = "select revision, enabled from integrations where app_id = $1 and network = $2";
        let row = self.query_opt(sql, &[&app, &network]).await?;
        Ok(row.as_ref().map(version_row).transpose()?)
    }

    async fn queue_states(&self, app: AppId) -> Result<BTreeMap<Network, QueueState>, Failure> {
        find_states(self, app).await
    }

    async fn lock_queue(&self, queue: QueueRef) -> Result<Option<QueueState>, Failure> {
        let (app, network) = key_columns(queue);
        let sql = format!(
            "select {} from queues where app_id = $1 and network = $2 for update",
            QueueRow::COLUMNS
        );
        let found = self.query_opt(&sql, &[&app, &network]).await?;
        let state = |row: Row| Ok(read_row::<QueueRow>(&row)?.read());
        found.map(state).transpose()
    }

    async fn postpone_queue(
        &self,
        queue: QueueRef,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Failure> {
        let (app, network) = key_columns(queue);
        self.execute(
            "insert into queues (app_id, network, not_before) values ($1, $2, $3)
             on conflict (app_id, network) do update set not_before = excluded.not_before
             where queues.leased_until <= $4",
            &[&app, &network, &until.as_millis(), &now.as_millis()],
        )
        .await?;
        Ok(())
    }

    async fn write_queue(
        &self,
        queue: QueueRef,
        state: &QueueState,
        is_stored: bool,
    ) -> Result<(), Failure> {
        let row = QueueRow::write(state);
        let (app, network) = key_columns(queue);
        let columns = QueueRow::COLUMNS;
        let sql = if is_stored {
            format!(
                "update queues set ({columns}) = row($3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                 where app_id = $1 and network = $2 returning network"
            )
        } else {
            format!(
                "insert into queues (app_id, network, {columns})
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                 on conflict (app_id, network) do nothing returning network"
            )
        };
        let written = self
            .query_opt(
                &sql,
                &[
                    &app,
                    &network,
                    &row.paused_at,
                    &row.pause_code,
                    &row.pause_words,
                    &row.failures,
                    &row.not_before,
                    &row.probing,
                    &row.rejection_code,
                    &row.rejections,
                    &row.last_delivered_at,
                    &row.resumed_at,
                ],
            )
            .await?;
        // Without a row, another transaction inserted it after it was read.
        written.map(drop).ok_or(Failure::Conflict)
    }

    async fn lock_quota(&self, quota: Digest) -> Result<Option<Timestamp>, Failure> {
        let quota = quota.as_bytes().as_slice();
        // A row that does not exist cannot be locked.
        let insert = "insert into request_quotas (quota, free_from) values ($1, 0)
                      on conflict (quota) do nothing";
        self.execute(insert, &[&quota]).await?;
        let sql = "select free_from from request_quotas where quota = $1 for update";
        let row = self.query_opt(sql, &[&quota]).await?;
        let free_from = row.map(|row| row.try_get(0)).transpose()?;
        Ok(free_from.map(Timestamp::from_millis))
    }

    async fn write_quota(&self, quota: Digest, free_from: Timestamp) -> Result<(), Failure> {
        let sql = "update request_quotas set free_from = $2 where quota = $1";
        let quota = quota.as_bytes().as_slice();
        self.execute(sql, &[&quota, &free_from.as_millis()]).await?;
        Ok(())
    }

    async fn pending_delivery_counts(&self, app: AppId) -> Result<BTreeMap<Network, u64>, Failure> {
        let sql = "select network, count(*) from outbox where app_id = $1 group by network";
        let mut counts = BTreeMap::new();
        for row in &self.query(sql, &[&uuid(app.as_bytes())]).await? {
            counts.insert(
                network_of(app, row.try_get(0)?)?,
                count_to_u64(row.try_get(1)?),
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
            "select network, {} from delivery_hours where app_id = $1 and hour >= $2
             group by network",
            TerminalCounts::summed_columns()
        );
        let mut ended = BTreeMap::new();
        for row in &self.query(&sql, &[&uuid(app.as_bytes()), &hour]).await? {
            let counts = TerminalCounts::from_row(&PostgresRow(row), 1)?;
            ended.insert(network_of(app, row.try_get(0)?)?, counts);
        }
        Ok(ended)
    }

    async fn insert_alert(&self, alert: &Alert) -> Result<(), Failure> {
        alerts::insert(self, alert).await
    }
}

fn network_of(app: AppId, text: &str) -> Result<Network, StoreError> {
    Network::parse(text).ok_or_else(|| StoreError::corrupt("queues", "network", app))
}

pub(crate) fn version_row(row: &Row) -> Result<IntegrationVersion, tokio_postgres::Error> {
    Ok(IntegrationVersion {
        revision: row.try_get("revision")?,
        enabled: row.try_get("enabled")?,
    })
}
