//! Reports and polls that take too long or wait, and reports whose caller has left.

use super::database::{Schema, options, with_setting};
use crate::{PostgresOptions, PostgresStore};
use std::time::Duration;
use tributary_store::DueKinds as _;
use tributary_store::contract::fixtures::at;

/// Longer than any test waits.
const SLOW: &str = "select pg_sleep(60)::text";
/// Longer than it may take to connect in a test.
const LONGER: &str = "select pg_sleep(3)::text";
/// How long a query may survive its caller.
const CANCELLED_WITHIN: Duration = Duration::from_secs(8);

/// Opens a store whose sessions have the schema's name.
async fn open_named(schema: &Schema, options: PostgresOptions) -> PostgresStore {
    let url = with_setting(&schema.url, &format!("application_name={}", schema.name));
    PostgresStore::connect(&url, options)
        .await
        .expect("a store")
}

/// Waits until none of the store's sessions runs a query.
async fn wait_until_idle(schema: &Schema) {
    let client = schema.client().await;
    let active = "select count(*) from pg_stat_activity
                  where application_name = $1 and state <> 'idle'";
    let waiting = async {
        loop {
            let row = client.query_one(active, &[&schema.name]).await;
            let count: i64 = row.expect("sessions").get(0);
            if count == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let idle = tokio::time::timeout(CANCELLED_WITHIN, waiting).await;
    idle.expect("the abandoned queries are cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_whose_caller_left_is_cancelled() {
    let schema = Schema::create().await;
    let long = PostgresOptions {
        statement_timeout: Duration::from_mins(2),
        report_timeout: Duration::from_mins(2),
        ..options()
    };
    let store = open_named(&schema, long).await;
    for _ in 0..options().connections {
        let report = store.read("stats", async |tx| Ok(tx.query(SLOW, &[]).await?.len()));
        let left = tokio::time::timeout(Duration::from_millis(200), report).await;
        assert!(left.is_err(), "the report is still running");
    }
    // No abandoned report may hold a connection of the public share.
    let public = store.read("sdk_app", async |tx| {
        Ok(tx.query("select 1", &[]).await?.len())
    });
    let public = tokio::time::timeout(Duration::from_secs(5), public).await;
    public.expect("a free connection").expect("a row");
    wait_until_idle(&schema).await;
}

/// Returns the server process that runs the slow query.
async fn slow_process(schema: &Schema) -> i32 {
    let client = schema.client().await;
    let slow = "select pid from pg_stat_activity
                where application_name = $1 and state = 'active' and query like '%pg_sleep(60)%'";
    loop {
        let row = client.query_opt(slow, &[&schema.name]).await;
        if let Some(row) = row.expect("sessions") {
            return row.get(0);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The server may handle a cancellation late. Then it would stop the connection's next query.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_of_a_cancelled_report_is_not_used_again() {
    let schema = Schema::create().await;
    let long = PostgresOptions {
        report_timeout: Duration::from_mins(2),
        ..options()
    };
    let store = open_named(&schema, long).await;
    let slow = store.read("stats", async |tx| Ok(tx.query(SLOW, &[]).await?.len()));
    let mut report = Box::pin(slow);
    let process = tokio::select! {
        _ = &mut report => panic!("the report has ended"),
        process = slow_process(&schema) => process,
    };
    drop(report);
    let client = schema.client().await;
    let sessions = "select count(*) from pg_stat_activity where pid = $1";
    let closed = async {
        loop {
            let row = client.query_one(sessions, &[&process]).await;
            if row.expect("a count").get::<_, i64>(0) == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let closed = tokio::time::timeout(CANCELLED_WITHIN, closed).await;
    closed.expect("the connection is closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_past_its_time_limit_is_cancelled() {
    let schema = Schema::create().await;
    let short = PostgresOptions {
        report_timeout: Duration::from_millis(200),
        ..options()
    };
    let store = open_named(&schema, short).await;
    let report = store.read("stats", async |tx| Ok(tx.query(SLOW, &[]).await?.len()));
    let error = report.await.expect_err("the report is stopped");
    assert!(error.is_report_timeout(), "{error:?}");
    wait_until_idle(&schema).await;
    let other = "select pg_sleep(0.5)::text";
    let public = store.read("sdk_app", async |tx| Ok(tx.query(other, &[]).await?.len()));
    public.await.expect("the limit is for reports only");
}

/// A poll has no time limit on the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_that_waits_for_a_lock_is_cancelled() {
    let schema = Schema::create().await;
    let short = PostgresOptions {
        connect_timeout: Duration::from_secs(1),
        statement_timeout: Duration::from_millis(200),
        ..options()
    };
    let store = open_named(&schema, short).await;
    let client = schema.client().await;
    let lock = "begin; lock table alerts in access exclusive mode";
    client.batch_execute(lock).await.expect("a lock");
    let poll = store.due_kinds(at(1)).await;
    poll.expect_err("the poll waits for the table");
    wait_until_idle(&schema).await;
    client.batch_execute("rollback").await.expect("a rollback");
    store.due_kinds(at(1)).await.expect("the next poll");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_waits_for_another_longer_than_for_a_new_connection() {
    let schema = Schema::create().await;
    let one_at_a_time = PostgresOptions {
        report_connections: 1,
        connect_timeout: Duration::from_secs(2),
        ..options()
    };
    let store = open_named(&schema, one_at_a_time).await;
    let report = || store.read("stats", async |tx| Ok(tx.query(LONGER, &[]).await?.len()));
    let (first, second) = tokio::join!(report(), report());
    first.expect("the first report");
    second.expect("the second report");
}
