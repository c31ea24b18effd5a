//! Changed rows: the rows that the source's log names replace those in the target.

use super::tuples::{copy_in, sum_of};
use super::{PostgresMoveError, PostgresMoveTarget};
use deadpool_postgres::Transaction;
use tokio::sync::mpsc::Receiver;
use tributary_store::transfer::{ChangeChunk, RowSum, TransferTable};

impl PostgresMoveTarget {
    /// Applies all changes from one snapshot of the source in one transaction, and compares the
    /// changed rows with the source's. Returns the number of changed rows.
    pub async fn apply(
        &mut self,
        tables: &[TransferTable],
        mut changes: Receiver<ChangeChunk>,
    ) -> Result<u64, PostgresMoveError> {
        let tx = self.client.transaction().await?;
        let mut changed = 0;
        while let Some(chunk) = changes.recv().await {
            let Some(table) = tables.get(chunk.table) else {
                continue;
            };
            changed += chunk.key_count;
            replace(&tx, table, chunk).await?;
        }
        tx.commit().await?;
        Ok(changed)
    }

    /// Sums the rows of a table.
    pub async fn sum(&mut self, table: &TransferTable) -> Result<RowSum, PostgresMoveError> {
        let query = format!("select {} from {}", table.column_list(), table.name);
        let tx = self.client.transaction().await?;
        sum_of(&tx, &query).await
    }
}

/// Deletes the rows with the changed keys and inserts those that exist in the source.
async fn replace(
    tx: &Transaction<'_>,
    table: &TransferTable,
    chunk: ChangeChunk,
) -> Result<(), PostgresMoveError> {
    let (name, key, columns) = (&table.name, table.key_list(), table.column_list());
    tx.batch_execute(&format!(
        "create temporary table move_keys on commit drop as select {key} from {name} with no data;
         create temporary table move_rows on commit drop as select {columns} from {name} with no data"
    ))
    .await?;
    copy_in(tx, "move_keys", &key, chunk.keys).await?;
    copy_in(tx, "move_rows", &columns, chunk.tuples).await?;
    let same_key = table
        .key
        .iter()
        .map(|(column, _)| format!("stored.{column} = changed.{column}"));
    let same_key = same_key.collect::<Vec<_>>().join(" and ");
    // Without statistics, the planner may read the whole table for a few rows.
    tx.batch_execute(&format!(
        "analyze move_keys;
         delete from {name} as stored using move_keys as changed where {same_key};
         insert into {name} ({columns}) overriding system value select {columns} from move_rows"
    ))
    .await?;
    let stored = table
        .columns
        .iter()
        .map(|column| format!("stored.{}", column.name));
    let stored = stored.collect::<Vec<_>>().join(", ");
    let query =
        format!("select {stored} from {name} as stored join move_keys as changed on {same_key}");
    if sum_of(tx, &query).await? != chunk.sum {
        return Err(PostgresMoveError::Differs(name.clone()));
    }
    tx.batch_execute("drop table move_keys, move_rows").await?;
    Ok(())
}
