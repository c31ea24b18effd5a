//! Devices that are locked while their `configure` calls arrive.

use super::database::Schema;
use super::event_batches::{assert_figures_match_events, open_strict};
use crate::configure;
use std::sync::Arc;
use tributary_recording::BatchedCall;
use tributary_store::contract::fixtures::{SharedStore, join_all};
use tributary_store::contract::sdk_fixtures::{event, tenant};
use tributary_store::{Devices, Events};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_device_delays_only_its_own_call() {
    configure_with_a_locked_device(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_device_delays_only_its_own_call_when_distributed() {
    configure_with_a_locked_device(true).await;
}

async fn configure_with_a_locked_device(is_distributed: bool) {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    store.pool.set_distributed(is_distributed);
    let shared: SharedStore = store.clone();
    let tenant = tenant(&shared).await;
    for device in ["known", "locked"] {
        tenant.call_configure(tenant.configure(device, 10)).await;
    }
    let mut client = schema.client().await;
    let lock = client.transaction().await.expect("a transaction");
    // A transaction that inserts an updated row waits, even if it then does nothing.
    let sql = "update identities set updated_at = updated_at where device_id = 'locked'";
    assert_eq!(lock.execute(sql, &[]).await.expect("an update"), 1);
    let call = |device: &str| tenant.configure(device, 20);
    let calls = ["new-1", "locked", "known", "new-2"].map(call);
    let recorded = configure::record_batch(&store.pool, Arc::new(calls)).await;
    let recorded = recorded.expect("the batch does not wait for the lock");
    let opened = recorded.into_iter().map(|result| match result {
        Some(BatchedCall::Recorded(outcome)) => Some(outcome.is_first_open),
        Some(BatchedCall::Alone) => None,
        None => panic!("the calls are independent"),
    });
    let opened: Vec<_> = opened.collect();
    assert_eq!(opened, [Some(true), None, Some(false), Some(true)]);
    let waiting = tokio::spawn({
        let (store, command) = (store.clone(), call("locked"));
        async move { store.configure(command).await }
    });
    let others = ["new-3", "known", "new-4"].map(|device| store.configure(call(device)));
    for outcome in join_all(others.into()).await {
        outcome.expect("other devices are configured during the lock");
    }
    lock.commit().await.expect("a commit");
    let outcome = waiting.await.expect("no panic");
    assert!(!outcome.expect("the call waits for the lock").is_first_open);
}

/// Half of the devices are new in each round. A batch of calls inserts those and locks the others;
/// in the wrong order, this would cause deadlocks with batches of events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_events_of_the_same_devices_do_not_deadlock() {
    const DEVICES: i64 = 60;
    const ROUNDS: i64 = 12;
    let schema = Schema::create().await;
    let nodes = [open_strict(&schema).await, open_strict(&schema).await];
    let shared: SharedStore = nodes[0].clone();
    let tenant = &tenant(&shared).await;
    for round in 0..ROUNDS {
        let device = |index: i64| format!("device-{}", round * DEVICES / 2 + index);
        let calls = (0..DEVICES).map(async |index| {
            let command = tenant.configure(&device(index), 100 + round);
            nodes[0].configure(command).await.map(|_| ())
        });
        let calls = join_all(calls.collect());
        let events = (0..DEVICES).rev().map(async |index| {
            let sent = vec![event(&format!("{round}-{index}"), "search", 100)];
            let arrival = tenant.arrival(&device(index), 100 + round);
            nodes[1].accept_sdk_events(arrival, sent).await.map(|_| ())
        });
        let (calls, events) = tokio::join!(calls, join_all(events.collect()));
        for outcome in calls.into_iter().chain(events) {
            outcome.expect("recorded");
        }
    }
    assert_figures_match_events(&schema).await;
}
