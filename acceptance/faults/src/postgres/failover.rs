//! The primary fails, its synchronous standby is promoted, and the old primary comes back fenced.
//!
//! Two nodes follow the primary in the two usual ways: one has a URL with both servers, the other
//! connects through a proxy that is sent to the new primary.

use super::scene::{EFFECT_MAX, LOOK_PAUSE, Scene, number, restart, start_servers};
use crate::account::Totals;
use crate::check::check;
use crate::experiments::Episode;
use std::time::{Duration, Instant};
use tributary_testkit::fault_proxy::FaultProxy;
use tributary_testkit::{PairedServer, ServerPair};

/// Fences a server that starts again. A server that nothing tells of the failover could accept writes.
const FENCED: &str = "-c default_transaction_read_only=on";
/// Time during which the old primary is back and the load goes on.
const BACK: Duration = Duration::from_secs(1);
/// Number of the next transaction id. Reads do not change it.
const NEXT_TRANSACTION: &str = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
/// Whether a standby confirms commits.
const SYNCHRONOUS: &str = "select count(*) from pg_stat_replication where sync_state = 'sync'";
/// Whether a standby follows.
pub(super) const FOLLOWING: &str =
    "select count(*) from pg_stat_replication where state = 'streaming'";

/// Fails over in every round.
pub async fn fail_over(episode: Episode) -> Totals {
    let mut scene = start(episode.seed).await;
    for round in 0..episode.rounds {
        "failover".clone_into(&mut scene.name);
        make_synchronous(&scene.servers).await;
        let load = scene.start_load(&episode).await;
        if round % 2 == 0 {
            crash(&mut scene).await;
        } else {
            freeze(&mut scene).await;
        }
        come_back(&mut scene).await;
        scene.recover(load).await;
        tokio::task::block_in_place(|| scene.servers.renew_standby());
    }
    account(scene).await
}

/// Starts two nodes: one with both servers in its URL, and one behind the proxy.
pub(super) async fn start(seed: u64) -> Scene {
    let servers = start_servers().await;
    let proxy = FaultProxy::start(servers.primary.address(), seed).await;
    let (first, second) = (servers.primary.address(), servers.standby.address());
    let both = format!("postgres://tributary@{first},{second}/postgres");
    let proxied = format!("postgres://tributary@{}/postgres", proxy.address());
    let mut scene = Scene::start_at(servers, proxy, &both, 2, seed).await;
    let url = [("TRIBUTARY_DATABASE_URL", proxied.as_str())];
    restart(&mut scene.instance, 1, &url).await;
    scene
}

pub(super) async fn account(mut scene: Scene) -> Totals {
    check(&mut scene.instance, scene.ledger, &mut scene.totals).await;
    scene.totals
}

/// Waits until the standby follows, and confirms commits only together with it.
async fn make_synchronous(servers: &ServerPair) {
    wait_for(&servers.primary, FOLLOWING).await;
    servers.primary.require_standby(true).await;
    wait_for(&servers.primary, SYNCHRONOUS).await;
}

/// Waits until a count is not 0.
pub(super) async fn wait_for(server: &PairedServer, sql: &str) {
    let client = server.client().await;
    let begun = Instant::now();
    while number(&client, sql).await == 0 {
        assert!(begun.elapsed() < EFFECT_MAX, "{sql}");
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

/// The primary's machine fails. The proxy leads to the standby even before it is promoted.
async fn crash(scene: &mut Scene) {
    tokio::task::block_in_place(|| scene.servers.primary.stop());
    scene.proxy.retarget(scene.servers.standby.address());
    let probes = scene.probe(BACK, |_| {}).await;
    scene.add_outage(probes);
    scene.servers.fail_over().await;
}

/// The primary hangs: it accepts connections and does not answer. It is killed only after the standby
/// was promoted. Until then it cannot confirm anything, because it lacks its standby.
async fn freeze(scene: &mut Scene) {
    scene.servers.primary.freeze();
    scene.servers.fail_over().await;
    scene.proxy.retarget(scene.servers.primary.address());
    // What moves an address to another server also ends the connections to the old one.
    scene.proxy.reset_open(1);
    let probes = scene.probe(BACK, |_| {}).await;
    scene.add_probes(probes);
    scene.servers.standby.kill();
}

/// The old primary comes back while the load goes on. Nothing may be written to it.
async fn come_back(scene: &mut Scene) {
    tokio::task::block_in_place(|| scene.servers.standby.start_with(FENCED));
    let client = scene.servers.standby.client().await;
    let before = number(&client, NEXT_TRANSACTION).await;
    // One of the nodes asks the old primary for a connection, because it is in its URL.
    scene.proxy.reset_open(1);
    let probes = scene.probe(BACK, |_| {}).await;
    scene.add_probes(probes);
    if number(&client, NEXT_TRANSACTION).await != before {
        scene.violated("the fenced server was written to");
    }
}
