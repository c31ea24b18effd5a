//! The instance itself.

use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::sync::atomic::Ordering;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Instance, InstanceReport, StoreResult};

/// A transaction that does nothing for longer than this keeps the whole database from being cleaned up.
const IDLE_TRANSACTION_SECONDS_MAX: i64 = 5 * 60;

/// What is legal but unwise about how the server is run.
pub(crate) async fn concerns(
    tx: &Tx,
    connections: usize,
    idle_seconds: i64,
) -> Result<Vec<String>, Failure> {
    // reset_val: what the server, the database and the role say; this transaction has its own mind.
    let row = tx
        .query_one(
            "select (select reset_val from pg_settings where name = 'synchronous_commit'),
                    pg_is_in_recovery(),
                    current_setting('max_connections')::bigint",
            &[],
        )
        .await?;
    let mut concerns = Vec::new();
    if row.try_get::<_, Option<&str>>(0)? == Some("off") {
        concerns.push(
            "synchronous_commit is off for this role or server; here it is turned on for every \
             transaction, but whatever else writes to this database may lose what was confirmed"
                .to_owned(),
        );
    }
    if row.try_get(1)? {
        concerns.push(
            "the server is a standby and takes no writes; connect to the primary, or name all \
             hosts with target_session_attrs=read-write"
                .to_owned(),
        );
    }
    let max_connections: i64 = row.try_get(2)?;
    if usize::try_from(max_connections).unwrap_or(0) < connections {
        concerns.push(format!(
            "the server takes {max_connections} connections (max_connections), fewer than the \
             {connections} of this node (postgres.connections)"
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
            "{sessions} session(s) hold a transaction open without doing anything, the oldest for \
             {seconds} seconds; until it ends, nothing that is deleted or changed is cleaned up"
        ));
    }
    Ok(concerns)
}

#[async_trait]
impl Instance for PostgresStore {
    async fn secret_fits(&self, check_value: [u8; 32]) -> StoreResult<bool> {
        self.write("secret_fits", async move |tx| {
            tx.execute(
                "insert into instance (name, value) values ('secret_check', $1)
                 on conflict (name) do nothing",
                &[&check_value.as_slice()],
            )
            .await?;
            let sql = "select value from instance where name = 'secret_check'";
            let row = tx.query_one(sql, &[]).await?;
            let kept: &[u8] = row.try_get(0)?;
            Ok(tributary_domain::keyring::constant_time_eq(
                kept,
                &check_value,
            ))
        })
        .await
    }

    async fn has_secret(&self) -> StoreResult<bool> {
        self.read("has_secret", async move |tx| {
            let sql = "select exists (select 1 from instance where name = 'secret_check')";
            Ok(tx.query_one(sql, &[]).await?.try_get(0)?)
        })
        .await
    }

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
        self.read("report", async move |tx| {
            // The one place where the server is asked for the time: to hold it against ours.
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
            Ok(InstanceReport {
                engine: format!("PostgreSQL {}", row.try_get::<_, &str>(0)?),
                schema: row.try_get(1)?,
                newest_record_at: newest.map(Timestamp::from_millis),
                server_time: Some(Timestamp::from_millis(row.try_get(3)?)),
                warnings: concerns(tx, connections, IDLE_TRANSACTION_SECONDS_MAX).await?,
            })
        })
        .await
    }

    fn change_count(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    async fn close(&self) {
        tokio::join!(
            self.clicks.close(),
            self.sdk_events.close(),
            self.web_events.close(),
            self.postbacks.close(),
            self.notifications.close()
        );
        self.merge_task.stop();
        self.pool.close().await;
    }
}
