//! Instance-wide state: commit probe, report and shutdown.

use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension};
use std::sync::atomic::Ordering;
use tributary_domain::vocabulary::id::AuditId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Instance, InstanceReport, StoreResult};

/// Writes the version of the configuration.
pub(crate) fn write_configuration_version(
    connection: &Connection,
    version: AuditId,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into instance (name, value) values ('configuration_version', ?1)
             on conflict (name) do update set value = excluded.value",
        )?
        .execute([version.as_bytes()])?;
    Ok(())
}

#[async_trait]
impl Instance for SqliteStore {
    async fn commit_probe(&self, at: Timestamp) -> StoreResult<()> {
        self.write("commit_probe", move |connection| {
            connection
                .prepare_cached(
                    "insert into instance (name, value) values ('probed_at', ?1)
                     on conflict (name) do update set value = excluded.value",
                )?
                .execute([at.as_millis().to_be_bytes()])?;
            Ok(())
        })
        .await
    }

    async fn report(&self) -> StoreResult<InstanceReport> {
        self.read("report", |connection| {
            let schema = connection.query_row(
                "select coalesce(max(number), 0) from schema_migrations",
                (),
                |row| row.get(0),
            )?;
            let newest: Option<i64> = connection
                .query_row("select max(at) from audit_log", (), |row| row.get(0))
                .optional()?
                .flatten();
            Ok(InstanceReport {
                engine: format!("SQLite {}", rusqlite::version()),
                schema,
                newest_record_at: newest.map(Timestamp::from_millis),
                server_time: None,
                standby: None,
                warnings: Vec::new(),
            })
        })
        .await
    }

    async fn configuration_version(&self) -> StoreResult<Option<AuditId>> {
        self.read("configuration_version", |connection| {
            let version: Option<[u8; 16]> = connection
                .prepare_cached("select value from instance where name = 'configuration_version'")?
                .query_row((), |row| row.get(0))
                .optional()?;
            Ok(version.map(AuditId::from_bytes))
        })
        .await
    }

    fn change_count(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    async fn close(&self) {
        // Readers are closed first. When the writer is the last connection to close, SQLite copies
        // the WAL into the database file and removes the WAL.
        self.integrity_check.stop();
        self.readers.close().await;
        self.writer.close().await;
        self.integrity_check.remove_marker();
    }
}
