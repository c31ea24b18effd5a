//! Repeated SIGKILL during many deliveries: every event arrives with its original deduplication id,
//! and no network counts one twice.

use crate::networks::{ServerWithSimulator, wait_until_settled, with_current_time};
use crate::random::env_number;
use crate::website::Website;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::on_both_engines;

/// Default number of deliveries in the queue; `TRIBUTARY_KILL_DELIVERIES` changes it.
const DELIVERIES: u64 = 2_000;
/// How often the server is killed by default; `TRIBUTARY_FORWARDING_KILLS` changes it. After each kill,
/// deliveries wait for the end of the lease.
const KILLS: u64 = 2;
/// Concurrent clients that post the events.
const CLIENTS: usize = 16;
/// Maximum time from the first kill until everything has arrived. After each kill, the old lease
/// lasts half a minute.
const SETTLE_MAX: Duration = Duration::from_mins(8);

/// Returns how many conversions the network has counted.
fn counted(simulated: &ServerWithSimulator) -> usize {
    let state = simulated.simulator.control().state();
    let counted = state["networks"]["network_a"]["counted"].as_u64();
    usize::try_from(counted.unwrap()).unwrap()
}

async fn post_all(site: &Website, deliveries: usize) {
    let posts = (0..CLIENTS).map(|client| {
        let site = site.clone();
        tokio::spawn(async move {
            for number in (client..deliveries).step_by(CLIENTS) {
                let event = with_current_time(&site.purchase(&format!("order-{number}"), "1.00"));
                site.send_accepted(&event).await;
            }
        })
    });
    for post in posts.collect::<Vec<_>>() {
        post.await.unwrap();
    }
}

on_both_engines! {
    async fn a_kill_loses_nothing_and_counts_nothing_twice(engine: Engine) {
        let deliveries = usize::try_from(env_number("TRIBUTARY_KILL_DELIVERIES", DELIVERIES)).unwrap();
        let mut simulated = ServerWithSimulator::start(engine).await;
        let mut site = simulated.site(SimulatedNetwork::NetworkA).await;
        // Block deliveries until all events are accepted.
        let account = simulated.connect(&site, SimulatedNetwork::NetworkA, 1).await;
        let unavailable = serde_json::json!({"kind": "status", "status": 503, "body": ""});
        simulated.inject_fault(SimulatedNetwork::NetworkA, &account, unavailable, None);
        post_all(&site, deliveries).await;
        let slow = serde_json::json!({"kind": "delay", "ms": 150});
        simulated.simulator.control().clear_faults(None);
        simulated.inject_fault(SimulatedNetwork::NetworkA, &account, slow, None);
        let (mut counted_at_kill, begun) = (Vec::new(), Instant::now());
        for _ in 0..env_number("TRIBUTARY_FORWARDING_KILLS", KILLS) {
            let target = (counted(&simulated) + 300).min(deliveries);
            while counted(&simulated) < target {
                assert!(begun.elapsed() < SETTLE_MAX, "{} of {target} were delivered", counted(&simulated));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            simulated.server.kill_now();
            counted_at_kill.push(counted(&simulated));
            simulated.server = ServerWithSimulator::serve(&simulated.database, &simulated.simulator).await;
            site = site.through(simulated.server.base_url());
        }
        simulated.simulator.control().clear_faults(None);
        while counted(&simulated) < deliveries && begun.elapsed() < SETTLE_MAX {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let counts = wait_until_settled(&site, SETTLE_MAX.saturating_sub(begun.elapsed())).await;
        let received = simulated.received(SimulatedNetwork::NetworkA, &account);
        let repeated = received.iter().filter(|one| one["times"] != 1).count();
        println!("{engine:?}: killed after {counted_at_kill:?} of {deliveries}; received more than once: {repeated}; {counts:?}");
        assert_eq!(counts, BTreeMap::from([("delivered".to_owned(), deliveries)]));
        assert_eq!(received.len(), deliveries, "every event arrived, each with one id");
        let counted_once = |one: &&Value| one["counted"] == 1;
        assert_eq!(received.iter().filter(counted_once).count(), deliveries);
        let ids: BTreeSet<&str> = received.iter().map(|one| one["eventId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), deliveries);
    }
}
