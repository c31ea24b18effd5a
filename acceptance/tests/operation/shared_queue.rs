//! Two nodes send one integration's large backlog together, and every conversion arrives once.

use super::metric;
use crate::networks::{ServerWithSimulator, with_current_time};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::{Engine, ServerProcess};

/// Half as many again as a queue of `network_d` must have to be shared.
const DELIVERIES: usize = 2_400;
/// Concurrent clients that send the events.
const CLIENTS: usize = 16;
/// Duration of a request at first. A node sends 200 deliveries in this time, so the backlog is still
/// large when both nodes have begun.
const SLOW_MS: u32 = 3_000;
/// Maximum time until both nodes work on the queue, and until all deliveries have ended.
const WAIT_MAX: Duration = Duration::from_mins(3);
const NETWORK: SimulatedNetwork = SimulatedNetwork::NetworkD;

/// Starts another node on the database.
async fn node(simulated: &ServerWithSimulator, roles: &str) -> ServerProcess {
    let settings = [("TRIBUTARY_ROLES", roles)];
    ServerWithSimulator::serve_with(&simulated.database, &simulated.simulator, &settings).await
}

/// Reads a counter of a node.
async fn counter(node: &ServerProcess, name: &str) -> u64 {
    let metrics = node.call("GET", "/metrics", "", None).await.expect(200);
    metric(&metrics.text, name).unwrap().parse().unwrap()
}

/// Returns how many leases of parts a node has had.
async fn parts(node: &ServerProcess) -> u64 {
    let name = "tributary_queue_leases_total{network=\"network_d\",share=\"part\"}";
    counter(node, name).await
}

async fn delivered(node: &ServerProcess) -> u64 {
    let name = "tributary_deliveries_total{network=\"network_d\",status=\"delivered\"}";
    counter(node, name).await
}

/// Accepts a large backlog and starts two nodes that share it. Returns the account and the nodes.
async fn share(simulated: &mut ServerWithSimulator) -> (String, [ServerProcess; 2]) {
    let site = simulated.site(NETWORK).await;
    let account = simulated.connect(&site, NETWORK, 1).await;
    // No node forwards until all events are accepted.
    let front = node(simulated, "accept,report").await;
    let everything = std::mem::replace(&mut simulated.server, front);
    assert_eq!(everything.terminate().code(), Some(0));
    let site = site.through(simulated.server.base_url());
    let clients = (0..CLIENTS).map(|client| {
        let site = site.clone();
        tokio::spawn(async move {
            for number in (client..DELIVERIES).step_by(CLIENTS) {
                let event = site.purchase(&format!("order-{number}"), "1.00");
                site.send_accepted(&with_current_time(&event)).await;
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let slow = json!({"kind": "delay", "ms": SLOW_MS});
    simulated.inject_fault(NETWORK, &account, slow, None);
    let nodes = [
        node(simulated, "forward").await,
        node(simulated, "forward").await,
    ];
    let begun = Instant::now();
    while parts(&nodes[0]).await == 0 || parts(&nodes[1]).await == 0 {
        assert!(begun.elapsed() < WAIT_MAX, "the queue is not shared");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    (account, nodes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_send_a_large_backlog_together() {
    let mut simulated = ServerWithSimulator::start(Engine::Postgres).await;
    let (account, nodes) = share(&mut simulated).await;
    simulated.simulator.control().clear_faults(None);
    wait_for_all(&simulated, &account).await;
    let received = simulated.received(NETWORK, &account);
    assert!(received.iter().all(|one| one["times"] == 1), "sent twice");
    let shares = [delivered(&nodes[0]).await, delivered(&nodes[1]).await];
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
    assert_eq!(
        shares.iter().sum::<u64>(),
        u64::try_from(DELIVERIES).unwrap()
    );
    for node in nodes {
        assert_eq!(node.terminate().code(), Some(0));
    }
    let direct = simulated.database.direct_connection().await;
    for table in ["queues", "queue_parts"] {
        let leased = format!("select 1 from {table} where lease_id is not null");
        assert!(direct.rows(&leased).await.is_empty(), "a lease is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_takes_over_the_part_of_a_killed_node() {
    let mut simulated = ServerWithSimulator::start(Engine::Postgres).await;
    let (account, [killed, other]) = share(&mut simulated).await;
    killed.kill_now();
    simulated.simulator.control().clear_faults(None);
    wait_for_all(&simulated, &account).await;
    let received = simulated.received(NETWORK, &account);
    assert!(
        received.iter().all(|one| one["counted"] == 1),
        "counted twice"
    );
    assert_eq!(other.terminate().code(), Some(0));
}

/// Waits until all deliveries have ended, and checks that each arrived.
async fn wait_for_all(simulated: &ServerWithSimulator, account: &str) {
    let begun = Instant::now();
    let arrived = |received: Vec<Value>| received.len();
    while arrived(simulated.received(NETWORK, account)) < DELIVERIES {
        assert!(begun.elapsed() < WAIT_MAX, "not all have arrived");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let pending = "select 1 from outbox limit 1";
    let direct = simulated.database.direct_connection().await;
    while !direct.rows(pending).await.is_empty() {
        assert!(begun.elapsed() < WAIT_MAX, "not all have ended");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let ended = direct
        .rows("select status, count(*) from deliveries group by status")
        .await;
    let counts: BTreeMap<&str, &str> = ended
        .iter()
        .map(|row| (row[0].as_deref().unwrap(), row[1].as_deref().unwrap()))
        .collect();
    let expected = DELIVERIES.to_string();
    assert_eq!(counts, BTreeMap::from([("delivered", &*expected)]));
}
