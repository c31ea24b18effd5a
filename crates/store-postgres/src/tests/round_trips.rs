//! Transactions that send more than they have heard the answer to.

use super::database::{Schema, number};
use crate::tx::{self, Mode};
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
async fn first_reads_travel_with_the_beginning_and_belong_to_the_transaction() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let mode = Mode::PipelinedWrite;
    let outcome = tx::run(&store.pool, "test", mode, async |tx| {
        // Two statements of one transaction have one begin, and see their own writes undone with it.
        let first = tx.query_one("select now()::text", &[]).await?;
        note(tx, "note undone").await?;
        let second = tx.query_one("select now()::text", &[]).await?;
        let (first, second): (String, String) = (first.try_get(0)?, second.try_get(0)?);
        assert_eq!(first, second, "the time of one transaction");
        Err::<(), _>(Failure::Conflict)
    })
    .await;
    assert!(matches!(outcome, Err(StoreError::Unavailable { .. })));
    assert_eq!(number(&schema.client().await, STORED).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_done_after_the_first_reads_when_the_transaction_did_not_begin() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let runs = AtomicU32::new(0);
    let mode = Mode::PipelinedWrite;
    let outcome: StoreResult<()> = tx::run(&store.pool, "test", mode, async |tx| {
        let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
        // The session ends in the middle of the first reads, as when it never began.
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
