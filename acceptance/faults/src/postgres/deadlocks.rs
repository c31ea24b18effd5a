//! Another client locks the product's rows in the opposite order.

use super::scene::{EFFECT_MAX, LOOK_PAUSE, Scene};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio_postgres::Client;

/// Time after which the server looks for a deadlock. The default is a second.
const DEADLOCK_TIMEOUT: &str = "20ms";
/// Deadlocks of a round in which the product's transaction was cancelled.
const DEADLOCKS_MIN: usize = 5;
/// Settings of the other client. It looks for deadlocks so late that the product's transaction is the one
/// that is cancelled, and gives up a lock on which two of these clients wait for each other.
const SETTINGS: &str = "set deadlock_timeout = '1min'; set lock_timeout = '300ms'";
/// Locks in the opposite order. The product locks an app before its devices, devices in the order of
/// their keys, and a queue before its deliveries.
const LOCKS: [[&str; 2]; 3] = [
    [
        "select 1 from identities order by updated_at desc limit 30 for update",
        "select 1 from apps for update",
    ],
    [
        "select 1 from identities where device_id > 'r' order by device_id desc limit 200 for update",
        "select 1 from identities order by device_id limit 200 for update",
    ],
    [
        "select 1 from outbox order by delivery_id desc limit 100 for update",
        "select 1 from queues order by network desc for update",
    ],
];
/// Time between the two locks, so that a transaction of the product comes in between.
const HOLD: &str = "select pg_sleep(0.03)";

/// Provokes deadlocks until several transactions of the product were cancelled.
pub(super) async fn storm(scene: &mut Scene) {
    scene
        .servers
        .primary
        .set("deadlock_timeout", DEADLOCK_TIMEOUT)
        .await;
    let before = scene.logged("40P01");
    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for locks in LOCKS {
        let client = scene.servers.primary.client().await;
        clients.push(tokio::spawn(lock_until(client, locks, is_over.clone())));
    }
    let begun = Instant::now();
    while scene.logged("40P01") < before + DEADLOCKS_MIN {
        if begun.elapsed() > EFFECT_MAX {
            scene.violated("the fault had no effect: too few deadlocks");
            break;
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("a client does not panic");
    }
    println!(
        "{}: {} transactions cancelled",
        scene.name,
        scene.logged("40P01") - before
    );
}

async fn lock_until(client: Client, [first, second]: [&str; 2], is_over: Arc<AtomicBool>) {
    client.batch_execute(SETTINGS).await.expect("settings");
    while !is_over.load(Ordering::Relaxed) {
        // Fails if a lock takes too long.
        let sql = format!("begin; {first}; {HOLD}; {second}");
        let _locked = client.batch_execute(&sql).await;
        client.batch_execute("rollback").await.expect("a rollback");
    }
}
