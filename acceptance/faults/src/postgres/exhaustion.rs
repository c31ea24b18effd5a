//! No connection is left: the server has none, or all connections of the pool wait for a lock.

use super::scene::{EFFECT_MAX, LOOK_PAUSE, OUTAGE, Scene, number};
use std::time::Instant;
use tokio_postgres::{Client, NoTls};

/// Locks what almost every transaction reads. The product reads the tables in this order, too.
const LOCK: &str =
    "set lock_timeout = '1s'; begin; lock table apps, event_keys in access exclusive mode";
/// Counts the sessions that wait for a lock.
const WAITING: &str = "select count(distinct pid) from pg_locks where not granted";

/// Uses up all connections of the server, so that the instance gets none.
pub(super) async fn use_all_connections(scene: &mut Scene) {
    let before = scene.logged("53300");
    // Keeps the instance from being faster.
    scene.proxy.refuse(true);
    scene.proxy.reset_open(1);
    let clients = connect_until_refused(scene).await;
    scene.proxy.refuse(false);
    println!("{}: {} connections are taken", scene.name, clients.len());
    let probes = scene.probe(OUTAGE, |_| {}).await;
    scene.add_outage(probes);
    if scene.logged("53300") == before {
        scene.violated("the fault had no effect: the instance got connections");
    }
    drop(clients);
}

/// Connects to the primary until it accepts no more connections. The sessions of reset connections take
/// a moment to end.
async fn connect_until_refused(scene: &Scene) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    let begun = Instant::now();
    let url = scene.servers.primary.url();
    let of_instance = "select count(*) from pg_stat_activity where application_name = 'tributary'";
    loop {
        if let Ok((client, connection)) = tokio_postgres::connect(&url, NoTls).await {
            tokio::spawn(connection);
            clients.push(client);
            continue;
        }
        let first = clients.first().expect("a connection");
        if number(first, of_instance).await == 0 || begun.elapsed() > EFFECT_MAX {
            return clients;
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

/// Locks tables for longer than a transaction may wait.
pub(super) async fn lock_tables(scene: &mut Scene) {
    let client = scene.servers.primary.client().await;
    let watching = scene.servers.primary.client().await;
    let begun = Instant::now();
    while client.batch_execute(LOCK).await.is_err() {
        client.batch_execute("rollback").await.expect("a rollback");
        assert!(begun.elapsed() < EFFECT_MAX, "the tables cannot be locked");
    }
    let probing = scene.probe(OUTAGE, |_| {});
    let watched = async {
        let mut most = 0;
        let begun = Instant::now();
        while begun.elapsed() < OUTAGE {
            most = most.max(number(&watching, WAITING).await);
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        client.batch_execute("rollback").await.expect("a rollback");
        most
    };
    let (probes, most) = tokio::join!(probing, watched);
    scene.add_outage(probes);
    println!("{}: up to {most} sessions waited for a lock", scene.name);
    if most == 0 {
        scene.violated("the fault had no effect: no session waited");
    }
}
