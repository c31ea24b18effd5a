//! SIGKILL in the middle of many deliveries, again and again: every event arrives, under the id that it always had, and
//! no network counts one twice.

use crate::networks::{Simulated, fresh, settled};
use crate::website::Website;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::on_both_engines;

/// Deliveries on their way.
const DELIVERIES: usize = 10_000;
/// How often the server is killed.
const KILLS: usize = 5;
/// Clients that post the events.
const CLIENTS: usize = 16;
/// Until everything has arrived, from the first kill on. A server that was killed holds its queues for half a minute more,
/// each time.
const IN_THE_END: Duration = Duration::from_mins(8);

/// What the network counted so far.
fn counted(simulated: &Simulated) -> usize {
    let state = simulated.simulator.control().state();
    let counted = state["networks"]["network_a"]["counted"].as_u64();
    usize::try_from(counted.unwrap()).unwrap()
}

async fn post_all(site: &Website) {
    let posts = (0..CLIENTS).map(|client| {
        let site = site.clone();
        tokio::spawn(async move {
            for number in (client..DELIVERIES).step_by(CLIENTS) {
                let event = fresh(&site.purchase(&format!("order-{number}"), "1.00"));
                site.accepted(&event).await;
            }
        })
    });
    for post in posts.collect::<Vec<_>>() {
        post.await.unwrap();
    }
}

on_both_engines! {
    async fn a_kill_loses_nothing_and_counts_nothing_twice(engine: Engine) {
        let mut simulated = Simulated::start(engine).await;
        let mut site = simulated.site(SimulatedNetwork::NetworkA).await;
        // Nothing leaves before everything is there.
        let account = simulated.connect(&site, SimulatedNetwork::NetworkA, 1).await;
        let dead = serde_json::json!({"kind": "status", "status": 503, "body": ""});
        simulated.fault(SimulatedNetwork::NetworkA, &account, dead, None);
        post_all(&site).await;
        let slow = serde_json::json!({"kind": "delay", "ms": 150});
        simulated.simulator.control().clear_faults(None);
        simulated.fault(SimulatedNetwork::NetworkA, &account, slow, None);
        let (mut seen, begun) = (Vec::new(), Instant::now());
        for _ in 0..KILLS {
            let enough = (counted(&simulated) + 300).min(DELIVERIES);
            while counted(&simulated) < enough {
                assert!(begun.elapsed() < IN_THE_END, "{} of {enough} were delivered", counted(&simulated));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            simulated.server.kill_now();
            seen.push(counted(&simulated));
            simulated.server = Simulated::serve(&simulated.database, &simulated.simulator).await;
            site = site.through(simulated.server.base_url());
        }
        simulated.simulator.control().clear_faults(None);
        while counted(&simulated) < DELIVERIES && begun.elapsed() < IN_THE_END {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let standing = settled(&site, IN_THE_END.saturating_sub(begun.elapsed())).await;
        let received = simulated.received(SimulatedNetwork::NetworkA, &account);
        let twice = received.iter().filter(|one| one["times"] != 1).count();
        println!("{engine:?}: killed after {seen:?} of {DELIVERIES}; came more than once: {twice}; {standing:?}");
        assert_eq!(standing, BTreeMap::from([("delivered".to_owned(), DELIVERIES)]));
        assert_eq!(received.len(), DELIVERIES, "every event arrived, each under one id");
        let counted_once = |one: &&Value| one["counted"] == 1;
        assert_eq!(received.iter().filter(counted_once).count(), DELIVERIES);
        let ids: BTreeSet<&str> = received.iter().map(|one| one["eventId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), DELIVERIES);
    }
}
