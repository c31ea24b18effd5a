//! A stopping node finishes the requests in flight and leaves the rest to other nodes at once.

use crate::networks::{ServerWithSimulator, wait_until_settled, with_current_time};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::{Engine, ServerProcess};

/// More than two rounds of a queue of `network_d`, which sends 200 at a time.
const DELIVERIES: usize = 500;
/// Maximum time until the first and until the last delivery.
const WAIT_MAX: Duration = Duration::from_mins(2);
const NETWORK: SimulatedNetwork = SimulatedNetwork::NetworkD;

/// Starts another node on the database.
async fn node(simulated: &ServerWithSimulator, roles: &str) -> ServerProcess {
    let settings = [("TRIBUTARY_ROLES", roles)];
    ServerWithSimulator::serve_with(&simulated.database, &simulated.simulator, &settings).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_node_leaves_no_lease_and_no_delivery_in_flight() {
    let mut simulated = ServerWithSimulator::start(Engine::Postgres).await;
    let site = simulated.site(NETWORK).await;
    let account = simulated.connect(&site, NETWORK, 1).await;
    // No node forwards until all events are accepted.
    let front = node(&simulated, "accept,report").await;
    let everything = std::mem::replace(&mut simulated.server, front);
    assert_eq!(everything.terminate().code(), Some(0));
    let site = site.through(simulated.server.base_url());
    for number in 0..DELIVERIES {
        let event = site.purchase(&format!("order-{number}"), "1.00");
        site.send_accepted(&with_current_time(&event)).await;
    }
    simulated.inject_fault(NETWORK, &account, json!({"kind": "delay", "ms": 500}), None);
    let stopping = node(&simulated, "forward").await;
    let begun = Instant::now();
    while simulated.received(NETWORK, &account).is_empty() {
        assert!(begun.elapsed() < WAIT_MAX, "nothing was delivered");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(stopping.terminate().code(), Some(0));

    let direct = simulated.database.direct_connection().await;
    let leased = "select 1 from queues where lease_id is not null";
    assert!(direct.rows(leased).await.is_empty(), "a lease is left");
    let in_flight = "select 1 from outbox where sending_at is not null";
    assert!(direct.rows(in_flight).await.is_empty(), "left in flight");
    assert!(!direct.rows("select 1 from outbox").await.is_empty());

    let another = node(&simulated, "forward").await;
    simulated.simulator.control().clear_faults(None);
    let counts = wait_until_settled(&site, WAIT_MAX).await;
    let all = BTreeMap::from([("delivered".to_owned(), DELIVERIES)]);
    assert_eq!(counts, all);
    let received = simulated.received(NETWORK, &account);
    assert_eq!(received.len(), DELIVERIES);
    assert!(received.iter().all(|one| one["times"] == 1), "sent twice");
    assert_eq!(another.terminate().code(), Some(0));
}
