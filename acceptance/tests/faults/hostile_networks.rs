//! Networks that trickle, never end, answer garbage or redirect.
//!
//! Each misbehaviour has its own app and account, so that all happen at the same time, beside apps
//! whose network works. The proxy passes a request on to the simulator once it has misbehaved often
//! enough for it. Some misbehaviours follow after the simulator has processed the request.

use crate::networks::{
    NETWORKS, ServerWithSimulator, deliveries, wait_until_settled, with_current_time,
};
use crate::website::Website;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::{Engine, HostileProxy, Misbehavior, TestDatabase, on_both_engines};

/// Events per app.
const EVENTS: usize = 5;
/// Maximum time until everything is delivered: two requests to `network_b` that take their whole
/// half minute, and the back-off after each.
const SETTLE_MAX: Duration = Duration::from_mins(3);
/// Maximum time for an app whose network works. Shorter than a hanging request, so that waiting for
/// one fails the test.
const UNAFFECTED_MAX: Duration = Duration::from_secs(25);
/// Maximum time to accept an event, on a machine that runs other tests.
const ACCEPT_MAX: Duration = Duration::from_secs(5);
/// Bytes that a client may take of one response: the 64 KiB that are read, and the buffers of both
/// sockets, which the kernel sizes.
const TAKEN_BYTES_MAX: u64 = 16 * 1_024 * 1_024;
/// Memory that the server may grow by. The responses together offer more than 10 GiB.
const GROWTH_KIB_MAX: u64 = 128 * 1_024;
/// Number of the first account. Accounts have equally long names, so that none contains another.
const FIRST_ACCOUNT: usize = 100;
/// Texts that neither the log nor a stored answer may contain.
const SECRETS: [&str; 6] = [
    "EAAB0123456789abcdef",
    "client-secret-12345",
    "refresh-token-12345",
    "c-token-0123456789",
    "d-key-0123456789",
    "E.C.P.1",
];

/// A misbehaviour and what it applies to.
struct Case {
    name: String,
    /// Text in the affected requests, besides the account.
    path: &'static str,
    behavior: Misbehavior,
    /// Whether the simulator processes the request first.
    processes: bool,
}

/// Returns the misbehaviours to test with a network.
fn cases(network: SimulatedNetwork, trap: &str) -> Vec<Case> {
    // Any successful status of network_d means success.
    let status = if network == SimulatedNetwork::NetworkD {
        503
    } else {
        200
    };
    // Requests for an access token contain the account as well.
    let path = match network {
        SimulatedNetwork::NetworkB => "events:ingest",
        _ => " HTTP/1.1",
    };
    let case = |name: &str, behavior, processes| Case {
        name: format!("{}: {name}", network.label()),
        path,
        behavior,
        processes,
    };
    let mut cases = vec![
        case("silence", Misbehavior::Silence, true),
        case("trickling head", Misbehavior::TricklingHead, true),
        case("trickling body", Misbehavior::TricklingBody, false),
        case("endless head", Misbehavior::EndlessHead, true),
        case("endless interim", Misbehavior::EndlessInterim, false),
        case("endless body", Misbehavior::EndlessBody(status), true),
        case("1 GiB body", Misbehavior::HugeBody(status), false),
        case("gzip bomb", Misbehavior::GzipBomb(status), false),
        case("garbage", Misbehavior::Garbage, true),
        case("broken chunks", Misbehavior::BrokenChunks, false),
        case("reset", Misbehavior::Reset, true),
        case("redirect loop", Misbehavior::RedirectLoop(307), false),
        case(
            "redirect to a private address",
            Misbehavior::Redirect(307, trap.to_owned()),
            false,
        ),
        case(
            "redirect with another method",
            Misbehavior::Redirect(302, trap.to_owned()),
            false,
        ),
    ];
    if network == SimulatedNetwork::NetworkB {
        let token = |name: &str, behavior| Case {
            name: format!("token endpoint: {name}"),
            path: "POST /token",
            behavior,
            processes: false,
        };
        cases.extend([
            token("silence", Misbehavior::Silence),
            token("trickling body", Misbehavior::TricklingBody),
            token("endless body", Misbehavior::EndlessBody(200)),
            token("gzip bomb", Misbehavior::GzipBomb(200)),
            token("garbage", Misbehavior::Garbage),
            token("redirect", Misbehavior::Redirect(307, trap.to_owned())),
        ]);
    }
    cases
}

/// An app and its account.
struct App {
    site: Website,
    network: SimulatedNetwork,
    account: String,
    name: String,
}

async fn start_app(
    simulated: &ServerWithSimulator,
    network: SimulatedNetwork,
    number: usize,
    name: String,
) -> App {
    let site = simulated.site(network).await;
    let account = simulated.connect(&site, network, number).await;
    App {
        site,
        network,
        account,
        name,
    }
}

/// Sends events and returns the longest time that one took.
async fn send(site: &Website) -> Duration {
    let mut longest = Duration::ZERO;
    for number in 0..EVENTS {
        let event = with_current_time(&site.purchase(&format!("event-{number}"), "9.99"));
        let begun = Instant::now();
        site.deliver(&event).await;
        longest = longest.max(begun.elapsed());
    }
    longest
}

/// Counts connections to a port that nothing may connect to.
async fn start_trap() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/steal", listener.local_addr().unwrap());
    let connections = Arc::<AtomicU64>::default();
    let counted = connections.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    (url, connections)
}

/// Starts a server whose networks are the proxy.
async fn start(engine: Engine) -> (ServerWithSimulator, HostileProxy) {
    let database = TestDatabase::new(engine).await;
    let mut simulated = ServerWithSimulator::start_on(database).await;
    let proxy = HostileProxy::start(Some(simulated.simulator.address())).await;
    simulated.restart_behind(&proxy.base_url(), &[]).await;
    (simulated, proxy)
}

/// Checks an app's deliveries and what its network received.
async fn check_app(simulated: &ServerWithSimulator, proxy: &HostileProxy, app: &App) {
    let name = &app.name;
    let counts = wait_until_settled(&app.site, SETTLE_MAX).await;
    assert_eq!(
        counts,
        BTreeMap::from([("delivered".to_owned(), EVENTS)]),
        "{name}"
    );
    let received = simulated.received(app.network, &app.account);
    assert_eq!(received.len(), EVENTS, "{name}: each event has one id");
    for one in &received {
        assert_eq!(one["counted"], 1, "{name}: counted twice: {one}");
    }
    let met = proxy.requests(name);
    assert!(met > 0, "{name}: no request met the misbehaviour");
    let taken = proxy.bytes_taken(name) / met;
    assert!(taken <= TAKEN_BYTES_MAX, "{name}: took {taken} bytes");
    let all = deliveries(&app.site).await;
    let failed = |attempt: &&Value| attempt["verdict"] != "delivered";
    let failures: Vec<&Value> = all
        .iter()
        .flat_map(|one| one["attempts"].as_array().unwrap())
        .filter(failed)
        .collect();
    assert!(!failures.is_empty(), "{name}: no failed attempt is shown");
    let text = serde_json::to_string(&all).unwrap();
    for secret in SECRETS {
        assert!(!text.contains(secret), "{name}: {secret} is in an answer");
    }
    println!(
        "{name}: {met} requests, {taken} bytes each, first failure {}",
        failures[0]
    );
}

/// Samples the server's memory until told to stop. Returns the peak.
fn watch_memory(
    simulated: &Arc<ServerWithSimulator>,
    is_over: &Arc<AtomicBool>,
) -> tokio::task::JoinHandle<u64> {
    let (simulated, is_over) = (simulated.clone(), is_over.clone());
    tokio::spawn(async move {
        let mut peak = 0;
        while !is_over.load(Ordering::Relaxed) {
            peak = peak.max(simulated.server.resident_kib());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        peak
    })
}

on_both_engines! {
    async fn every_event_is_counted_once_behind_hostile_networks(engine: Engine) {
        let (simulated, proxy) = start(engine).await;
        let (trap, trapped) = start_trap().await;
        let (mut apps, mut number) = (Vec::new(), FIRST_ACCOUNT);
        for (network, _) in NETWORKS {
            for case in cases(network, &trap) {
                let app = start_app(&simulated, network, number, case.name.clone()).await;
                proxy.misbehave_times(&case.name, &[case.path, &app.account], case.behavior, case.processes, 1);
                apps.push(app);
                number += 1;
            }
        }
        let mut healthy = Vec::new();
        for (network, _) in NETWORKS {
            healthy.push(start_app(&simulated, network, number, network.label().to_owned()).await);
            number += 1;
        }
        let simulated = Arc::new(simulated);
        let (before, is_over) = (simulated.server.resident_kib(), Arc::default());
        let memory = watch_memory(&simulated, &is_over);
        let mut longest = Duration::ZERO;
        for app in &apps {
            longest = longest.max(send(&app.site).await);
        }
        for app in &healthy {
            let begun = Instant::now();
            longest = longest.max(send(&app.site).await);
            let counts = wait_until_settled(&app.site, UNAFFECTED_MAX).await;
            assert_eq!(counts, BTreeMap::from([("delivered".to_owned(), EVENTS)]));
            println!("{}: an app whose network works waited {:?}", app.name, begun.elapsed());
        }
        for app in &apps {
            check_app(&simulated, &proxy, app).await;
        }
        is_over.store(true, Ordering::Relaxed);
        let peak = memory.await.unwrap();
        println!("{engine:?}: memory {before} KiB, at most {peak} KiB; accepting took {longest:?} at most");
        assert!(peak < before + GROWTH_KIB_MAX, "memory grew from {before} to {peak} KiB");
        assert!(longest < ACCEPT_MAX, "an event took {longest:?}");
        assert_eq!(trapped.load(Ordering::Relaxed), 0, "a redirect was followed");
        let log = simulated.server.log();
        for secret in SECRETS {
            assert!(!log.contains(secret), "{secret} is in the log");
        }
    }
}
