//! Partitions of large tables by the time in their ids (adr 43).
//!
//! A table is converted when it has grown large (`conversion`). From then on, partitions are made
//! ahead (`ahead`), and retention drops those whose rows are all past their period (`removal`), or
//! replaces them by the rows that stay (`compaction`). A row that fits into no other partition is
//! stored in the default one, so no insert ever fails.
//!
//! Each change is a transaction that locks a table only for a moment. If a statement is using the
//! table, the change gives up, because all later statements would wait behind it, and is tried again
//! at the next run. One node at a time changes partitions.

mod ahead;
pub(crate) mod catalog;
pub(crate) mod compaction;
pub(crate) mod constraints;
mod conversion;
mod removal;

use crate::database_error::DatabaseError;
use crate::pool::Pool;
use deadpool_postgres::{Object, Transaction};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tributary_domain::partitioning::clocks_agree;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::connection_share::ConnectionShare;
use tributary_store::{PartitionReport, StoreError, StoreResult};

/// Name of the operation in errors.
const NAME: &str = "maintain_partitions";
/// Advisory lock of the node that changes partitions: "part" in ASCII.
const PARTITIONS_LOCK: i32 = 0x7061_7274;
/// Settings of a change. It waits a moment for a lock, since other statements wait behind it.
/// Validating a constraint takes as long as reading the table.
const CHANGE_SETTINGS: &str = "set local synchronous_commit = on;
     set local statement_timeout = 0;
     set local idle_in_transaction_session_timeout = '1min';
     set local lock_timeout = '300ms'";

/// A table with partitions by the time in its ids.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartitionedTable {
    pub(crate) name: &'static str,
    /// The last column of the primary key, an id that begins with its time.
    pub(crate) id: &'static str,
    /// The column with the time from which a row's retention period counts.
    pub(crate) retained_from: &'static str,
    /// The condition for rows that stay when their partition is dropped.
    pub(crate) stays: Option<&'static str>,
}

/// Clicks. Installs and events refer to some of them.
pub(crate) const CLICKS: PartitionedTable = PartitionedTable {
    name: "clicks",
    id: "click_id",
    retained_from: "clicked_at",
    stays: Some("kept"),
};

/// Finished deliveries.
pub(crate) const DELIVERIES: PartitionedTable = PartitionedTable {
    name: "deliveries",
    id: "delivery_id",
    retained_from: "settled_at",
    stays: None,
};

/// Fails if this node's clock differs so much from the server's that it must not change partitions.
pub(crate) async fn check_clock(pool: &Pool, now: Timestamp) -> StoreResult<()> {
    let unavailable = |error| StoreError::unavailable(NAME, error);
    let _permit = pool
        .permit(ConnectionShare::Worker)
        .await
        .map_err(unavailable)?;
    let connection = pool.connection().await.map_err(unavailable)?;
    let sql = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
    let row = connection.query_typed_one(sql, &[]).await;
    let server = row.and_then(|row| row.try_get(0));
    let server = server.map_err(|error| unavailable(DatabaseError::from(&error)))?;
    if clocks_agree(now, Timestamp::from_millis(server)) {
        return Ok(());
    }
    let reason = "the clocks of this node and of the database server differ by more than a day";
    Err(StoreError::unavailable(NAME, reason))
}

/// Partitions a table that has at least this many rows, makes partitions ahead, and drops those whose
/// rows are past their retention period. Only removes expired constraints on a distributed database,
/// and while a move copies the database: its log would miss dropped rows.
pub(crate) async fn maintain(
    pool: &Pool,
    table: PartitionedTable,
    now: Timestamp,
    retention: Duration,
    rows_min: u64,
) -> StoreResult<PartitionReport> {
    let mut report = PartitionReport::default();
    let unavailable = |error| StoreError::unavailable(NAME, error);
    let _permit = pool
        .permit(ConnectionShare::Worker)
        .await
        .map_err(unavailable)?;
    let mut connection = pool.connection().await.map_err(unavailable)?;
    constraints::remove_expired_if_possible(&mut connection).await;
    if pool.is_distributed() {
        return Ok(report);
    }
    let done = run(
        &mut connection,
        table,
        now,
        retention,
        rows_min,
        &mut report,
    );
    match done.await {
        Ok(()) => Ok(report),
        Err(error) if is_disturbed(&error) => {
            tracing::info!(
                table = table.name,
                "the table is in use; changing its partitions later"
            );
            Ok(report)
        }
        Err(error) => Err(unavailable(DatabaseError::from(&error))),
    }
}

async fn run(
    connection: &mut Object,
    table: PartitionedTable,
    now: Timestamp,
    retention: Duration,
    rows_min: u64,
    report: &mut PartitionReport,
) -> Result<(), tokio_postgres::Error> {
    let existing = catalog::partitions(&***connection, table).await?;
    report.is_partitioned = !existing.is_empty();
    if !report.is_partitioned {
        report.is_partitioned = conversion::convert(connection, table, now, rows_min).await?;
    }
    if !report.is_partitioned {
        return Ok(());
    }
    report.created = ahead::make(connection, table, now, retention).await?;
    let cutoff = now.minus(retention);
    match table.stays {
        None => removal::drop_old(connection, table, cutoff, report).await,
        Some(stays) => compaction::compact_old(connection, table, stays, cutoff, report).await,
    }
}

/// Begins a change. Returns `None` if another node is changing partitions, or the database is being
/// moved.
async fn begin(connection: &mut Object) -> Result<Option<Transaction<'_>>, tokio_postgres::Error> {
    let tx = connection.transaction().await?;
    tx.batch_execute(CHANGE_SETTINGS).await?;
    let sql = "select to_regclass('move_source') is null";
    let may_change = try_lock(&tx).await? && tx.query_typed_one(sql, &[]).await?.try_get(0)?;
    Ok(if may_change { Some(tx) } else { None })
}

/// Returns false if another node is changing partitions. Holds the lock until the end of the
/// transaction.
async fn try_lock(tx: &tokio_postgres::Transaction<'_>) -> Result<bool, tokio_postgres::Error> {
    let sql =
        format!("select pg_try_advisory_xact_lock({PARTITIONS_LOCK}, hashtext(current_schema()))");
    tx.query_typed_one(&sql, &[]).await?.try_get(0)
}

/// Locks a table, but not its partitions, against all other statements. Returns false if a move began
/// meanwhile.
async fn lock(
    tx: &Transaction<'_>,
    table: PartitionedTable,
) -> Result<bool, tokio_postgres::Error> {
    let sql = format!("lock table only {} in access exclusive mode", table.name);
    tx.batch_execute(&sql).await?;
    let sql = "select to_regclass('move_source') is null";
    tx.query_typed_one(sql, &[]).await?.try_get(0)
}

/// Returns whether others are in the way of a change: it gave up waiting for a lock, or another node
/// made the change after this one had read the catalog.
fn is_disturbed(error: &tokio_postgres::Error) -> bool {
    let disturbed = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_OBJECT,
    ];
    error.code().is_some_and(|code| disturbed.contains(code))
}
