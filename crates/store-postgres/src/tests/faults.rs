//! Deadlocks, lost connections and unresponsive servers.

use super::database::{Schema, number, options, with_setting};
use super::proxy::Proxy;
use crate::tx::ATTEMPTS_MAX;
use crate::{Failure, PostgresOptions, PostgresStore, Tx};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Barrier;
use tokio::time::Instant;
use tributary_domain::refusal::Refusal;
use tributary_store::contract::fixtures::{at, organization};
use tributary_store::{Instance, StoreError, StoreResult, Tenants};

const KILL_MYSELF: &str = "select pg_terminate_backend(pg_backend_pid())";

fn short_timeouts() -> PostgresOptions {
    PostgresOptions {
        connections: 2,
        worker_connections: 1,
        report_connections: 1,
        connect_timeout: Duration::from_millis(500),
        statement_timeout: Duration::from_millis(500),
        report_timeout: Duration::from_millis(500),
        statement_cache: true,
        merges_increments: true,
    }
}

#[track_caller]
fn expect_unavailable<T: std::fmt::Debug>(outcome: StoreResult<T>) -> String {
    let Err(StoreError::Unavailable { source, .. }) = outcome else {
        panic!("expected unavailable, got {outcome:?}");
    };
    source.to_string()
}

/// Opens a store whose sessions have the schema's name, to distinguish them from other tests'
/// sessions.
async fn open_named(schema: &Schema, options: PostgresOptions) -> PostgresStore {
    let setting = format!("application_name={}", schema.name);
    let url = with_setting(&schema.url, &setting);
    let store = PostgresStore::connect(&url, options).await;
    store.expect("a store")
}

async fn note(tx: &Tx, name: &str) -> Result<(), Failure> {
    let value: &[u8] = &[1];
    tx.execute(
        "insert into instance (name, value) values ($1, $2)
         on conflict (name) do update set value = excluded.value",
        &[&name, &value],
    )
    .await?;
    Ok(())
}

/// Runs a transaction that fails with this SQLSTATE in every attempt before the given attempt.
async fn fail_until(store: &PostgresStore, sqlstate: &str, attempt: u32) -> (StoreResult<()>, u32) {
    let runs = AtomicU32::new(0);
    let fail = format!("do $$ begin raise exception using errcode = '{sqlstate}'; end $$");
    let outcome = store
        .run_write(async |tx| {
            let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
            note(tx, &format!("run {run}")).await?;
            if run < attempt {
                tx.execute(&fail, &[]).await?;
            }
            Ok(())
        })
        .await;
    (outcome, runs.into_inner())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_is_retried_a_limited_number_of_times() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    for (conflicts, expected_runs) in [(2, 3), (u32::MAX, ATTEMPTS_MAX)] {
        let runs = AtomicU32::new(0);
        let outcome = store
            .run_write(async |tx| {
                let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
                note(tx, &format!("conflict {run}")).await?;
                if run <= conflicts {
                    return Err(Failure::Conflict);
                }
                Ok(())
            })
            .await;
        assert_eq!(runs.into_inner(), expected_runs);
        assert_eq!(outcome.is_ok(), expected_runs < ATTEMPTS_MAX);
    }
    let client = schema.client().await;
    let stored = "select count(*) from instance where name like 'conflict %'";
    assert_eq!(number(&client, stored).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_serialization_failure_is_retried_from_the_start() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    for sqlstate in ["40001", "40P01"] {
        let (outcome, runs) = fail_until(&store, sqlstate, 3).await;
        outcome.expect("the third attempt succeeds");
        assert_eq!(runs, 3);
        let client = schema.client().await;
        let stored = "select count(*) from instance where name like 'run %'";
        assert_eq!(
            number(&client, stored).await,
            1,
            "failed attempts are rolled back"
        );
    }
    let (outcome, runs) = fail_until(&store, "40001", u32::MAX).await;
    assert!(expect_unavailable(outcome).contains("40001"));
    assert_eq!(runs, ATTEMPTS_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_failures_and_refusals_are_not_retried() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let (outcome, runs) = fail_until(&store, "23514", u32::MAX).await;
    assert!(expect_unavailable(outcome).contains("23514"));
    assert_eq!(runs, 1);

    let runs = AtomicU32::new(0);
    let outcome = store
        .run_write(async |tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            note(tx, "refused").await?;
            Err::<(), _>(Refusal::AppNotFound.into())
        })
        .await;
    assert!(matches!(
        outcome,
        Err(StoreError::Refused(Refusal::AppNotFound))
    ));
    assert_eq!(runs.into_inner(), 1);
    let stored = "select count(*) from instance where name = 'refused'";
    assert_eq!(number(&schema.client().await, stored).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_transactions_of_a_deadlock_commit() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    for name in ["one", "two"] {
        let outcome = store.run_write(async |tx| note(tx, name).await).await;
        outcome.expect("a row");
    }
    let meeting = Arc::new(Barrier::new(2));
    let runs = Arc::new(AtomicU32::new(0));
    let in_order = |first: &str, second: &str| {
        let (first, second) = (first.to_owned(), second.to_owned());
        let (store, meeting, runs) = (store.clone(), meeting.clone(), runs.clone());
        let own_runs = Arc::new(AtomicU32::new(0));
        tokio::spawn(async move {
            store
                .run_write(async move |tx| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    note(tx, &first).await?;
                    if own_runs.fetch_add(1, Ordering::SeqCst) == 0 {
                        meeting.wait().await;
                    }
                    note(tx, &second).await
                })
                .await
        })
    };
    let (one, other) = (in_order("one", "two"), in_order("two", "one"));
    one.await.expect("no panic").expect("a commit");
    other.await.expect("no panic").expect("a commit");
    // On a busy machine, the retried transaction may conflict with the other one again.
    let runs = runs.load(Ordering::SeqCst);
    assert!(runs >= 3, "one of them ran twice: {runs} runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ignored_statement_error_fails_the_transaction() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let outcome = store
        .run_write(async |tx| {
            note(tx, "overlooked").await?;
            let failed = tx.execute("select 1 / 0", &[]).await;
            assert!(failed.is_err());
            Ok(())
        })
        .await;
    expect_unavailable(outcome);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_lost_before_the_commit_is_retried() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let runs = AtomicU32::new(0);
    let outcome = store
        .run_write(async |tx| {
            note(tx, "noted").await?;
            if runs.fetch_add(1, Ordering::SeqCst) == 0 {
                tx.query(KILL_MYSELF, &[]).await?;
            }
            Ok(())
        })
        .await;
    outcome.expect("the second attempt succeeds");
    assert_eq!(runs.load(Ordering::SeqCst), 2);

    let always = store
        .run_write(async |tx| {
            tx.query(KILL_MYSELF, &[]).await?;
            Ok(())
        })
        .await;
    expect_unavailable(always);
    store.commit_probe(at(1)).await.expect("the pool recovers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_lost_while_idle_are_replaced() {
    let schema = Schema::create().await;
    let store = open_named(&schema, options()).await;
    store.commit_probe(at(1)).await.expect("a commit");
    let ended = format!(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity
         where application_name = '{}'",
        schema.name
    );
    assert_eq!(number(&schema.client().await, &ended).await, 1);
    for seconds in 2..7 {
        let probe = store.commit_probe(at(seconds)).await;
        probe.expect("a new session or a retry");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_lost_during_the_commit_is_not_retried() {
    let schema = Schema::create().await;
    let store = schema.open().await;
    let client = schema.client().await;
    client
        .batch_execute(&format!(
            "create function kill_myself() returns trigger language plpgsql as
                 $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
             create constraint trigger kill after insert on {}.instance
                 deferrable initially deferred for each row execute function kill_myself()",
            schema.name
        ))
        .await
        .expect("a trigger that fires in the commit");
    let runs = AtomicU32::new(0);
    let outcome = store
        .run_write(async |tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            note(tx, "fatal").await
        })
        .await;
    assert!(expect_unavailable(outcome).contains("outcome unknown"));
    assert_eq!(runs.into_inner(), 1);
    let dropped = client.batch_execute("drop function kill_myself() cascade");
    dropped.await.expect("trigger is dropped");
    store.commit_probe(at(1)).await.expect("the pool recovers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_confirmation_is_unavailable_and_not_retried() {
    let schema = Schema::create().await;
    let proxy = Proxy::start(&schema.url).await;
    let store = PostgresStore::connect(&proxy.url, options()).await;
    let store = store.expect("a store");
    proxy.cut_commits(1);
    let runs = AtomicU32::new(0);
    let outcome = store
        .run_write(async |tx| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            note(tx, &format!("run {run}")).await
        })
        .await;
    assert!(expect_unavailable(outcome).contains("outcome unknown"));
    assert_eq!(runs.into_inner(), 1);
    let client = schema.client().await;
    let stored = "select count(*) from instance where name like 'run %'";
    assert_eq!(number(&client, stored).await, 1, "the commit was stored");
    store.commit_probe(at(1)).await.expect("the pool recovers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_is_retried_when_its_connection_is_lost() {
    let schema = Schema::create().await;
    let proxy = Proxy::start(&schema.url).await;
    let store = PostgresStore::connect(&proxy.url, options()).await;
    let store = store.expect("a store");
    proxy.cut_commits(2);
    store
        .organizations()
        .await
        .expect("the third attempt succeeds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_times_out_and_the_pool_recovers() {
    let schema = Schema::create().await;
    let proxy = Proxy::start(&schema.url).await;
    let store = PostgresStore::connect(&proxy.url, short_timeouts()).await;
    let store = store.expect("a store");
    store.commit_probe(at(1)).await.expect("a commit");
    proxy.freeze(true);
    let began = Instant::now();
    for seconds in 2..5 {
        // The first probe has a connection; the later probes wait for one.
        expect_unavailable(store.commit_probe(at(seconds)).await);
    }
    assert!(began.elapsed() < Duration::from_secs(4), "{began:?}");
    proxy.freeze(false);
    tokio::time::sleep(Duration::from_millis(200)).await;
    store.commit_probe(at(5)).await.expect("the pool recovers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_and_lock_waits_time_out() {
    let schema = Schema::create().await;
    let store = schema.open_with(short_timeouts()).await;
    let outcome = store
        .run_write(async |tx| {
            tx.query("select 1 from pg_sleep(30)", &[]).await?;
            Ok(())
        })
        .await;
    assert!(expect_unavailable(outcome).contains("57014"));

    store.commit_probe(at(1)).await.expect("a commit");
    let client = schema.client().await;
    let held = client.batch_execute("begin; select 1 from instance for update");
    held.await.expect("locks");
    expect_unavailable(store.commit_probe(at(2)).await);
    client.batch_execute("rollback").await.expect("no locks");
    store.commit_probe(at(3)).await.expect("a commit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_call_releases_its_locks_and_connection() {
    let schema = Schema::create().await;
    let mut options = options();
    options.connections = 1;
    let store = open_named(&schema, options).await;
    for _ in 0..3 {
        let abandoned = store.run_write(async |tx| {
            note(tx, "abandoned").await?;
            std::future::pending::<()>().await;
            Ok(())
        });
        let waited = tokio::time::timeout(Duration::from_millis(100), abandoned).await;
        assert!(waited.is_err());
    }
    let outcome = store
        .run_write(async |tx| note(tx, "abandoned").await)
        .await;
    outcome.expect("the connection and the row lock are released");
    let sessions = format!(
        "select count(*) from pg_stat_activity where application_name = '{}'",
        schema.name
    );
    assert_eq!(number(&schema.client().await, &sessions).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_waits_for_running_transactions() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let working = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .run_write(async |tx| {
                    note(tx, "late").await?;
                    tx.query("select 1 from pg_sleep(0.3)", &[]).await?;
                    Ok(())
                })
                .await
        }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    store.close().await;
    let stored = "select count(*) from instance where name = 'late'";
    assert_eq!(number(&schema.client().await, stored).await, 1);
    working.await.expect("no panic").expect("a commit");
    expect_unavailable(store.commit_probe(at(1)).await);
    expect_unavailable(store.organizations().await);
    expect_unavailable(store.report().await);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn constraint_errors_contain_no_values() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: Arc<dyn tributary_store::Store> = store.clone();
    let caller = organization(&shared).await;
    let outcome = store
        .run_write(async |tx| {
            for _ in 0..2 {
                tx.execute(
                    "insert into setup_links values ('canary', $1, 'owner', 'canary', 1, null)",
                    &[&crate::rows::uuid(caller.organization().as_bytes())],
                )
                .await?;
            }
            Ok(())
        })
        .await;
    let text = expect_unavailable(outcome);
    assert!(text.contains("setup_links_pkey"), "{text}");
    assert!(!text.contains("canary") && !text.contains("\\x"), "{text}");
}
