//! The bulk copy: chunks of rows, each committed together with the position after it.

use super::tuples::copy_in;
use super::{PostgresMoveError, PostgresMoveTarget};
use tokio_postgres::types::Type;
use tributary_store::transfer::{RowChunk, TransferTable};

/// How far a table is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyProgress {
    /// Number of copied rows.
    pub rows: u64,
    /// Key of the last copied row. `None` if none was copied.
    pub last_key: Option<Vec<u8>>,
    /// Whether all rows are copied.
    pub is_copied: bool,
}

impl PostgresMoveTarget {
    /// Returns how far a table is copied.
    pub async fn progress(&self, table: &TransferTable) -> Result<CopyProgress, PostgresMoveError> {
        let sql = "select rows, last_key, is_copied from move_tables where name = $1";
        let name = (
            &table.name as &(dyn tokio_postgres::types::ToSql + Sync),
            Type::TEXT,
        );
        let row = self.client.query_typed_one(sql, &[name]).await?;
        Ok(CopyProgress {
            rows: u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0),
            last_key: row.try_get(1)?,
            is_copied: row.try_get(2)?,
        })
    }

    /// Adds rows to a table and stores the position after them, in one transaction.
    pub async fn copy_chunk(
        &mut self,
        table: &TransferTable,
        chunk: RowChunk,
    ) -> Result<(), PostgresMoveError> {
        let tx = self.client.transaction().await?;
        let rows = i64::try_from(chunk.rows).unwrap_or(0);
        copy_in(&tx, &table.name, &table.column_list(), chunk.tuples).await?;
        tx.execute_typed(
            "update move_tables set rows = rows + $2, last_key = $3, is_copied = $4 where name = $1",
            &[
                (&table.name, Type::TEXT),
                (&rows, Type::INT8),
                (&chunk.last_key, Type::BYTEA),
                (&chunk.is_last, Type::BOOL),
            ],
        )
        .await?;
        tx.commit().await?;
        Ok(())
    }
}
