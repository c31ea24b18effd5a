//! Makes partitions ahead.

use super::catalog::{bounds, partitions, ranges};
use super::{PartitionedTable, begin};
use deadpool_postgres::{Object, Transaction};
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
    let existing = partitions(&***connection, table).await?;
    let mut made = 0;
    for range in ranges(&existing).missing(now, retention) {
        let Some(tx) = begin(connection).await? else {
            return Ok(made);
        };
        match attach_empty(&tx, table, range).await {
            Ok(()) => {
                tx.commit().await?;
                made += 1;
            }
            // A clock was far ahead. The rows stay where they are and are removed one by one.
            Err(error) if error.code() == Some(&SqlState::CHECK_VIOLATION) => {
                let partition = range.label();
                tracing::warn!(
                    table = table.name,
                    partition,
                    "cannot make a partition: the default partition contains rows of its time"
                );
                tx.rollback().await?;
            }
            Err(error) => return Err(error),
        }
    }
    if made > 0 {
        analyze(connection, table).await?;
    }
    Ok(made)
}

/// Adds an empty partition. Unlike `create table … partition of`, this does not lock the table
/// against reads and writes; it locks the default partition, which is nearly empty.
async fn attach_empty(
    tx: &Transaction<'_>,
    table: PartitionedTable,
    range: PartitionRange,
) -> Result<(), tokio_postgres::Error> {
    let (table, label, bounds) = (table.name, range.label(), bounds(range));
    tx.batch_execute(&format!(
        "create table {table}_{label} (like {table} including all);
         alter table {table} attach partition {table}_{label} {bounds}"
    ))
    .await
}

/// Collects the statistics of the whole table, which autovacuum does not do.
async fn analyze(
    connection: &mut Object,
    table: PartitionedTable,
) -> Result<(), tokio_postgres::Error> {
    if let Some(tx) = begin(connection).await? {
        tx.batch_execute(&format!("analyze {}", table.name)).await?;
        tx.commit().await?;
    }
    Ok(())
}
