//! Instance-wide state: commit probe, report and shutdown.

use crate::background_task::BackgroundTask;
use crate::distributed::find_worker_warnings;
use crate::due_work::store_hints;
use crate::partitions::{self, CLICKS, DELIVERIES};
use crate::rollups::UNMERGED_ROWS_MAX;
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tributary_domain::access::Actor;
use tributary_domain::partitioning::PARTITIONED_ROWS_MIN;
use tributary_domain::vocabulary::id::AuditId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{
    Instance, InstanceReport, LargeTable, PartitionReport, StoreError, StoreResult,
};

/// A transaction idle for longer than this blocks vacuum for the whole database.
const IDLE_TRANSACTION_SECONDS_MAX: i64 = 5 * 60;

/// Increments of one app that may wait without a warning: a quarter of what a report adds up. A node
/// merges them every few seconds, so more wait only if no node merges.
const WAITING_INCREMENTS_MAX: i64 = 5_000;

/// Warns if no node merges increments.
async fn find_unmerged(tx: &Tx) -> Result<Option<String>, Failure> {
    let sql = "select count(*) from rollup_increments group by app_id order by 1 desc limit 1";
    let row = tx.query_opt(sql, &[]).await?;
    let waiting: i64 = row.map_or(Ok(0), |row| row.try_get(0))?;
    Ok((waiting > WAITING_INCREMENTS_MAX).then(|| {
        format!(
            "{waiting} counts of one app are not merged into its figures, and reports fail from \
             {UNMERGED_ROWS_MAX} on; run a node with the role forward, or look for the reason in \
             the log of that node"
        )
    }))
}

/// Finds server settings that are allowed but risky.
pub(crate) async fn find_warnings(
    tx: &Tx,
    connections: usize,
    idle_seconds: i64,
) -> Result<Vec<String>, Failure> {
    // `reset_val` is the value set for the server, the database or the role. This transaction
    // overrides it.
    let row = tx
        .query_one(
            "select (select reset_val from pg_settings where name = 'synchronous_commit'),
                    current_setting('max_connections')::bigint",
            &[],
        )
        .await?;
    let mut concerns = Vec::new();
    if row.try_get::<_, Option<&str>>(0)? == Some("off") {
        concerns.push(
            "synchronous_commit is off for this role or server; Tributary turns it on for its own \
             transactions, but other clients may lose acknowledged commits"
                .to_owned(),
        );
    }
    let max_connections: i64 = row.try_get(1)?;
    if usize::try_from(max_connections).unwrap_or(0) < connections {
        concerns.push(format!(
            "the server's max_connections is {max_connections}, below this node's \
             postgres.connections of {connections}; raise it or lower postgres.connections"
        ));
    }
    let row = tx
        .query_one(
            "select count(*), max(extract(epoch from clock_timestamp() - xact_start))::bigint
             from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()
               and state like 'idle in transaction%'
               and xact_start <= clock_timestamp() - make_interval(secs => $1::bigint)",
            &[&idle_seconds],
        )
        .await?;
    if let Some(seconds) = row.try_get::<_, Option<i64>>(1)? {
        let sessions: i64 = row.try_get(0)?;
        concerns.push(format!(
            "{sessions} session(s) are idle in transaction, the oldest for {seconds} seconds; \
             end them, because vacuum cannot clean up meanwhile"
        ));
    }
    Ok(concerns)
}

/// Writes the version of the configuration.
pub(crate) async fn write_configuration_version(tx: &Tx, version: AuditId) -> Result<(), Failure> {
    tx.execute(
        "insert into instance (name, value) values ('configuration_version', $1)
         on conflict (name) do update set value = excluded.value",
        &[&version.as_bytes().as_slice()],
    )
    .await?;
    Ok(())
}

#[async_trait]
impl Instance for PostgresStore {
    async fn commit_probe(&self, at: Timestamp) -> StoreResult<()> {
        self.write("commit_probe", async move |tx| {
            tx.execute(
                "insert into instance (name, value) values ('probed_at', $1)
                 on conflict (name) do update set value = excluded.value",
                &[&at.as_millis().to_be_bytes().as_slice()],
            )
            .await?;
            Ok(())
        })
        .await
    }

    async fn report(&self) -> StoreResult<InstanceReport> {
        let connections = self.pool.options.connections;
        let has_workers = self.pool.shards.get().is_some();
        let standby = match &self.standby {
            Some(standby) => Some(standby.report().await),
            None => None,
        };
        self.read("report", async move |tx| {
            // The only query that reads the server's clock, to compare it with this node's.
            let row = tx
                .query_one(
                    "select current_setting('server_version'),
                        (select coalesce(max(number), 0) from schema_migrations),
                        (select max(at) from audit_log),
                        (extract(epoch from clock_timestamp()) * 1000)::bigint",
                    &[],
                )
                .await?;
            let newest: Option<i64> = row.try_get(2)?;
            let version: &str = row.try_get(0)?;
            let mut warnings = find_warnings(tx, connections, IDLE_TRANSACTION_SECONDS_MAX).await?;
            let mut all_respond = true;
            let distribution = if has_workers {
                let workers = find_worker_warnings(tx).await?;
                all_respond = workers.all_respond;
                warnings.extend(workers.warnings);
                ", distributed by Citus"
            } else {
                ""
            };
            // Queries every shard, so it would fail.
            if all_respond {
                warnings.extend(find_unmerged(tx).await?);
            }
            Ok(InstanceReport {
                engine: format!("PostgreSQL {version}{distribution}"),
                schema: row.try_get(1)?,
                newest_record_at: newest.map(Timestamp::from_millis),
                server_time: Some(Timestamp::from_millis(row.try_get(3)?)),
                standby: standby.clone(),
                warnings,
            })
        })
        .await
    }

    async fn configuration_version(&self) -> StoreResult<Option<AuditId>> {
        self.read("configuration_version", async move |tx| {
            let sql = "select value from instance where name = 'configuration_version'";
            let Some(row) = tx.query_opt(sql, &[]).await? else {
                return Ok(None);
            };
            let version: &[u8] = row.try_get(0)?;
            let version = <[u8; 16]>::try_from(version);
            let corrupt = |_| StoreError::corrupt("instance", "value", "configuration_version");
            Ok(Some(AuditId::from_bytes(version.map_err(corrupt)?)))
        })
        .await
    }

    fn change_count(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    fn note_change(&self, actor: &Actor) {
        if let Some(standby) = &self.standby {
            standby.note_change(actor);
        }
    }

    fn unreachable_workers(&self) -> usize {
        self.pool.down_workers.count()
    }

    async fn maintain_partitions(
        &self,
        table: LargeTable,
        now: Timestamp,
        retention: Duration,
    ) -> StoreResult<PartitionReport> {
        let table = match table {
            LargeTable::Clicks => CLICKS,
            LargeTable::Deliveries => DELIVERIES,
        };
        partitions::check_clock(&self.pool, now).await?;
        partitions::maintain(&self.pool, table, now, retention, PARTITIONED_ROWS_MIN).await
    }

    async fn close(&self) {
        tokio::join!(
            self.clicks.close(),
            self.configure.close(),
            self.sdk_events.close(),
            self.web_events.close(),
            self.postbacks.close(),
            self.notifications.close()
        );
        self.merging.iter().for_each(BackgroundTask::stop);
        self.watching_workers.iter().for_each(BackgroundTask::stop);
        self.statistics.stop();
        self.storing_hints.stop();
        // Otherwise a search finds the work up to a minute later.
        if let Err(error) = store_hints(&self.pool).await {
            tracing::warn!(%error, "failed to store hints about due work");
        }
        if let Some(standby) = &self.standby {
            standby.close().await;
        }
        self.pool.close().await;
    }
}
