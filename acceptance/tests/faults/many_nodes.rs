//! Four nodes on one PostgreSQL database under mixed load, one of them killed every few seconds:
//! everything acknowledged is stored once, and every conversion is counted once.
//!
//! A client repeats a request on another node until it is acknowledged, as SDKs and shops do.

use crate::networks::{
    ServerWithSimulator, now_ms, track_request, wait_until_settled, with_current_time,
};
use crate::random::env_number;
use crate::website::{BROWSER, Website};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Number of nodes.
const NODES: usize = 4;
/// Length of the load in seconds by default; `TRIBUTARY_NODES_SECONDS` changes it.
const SECONDS: u64 = 12;
/// Seconds between two kills by default; `TRIBUTARY_NODES_KILL_SECONDS` changes it.
const KILL_SECONDS: u64 = 4;
/// Concurrent clients.
const CLIENTS: usize = 8;
/// Pause of a client between two requests, so that the log of a long run can be read back.
const PAUSE: Duration = Duration::from_millis(40);
/// Events in an SDK request.
const SDK_EVENTS: usize = 3;
/// Longest lease: the longest request timeout plus a margin of 15 seconds.
const LEASE_MAX_MS: i64 = 60_000;
/// Maximum time until all deliveries have ended. The queues of killed nodes wait for their leases.
const SETTLE_MAX: Duration = Duration::from_mins(5);

/// What the clients share.
struct LoadState {
    site: Website,
    sdk_key: String,
    /// Base URLs of the nodes.
    nodes: Mutex<Vec<String>>,
    next_node: AtomicUsize,
    is_stopped: AtomicBool,
}

/// Ids of what was acknowledged.
#[derive(Default)]
struct Acknowledged {
    purchases: BTreeSet<String>,
    devices: BTreeSet<String>,
    sdk_events: BTreeSet<String>,
    clicks: BTreeSet<String>,
    /// Taps without a response. Their clicks may be stored.
    unanswered_taps: usize,
    /// Requests that were repeated on another node.
    repeated: usize,
}

impl Acknowledged {
    fn add(&mut self, other: Self) {
        self.purchases.extend(other.purchases);
        self.devices.extend(other.devices);
        self.sdk_events.extend(other.sdk_events);
        self.clicks.extend(other.clicks);
        self.unanswered_taps += other.unanswered_taps;
        self.repeated += other.repeated;
    }
}

/// A request that may be repeated.
enum LoadRequest {
    WebEvent(Value),
    /// A call of an SDK endpoint.
    Track(&'static str, Value),
}

impl LoadRequest {
    /// Returns the status; `None` without a complete response.
    async fn send(&self, site: &Website, sdk_key: &str) -> Option<u16> {
        let (endpoint, body) = match self {
            Self::WebEvent(event) => return Some(site.try_send(event).await?.status.as_u16()),
            Self::Track(endpoint, body) => (endpoint, body),
        };
        let request = track_request(site, sdk_key, endpoint, body);
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        response.bytes().await.ok()?;
        Some(status)
    }
}

impl LoadState {
    /// Returns the website through the next node.
    fn through_next_node(&self) -> Website {
        let number = self.next_node.fetch_add(1, Ordering::Relaxed) % NODES;
        let base = self.nodes.lock().unwrap()[number].clone();
        self.site.through(&base)
    }

    /// Sends a request to one node after another until one acknowledges it. Returns how often it was
    /// repeated.
    async fn repeat_until_acknowledged(&self, request: &LoadRequest) -> usize {
        for repeated in 0.. {
            match request.send(&self.through_next_node(), &self.sdk_key).await {
                Some(200 | 202) => return repeated,
                None | Some(503) => tokio::time::sleep(PAUSE).await,
                Some(status) => panic!("status {status}"),
            }
        }
        0
    }

    /// Taps the link once. Returns the click id.
    async fn tap(&self) -> Option<String> {
        let site = self.through_next_node();
        let url = format!("{}/w/{}?fbclid=E.C.P.1", site.base, site.link);
        let request = site.client.get(url).header("user-agent", BROWSER);
        let response = request.send().await.ok()?;
        let location = response.headers().get("location")?.to_str().unwrap();
        let (_, rest) = location.split_once("ar_click_id=")?;
        rest.split('&').next().map(str::to_owned)
    }
}

/// Sends a purchase, a new device, its events and a tap in turn until the load ends.
async fn send_load(state: Arc<LoadState>, client: usize) -> Acknowledged {
    let mut done = Acknowledged::default();
    for number in 0.. {
        if state.is_stopped.load(Ordering::Relaxed) {
            break;
        }
        let (order, device) = (
            format!("order-{client}-{number}"),
            format!("device-{client}-{number}"),
        );
        let purchase = with_current_time(&state.site.purchase(&order, "1.00"));
        let purchase = LoadRequest::WebEvent(purchase);
        done.repeated += state.repeat_until_acknowledged(&purchase).await;
        done.purchases.insert(order);
        tokio::time::sleep(PAUSE).await;
        let configure =
            json!({"deviceId": device, "platform": "ios", "osVersion": "18", "model": "iPhone"});
        let configure = LoadRequest::Track("configure", configure);
        done.repeated += state.repeat_until_acknowledged(&configure).await;
        tokio::time::sleep(PAUSE).await;
        let ids: Vec<String> = (0..SDK_EVENTS)
            .map(|event| format!("sdk-{client}-{number}-{event}"))
            .collect();
        let events: Vec<Value> = ids
            .iter()
            .map(|id| json!({"eventId": id, "name": "level_up"}))
            .collect();
        let events = LoadRequest::Track("events", json!({"deviceId": device, "events": events}));
        done.repeated += state.repeat_until_acknowledged(&events).await;
        done.devices.insert(device);
        done.sdk_events.extend(ids);
        tokio::time::sleep(PAUSE).await;
        match state.tap().await {
            Some(click) => drop(done.clicks.insert(click)),
            None => done.unanswered_taps += 1,
        }
    }
    done
}

/// Kills the nodes one after the other and starts each again, until the time is over. Returns the
/// number of kills.
async fn kill_nodes(
    state: &LoadState,
    (nodes, simulated): (&mut [ServerProcess], &ServerWithSimulator),
    (time, interval): (Duration, Duration),
) -> usize {
    let begun = Instant::now();
    for kill in 0.. {
        tokio::time::sleep(interval).await;
        if begun.elapsed() >= time {
            return kill;
        }
        nodes[kill % NODES].kill_now();
        let server = ServerWithSimulator::serve(&simulated.database, &simulated.simulator).await;
        server
            .base_url()
            .clone_into(&mut state.nodes.lock().unwrap()[kill % NODES]);
        nodes[kill % NODES] = server;
        let longest = number(&simulated.database, "select max(leased_until) from queues").await;
        assert!(
            longest <= now_ms() + LEASE_MAX_MS,
            "a lease ends at {longest}"
        );
    }
    0
}

/// Reads a number directly from the database.
async fn number(database: &TestDatabase, sql: &str) -> i64 {
    let rows = database.direct_connection().await.rows(sql).await;
    rows[0][0].as_deref().unwrap_or("0").parse().unwrap()
}

/// Counts the logged events by id; installs have the id of their device.
fn counted(log: &[Value]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for event in log {
        let field = if event["name"] == "install" {
            "deviceId"
        } else {
            "eventId"
        };
        *counts.entry(event[field].as_str().unwrap()).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_among_four_nodes_lose_and_double_nothing() {
    let mut simulated = ServerWithSimulator::start(Engine::Postgres).await;
    let site = simulated.site(SimulatedNetwork::NetworkA).await;
    let account = simulated
        .connect(&site, SimulatedNetwork::NetworkA, 1)
        .await;
    let app = site.call("GET", "", Value::Null).await.expect(200).data();
    let first = ServerWithSimulator::serve(&simulated.database, &simulated.simulator).await;
    let mut nodes = vec![std::mem::replace(&mut simulated.server, first)];
    for _ in 1..NODES {
        nodes.push(ServerWithSimulator::serve(&simulated.database, &simulated.simulator).await);
    }
    let state = Arc::new(LoadState {
        sdk_key: app["sdk"]["liveKey"].as_str().unwrap().to_owned(),
        site,
        nodes: Mutex::new(
            nodes
                .iter()
                .map(|node| node.base_url().to_owned())
                .collect(),
        ),
        next_node: AtomicUsize::new(0),
        is_stopped: AtomicBool::new(false),
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(send_load(state.clone(), client)))
        .collect();
    let times = [
        env_number("TRIBUTARY_NODES_SECONDS", SECONDS),
        env_number("TRIBUTARY_NODES_KILL_SECONDS", KILL_SECONDS),
    ]
    .map(Duration::from_secs);
    let kills = kill_nodes(&state, (&mut nodes, &simulated), times.into()).await;
    state.is_stopped.store(true, Ordering::Relaxed);
    let mut all = Acknowledged::default();
    for client in clients {
        all.add(client.await.unwrap());
    }
    let site = state.site.through(nodes[0].base_url());
    let deliveries = wait_until_settled(&site, SETTLE_MAX).await;
    let log = site.log().await;
    let stored = counted(&log);
    let expected: BTreeSet<&str> = [&all.purchases, &all.devices, &all.sdk_events]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let lost = expected
        .iter()
        .filter(|id| !stored.contains_key(**id))
        .count();
    let doubled = stored.values().filter(|count| **count > 1).count();
    let clicks = number(&simulated.database, "select count(*) from clicks").await;
    let clicks = usize::try_from(clicks).unwrap() - 2; // the taps that prepared the website
    let received = simulated.received(SimulatedNetwork::NetworkA, &account);
    let counted_once = received.iter().filter(|one| one["counted"] == 1).count();
    println!(
        "{kills} kills; acknowledged: {} purchases, {} devices, {} SDK events, {} taps; repeated {}, unanswered taps {}; \
         stored {}, lost {lost}, doubled {doubled}, clicks {clicks}; {deliveries:?}, received {}, counted once {counted_once}",
        all.purchases.len(),
        all.devices.len(),
        all.sdk_events.len(),
        all.clicks.len(),
        all.repeated,
        all.unanswered_taps,
        log.len(),
        received.len()
    );
    assert!(
        kills > 0 && all.repeated > 0,
        "no request was interrupted by a kill"
    );
    assert_eq!((lost, doubled, stored.len()), (0, 0, expected.len()));
    assert!((all.clicks.len()..=all.clicks.len() + all.unanswered_taps).contains(&clicks));
    let purchases = all.purchases.len();
    assert_eq!(
        deliveries.get("delivered"),
        Some(&purchases),
        "{deliveries:?}"
    );
    assert_eq!((received.len(), counted_once), (purchases, purchases));
}
