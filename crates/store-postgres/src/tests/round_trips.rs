//! Transactions that send more than they have heard the answer to.

use super::database::{Schema, number};
use crate::tx::{self, ATTEMPTS_MAX, Mode};
use crate::{Failure, PostgresStore, Tx};
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

async fn raise(tx: &Tx, sqlstate: &str) -> Result<(), Failure> {
    let sql = format!("do $$ begin raise exception using errcode = '{sqlstate}'; end $$");
    tx.execute(&sql, &[]).await?;
    Ok(())
}

/// Notes something, and as its last statement fails with this SQLSTATE until the given attempt.
async fn fail_last(store: &PostgresStore, sqlstate: &str, attempt: u32) -> (StoreResult<()>, u32) {
    let runs = AtomicU32::new(0);
    let outcome = store
        .write_anything(async |tx| {
            let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
            note(tx, &format!("note {run}")).await?;
            tx.commit_with(async {
                if run < attempt {
                    raise(tx, sqlstate).await
                } else {
                    note(tx, "note last").await
                }
            })
            .await
        })
        .await;
    (outcome, runs.into_inner())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_last_statement_that_fails_undoes_everything_although_the_commit_was_sent() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let client = schema.client().await;
    let (outcome, runs) = fail_last(&store, "23514", u32::MAX).await;
    assert!(matches!(outcome, Err(StoreError::Unavailable { .. })));
    assert_eq!((runs, number(&client, STORED).await), (1, 0));

    let (outcome, runs) = fail_last(&store, "40001", u32::MAX).await;
    assert!(matches!(outcome, Err(StoreError::Unavailable { .. })));
    assert_eq!((runs, number(&client, STORED).await), (ATTEMPTS_MAX, 0));

    let (outcome, runs) = fail_last(&store, "40P01", 3).await;
    outcome.expect("the third attempt succeeds");
    assert_eq!((runs, number(&client, STORED).await), (3, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_ends_beside_the_commit_is_never_tried_again() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let runs = AtomicU32::new(0);
    let outcome: StoreResult<()> = store
        .write_anything(async |tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            note(tx, "note lost").await?;
            tx.commit_with(async {
                tx.query("select pg_terminate_backend(pg_backend_pid())", &[])
                    .await?;
                Ok(())
            })
            .await
        })
        .await;
    let Err(StoreError::Unavailable { source, .. }) = outcome else {
        panic!("expected unavailable, got {outcome:?}");
    };
    let told = source.to_string();
    assert!(told.contains("whether the commit is stored"), "{told}");
    assert_eq!(runs.into_inner(), 1);
    // The store goes on with another connection.
    store
        .write_anything(async |tx| note(tx, "note after").await)
        .await
        .expect("another transaction");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_along_with_the_last_statements_is_seen_by_others() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let (outcome, runs) = fail_last(&store, "40001", 1).await;
    outcome.expect("committed");
    assert_eq!(runs, 1);
    assert_eq!(number(&schema.client().await, STORED).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_reads_travel_with_the_beginning_and_belong_to_the_transaction() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let mode = Mode::WriteAfterReading;
    let outcome = tx::run(&store.pool, "test", mode, async |tx| {
        // Two statements of one transaction have one begin, and see their own writes undone with it.
        let first = tx.query_one("select now()::text", &[]).await?;
        note(tx, "note undone").await?;
        let second = tx.query_one("select now()::text", &[]).await?;
        let (first, second): (String, String) = (first.try_get(0)?, second.try_get(0)?);
        assert_eq!(first, second, "the time of one transaction");
        Err::<(), _>(Failure::Overtaken)
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
    let mode = Mode::WriteAfterReading;
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
