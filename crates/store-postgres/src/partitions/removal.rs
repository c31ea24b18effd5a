//! Drops partitions whose rows are all past their retention period.

use super::catalog::{Partition, partitions};
use super::{PartitionedTable, begin, lock};
use deadpool_postgres::Object;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::PartitionReport;

/// Drops the partitions whose rows are all from before the cut-off, and adds them to the report.
pub(super) async fn drop_old(
    connection: &mut Object,
    table: PartitionedTable,
    cutoff: Timestamp,
    report: &mut PartitionReport,
) -> Result<(), tokio_postgres::Error> {
    for partition in partitions(&***connection, table).await? {
        // Looked up without a lock first, so that a partition that stays is not locked.
        if !may_drop(&***connection, table, &partition, cutoff).await? {
            continue;
        }
        let Some(tx) = begin(connection).await? else {
            return Ok(());
        };
        if !lock(&tx, table).await? {
            return Ok(());
        }
        // Another node may have dropped it, and a row may have been settled meanwhile.
        let remaining = partitions(&*tx, table).await?;
        let exists = remaining.iter().any(|one| one.name == partition.name);
        if exists && may_drop(&*tx, table, &partition, cutoff).await? {
            tx.batch_execute(&format!("drop table {}", partition.name))
                .await?;
            tx.commit().await?;
            report.dropped += 1;
            report.removed_rows += partition.rows;
        }
    }
    Ok(())
}

async fn may_drop(
    client: &impl GenericClient,
    table: PartitionedTable,
    partition: &Partition,
    cutoff: Timestamp,
) -> Result<bool, tokio_postgres::Error> {
    if !partition.range.may_drop(false, cutoff) {
        return Ok(false);
    }
    let sql = format!(
        "select exists (select from {} where {} >= $1)",
        partition.name, table.retained_from
    );
    let params = [(&cutoff.as_millis() as _, Type::INT8)];
    let row = client.query_typed_one(&sql, &params).await?;
    Ok(partition.range.may_drop(row.try_get(0)?, cutoff))
}
