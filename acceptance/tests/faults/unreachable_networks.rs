//! Networks that cannot be reached: wrong TLS in every usual way, names that do not resolve, closed
//! ports. Nothing is sent then, so every delivery is simply retried.

use crate::networks::{
    NETWORKS, ServerWithSimulator, deliveries, wait_until_settled, with_current_time,
};
use crate::website::Website;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::{
    Engine, HostileProxy, TestDatabase, TlsFault, on_both_engines, test_authority,
};

/// Events per app and round.
const EVENTS: usize = 2;
/// Maximum time until a failed attempt is shown: connecting may take three seconds, also for an
/// access token before the request.
const SHOWN_MAX: Duration = Duration::from_secs(30);
/// Maximum time until everything is delivered after the fault, with the back-off of a few failures.
const SETTLE_MAX: Duration = Duration::from_mins(2);
/// Number of the first account.
const FIRST_ACCOUNT: usize = 100;

/// An app and its account at a network.
struct App {
    site: Website,
    network: SimulatedNetwork,
    account: String,
}

async fn start_apps(simulated: &ServerWithSimulator) -> Vec<App> {
    let mut apps = Vec::new();
    for (number, (network, _)) in NETWORKS.into_iter().enumerate() {
        let site = simulated.site(network).await;
        let account = simulated
            .connect(&site, network, FIRST_ACCOUNT + number)
            .await;
        apps.push(App {
            site,
            network,
            account,
        });
    }
    apps
}

async fn send(app: &App, round: &str) {
    for number in 0..EVENTS {
        let event = app.site.purchase(&format!("{round}-{number}"), "9.99");
        app.site.deliver(&with_current_time(&event)).await;
    }
}

/// Returns whether the delivery of an event waits after an attempt that sent nothing.
fn waits_unsent(delivery: &Value, round: &str) -> bool {
    let is_of_round = delivery["eventId"].as_str().unwrap().starts_with(round);
    let last = delivery["attempts"].as_array().unwrap().last();
    let is_unsent = last.is_some_and(|one| one["verdict"] == "retry" && one["status"].is_null());
    is_of_round
        && is_unsent
        && delivery["status"] == "pending"
        && delivery["nextAttemptAt"].is_string()
}

/// Waits until a delivery of the round shows that nothing could be sent.
async fn wait_until_shown(app: &App, round: &str) {
    let begun = Instant::now();
    loop {
        let all = deliveries(&app.site).await;
        if all.iter().any(|one| waits_unsent(one, round)) {
            return;
        }
        let label = app.network.label();
        assert!(begun.elapsed() < SHOWN_MAX, "{label}, {round}: {all:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Waits until everything sent so far is delivered, and checks that each event was counted once.
async fn check_delivered(simulated: &ServerWithSimulator, app: &App, events: usize) {
    let counts = wait_until_settled(&app.site, SETTLE_MAX).await;
    let label = app.network.label();
    assert_eq!(
        counts,
        BTreeMap::from([("delivered".to_owned(), events)]),
        "{label}"
    );
    let received = simulated.received(app.network, &app.account);
    assert_eq!(received.len(), events, "{label}");
    for one in &received {
        assert_eq!((&one["counted"], &one["times"]), (&1.into(), &1.into()));
    }
}

/// Starts a server that trusts the test authority and whose networks are the proxy with TLS.
async fn start_with_tls(engine: Engine) -> (ServerWithSimulator, HostileProxy) {
    let database = TestDatabase::new(engine).await;
    let authority = database.folder().join("authority.pem");
    std::fs::write(&authority, test_authority()).unwrap();
    let mut simulated = ServerWithSimulator::start_on(database).await;
    let proxy = HostileProxy::start(Some(simulated.simulator.address())).await;
    let trusted = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    simulated
        .restart_behind(&proxy.tls_base_url(), &trusted)
        .await;
    (simulated, proxy)
}

on_both_engines! {
    async fn wrong_tls_sends_nothing_and_delays_only(engine: Engine) {
        let (simulated, proxy) = start_with_tls(engine).await;
        let apps = start_apps(&simulated).await;
        for (number, fault) in TlsFault::ALL.into_iter().enumerate() {
            let round = format!("{fault:?}");
            proxy.fail_tls(Some(fault));
            for app in &apps {
                send(app, &round).await;
            }
            for app in &apps {
                wait_until_shown(app, &round).await;
            }
            let failures = proxy.failed_handshakes();
            assert!(failures > 0, "{round}: no handshake failed");
            proxy.heal();
            let begun = Instant::now();
            for app in &apps {
                check_delivered(&simulated, app, EVENTS * (number + 1)).await;
            }
            println!("{engine:?}, {round}: {failures} handshakes failed so far; delivered {:?} after", begun.elapsed());
        }
    }

    async fn unknown_names_and_closed_ports_only_delay(engine: Engine) {
        let mut simulated = ServerWithSimulator::start(engine).await;
        let unknown = "http://network.invalid";
        // Nothing listens on port 9 of this machine, which is also the default of all tests.
        let closed = "http://127.0.0.1:9";
        for (round, url) in [("unknown name", unknown), ("closed port", closed)] {
            simulated.restart_behind(url, &[]).await;
            let apps = start_apps(&simulated).await;
            for app in &apps {
                send(app, round).await;
            }
            for app in &apps {
                wait_until_shown(app, round).await;
            }
            let log = simulated.server.log();
            assert!(!log.contains("EAAB0123456789abcdef"), "a credential is in the log");
            let simulator = simulated.simulator.base_url();
            simulated.restart_behind(&simulator, &[]).await;
            for app in &apps {
                let app = App {
                    site: app.site.through(simulated.server.base_url()),
                    network: app.network,
                    account: app.account.clone(),
                };
                check_delivered(&simulated, &app, EVENTS).await;
            }
            simulated.simulator.control().reset();
        }
    }
}
