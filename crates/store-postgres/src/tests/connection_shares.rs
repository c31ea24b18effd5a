//! Connection shares for the kinds of callers.

use super::database::{Schema, options};
use std::sync::Arc;
use std::time::Duration;
use tributary_store::Events;
use tributary_store::contract::fixtures::SharedStore;
use tributary_store::contract::sdk_fixtures::{event, tenant};

/// Number of concurrent slow reports. When all callers shared one pool, this many reports increased
/// the duration of the slowest request from 25 ms to 5 s.
const BLOCKED_REPORTS: usize = 12;
const POSTS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepts_events_while_reports_are_blocked() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let tenant = tenant(&shared).await;
    let locker = schema.client().await;
    let lock = "begin; lock table costs in access exclusive mode";
    locker.batch_execute(lock).await.expect("a lock");
    let reports: Vec<_> = (0..BLOCKED_REPORTS)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let report = store.read("stats", async move |tx| {
                    tx.query("select count(*) from costs", &[]).await?;
                    Ok(())
                });
                report.await
            })
        })
        .collect();
    let waiting =
        "select count(*) from pg_locks where not granted and relation = 'costs'::regclass";
    loop {
        let row = locker.query_one(waiting, &[]).await.expect("locks");
        let waiting: i64 = row.get(0);
        if waiting >= i64::try_from(options().report_connections).expect("few") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for number in 0..POSTS {
        let posted = event(&format!("event-{number}"), "level_up", 10);
        let accepted = store.accept_sdk_events(tenant.arrival("device-1", 20), vec![posted]);
        accepted.await.expect("event is accepted");
        let worker = store.read("due_queues", async move |_tx| Ok(()));
        worker.await.expect("worker read succeeds");
    }
    assert!(
        reports.iter().all(|report| !report.is_finished()),
        "the reports are still blocked"
    );
    locker.batch_execute("rollback").await.expect("unlocked");
    for report in reports {
        report.await.expect("report task ends").expect("a report");
    }
}
