//! Makes partitions ahead.

use super::catalog::{bounds, partitions, ranges};
use super::constraints::{WAIT_FOR_HARMLESS_LOCK, exclude, is_excluded, readmission, readmit};
use super::{PartitionedTable, begin, is_disturbed};
use deadpool_postgres::Object;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tributary_domain::partitioning::PartitionRange;
use tributary_domain::vocabulary::time::Timestamp;

/// Makes the partitions that will be needed. Returns their number.
pub(super) async fn make(
    connection: &mut Object,
    table: PartitionedTable,
    now: Timestamp,
    retention: Duration,
) -> Result<u64, tokio_postgres::Error> {
    let made = make_missing(connection, table, now, retention).await;
    readmit(connection, table).await?;
    let made = made?;
    if made > 0 || !is_analyzed(connection, table).await? {
        match analyze(connection, table).await {
            Err(error) if is_disturbed(&error) => {
                tracing::debug!(table = table.name, "cannot collect statistics now");
            }
            outcome => outcome?,
        }
    }
    Ok(made)
}

async fn make_missing(
    connection: &mut Object,
    table: PartitionedTable,
    now: Timestamp,
    retention: Duration,
) -> Result<u64, tokio_postgres::Error> {
    let existing = partitions(&***connection, table).await?;
    let mut made = 0;
    for range in ranges(&existing).missing(now, retention) {
        match attach_empty(connection, table, range).await? {
            Some(true) => made += 1,
            // A clock was far ahead. The rows stay where they are and are removed one by one.
            Some(false) => {
                let partition = range.label();
                tracing::warn!(
                    table = table.name,
                    partition,
                    "cannot make a partition: the default partition contains rows of its time"
                );
            }
            None => break,
        }
    }
    Ok(made)
}

/// Adds an empty partition. Unlike `create table … partition of`, this does not lock the table
/// against reads and writes; it locks the default partition for a moment. Returns false if that one
/// contains rows of the range, and `None` if partitions cannot be changed now.
async fn attach_empty(
    connection: &mut Object,
    table: PartitionedTable,
    range: PartitionRange,
) -> Result<Option<bool>, tokio_postgres::Error> {
    let excluded = exclude(connection, table, range).await?;
    if excluded != Some(true) {
        return Ok(excluded);
    }
    let Some(tx) = begin(connection).await? else {
        return Ok(None);
    };
    if !is_excluded(&tx, table, range).await? {
        return Ok(None);
    }
    let (name, label, bounds) = (table.name, range.label(), bounds(range));
    let sql = format!(
        "create table {name}_{label} (like {name} including all);
         alter table {name} attach partition {name}_{label} {bounds};
         {}",
        readmission(table)
    );
    match tx.batch_execute(&sql).await {
        Ok(()) => {
            tx.commit().await?;
            Ok(Some(true))
        }
        Err(error) if error.code() == Some(&SqlState::CHECK_VIOLATION) => Ok(Some(false)),
        Err(error) => Err(error),
    }
}

/// Returns whether statistics of the whole table exist. A conversion creates a table without any.
async fn is_analyzed(
    connection: &Object,
    table: PartitionedTable,
) -> Result<bool, tokio_postgres::Error> {
    let sql = format!(
        "select reltuples >= 0 from pg_class where oid = '{}'::regclass",
        table.name
    );
    connection.query_typed_one(&sql, &[]).await?.try_get(0)
}

/// Collects the statistics of the whole table, which autovacuum does not do.
async fn analyze(
    connection: &mut Object,
    table: PartitionedTable,
) -> Result<(), tokio_postgres::Error> {
    if let Some(tx) = begin(connection).await? {
        let sql = format!("{WAIT_FOR_HARMLESS_LOCK}; analyze {}", table.name);
        tx.batch_execute(&sql).await?;
        tx.commit().await?;
    }
    Ok(())
}
