//! Statistics for the query planner.
//!
//! The planner chooses between indexes by the size of a table. Autovacuum collects the statistics of
//! a new table after a minute or more, and never on a server where it is off. Until then, a plan
//! made for an empty table may read the whole part of an index that belongs to an app. So each node
//! collects the first statistics of a table once it has some rows; autovacuum renews them.

use crate::Failure;
use crate::background_task::BackgroundTask;
use crate::pool::Pool;
use crate::tx::{self, TransactionMode, Tx};
use std::sync::Arc;
use std::time::Duration;
use tributary_store::StoreResult;

/// How often a node looks for tables without statistics.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Size from which a table needs statistics. Reading all of a smaller one is quick.
const TABLE_BYTES_MIN: i64 = 512 * 1024;

/// Starts the task that collects missing statistics.
pub(crate) fn start_collecting(pool: Arc<Pool>) -> BackgroundTask {
    BackgroundTask::spawn(async move {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            // Not an error: everything works without statistics, and a standby rejects it.
            if let Err(error) = collect_missing(&pool).await {
                tracing::debug!(%error, "cannot collect statistics");
            }
        }
    })
}

/// Collects the statistics of tables that have rows but no statistics. An old partition may contain
/// only deleted rows.
pub(crate) async fn collect_missing(pool: &Pool) -> StoreResult<()> {
    let find = async |tx: &Tx| {
        let sql = "select oid::regclass::text from pg_class
                   where relnamespace = current_schema()::regnamespace and relkind = 'r'
                     and (reltuples < 0 or (reltuples = 0 and not relispartition))
                     and pg_relation_size(oid) >= $1";
        let rows = tx.query(sql, &[&TABLE_BYTES_MIN]).await?;
        let names = rows.iter().map(|row| Ok(row.try_get::<_, String>(0)?));
        names.collect::<Result<Vec<_>, Failure>>()
    };
    let tables = tx::run(pool, "find_new_tables", TransactionMode::ReadOnce, find).await?;
    for table in tables {
        // Another node may be collecting them.
        let sql = format!("analyze (skip_locked) {table}");
        let collect = async move |tx: &Tx| tx.execute(&sql, &[]).await;
        tx::run(pool, "collect_statistics", TransactionMode::Write, collect).await?;
    }
    Ok(())
}
