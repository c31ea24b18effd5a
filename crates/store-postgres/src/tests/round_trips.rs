//! Pipelined transactions.

use super::database::{Schema, number};
use crate::tx::{self, TransactionMode};
use crate::{Failure, Tx};
use std::sync::atomic::{AtomicU32, Ordering};
use tributary_store::{StoreError, StoreResult};

const STORED: &str = "select count(*) from instance where name like 'note %'";

async fn note(tx: &Tx, name: &str) -> Result<(), Failure> {
    let value: &[u8] = &[1];
    tx.execute(
        "insert into instance (name, value) values ($1, $2)",
        &[&name, &value],
    )
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_reads_belong_to_the_transaction() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let mode = TransactionMode::PipelinedWrite;
    let outcome = tx::run(&store.pool, "test", mode, async |tx| {
        // Both statements belong to one transaction, so the write is rolled back.
        let first = tx.query_one("select now()::text", &[]).await?;
        note(tx, "note undone").await?;
        let second = tx.query_one("select now()::text", &[]).await?;
        let (first, second): (String, String) = (first.try_get(0)?, second.try_get(0)?);
        assert_eq!(first, second, "same transaction time");
        Err::<(), _>(Failure::Conflict)
    })
    .await;
    assert!(matches!(outcome, Err(StoreError::Unavailable { .. })));
    assert_eq!(number(&schema.client().await, STORED).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_follows_pipelined_reads_without_a_transaction() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let runs = AtomicU32::new(0);
    let mode = TransactionMode::PipelinedWrite;
    let outcome: StoreResult<()> = tx::run(&store.pool, "test", mode, async |tx| {
        let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
        // In the first run, the session ends during the first reads, as if `begin` had failed.
        if run == 1 {
            tx.query("select pg_terminate_backend(pg_backend_pid())", &[])
                .await?;
        } else {
            tx.query("select 1", &[]).await?;
        }
        note(tx, &format!("note {run}")).await
    })
    .await;
    outcome.expect("the second attempt has a connection");
    assert_eq!(runs.into_inner(), 2);
    assert_eq!(number(&schema.client().await, STORED).await, 1);
}
