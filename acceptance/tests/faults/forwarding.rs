//! Deliveries when networks fail in every way that the simulator supports.
//!
//! Each fault has its own app and account, so that all faults happen at the same time. Apps without
//! a fault show that one app's failures do not delay another.

use crate::networks::{
    NETWORKS, ServerWithSimulator, deliveries, wait_until_settled, with_current_time,
};
use crate::website::Website;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::on_both_engines;

/// Events per app with a fault.
const EVENTS: usize = 10;
/// Events in a batch with one that the network rejects.
const BATCH: usize = 100;
/// Id of the event that the network rejects.
const REJECTED_EVENT: &str = "event-42";
/// Maximum time until everything is sent. A hanging request to `network_b` takes half a minute, and
/// back-off follows.
const SETTLE_MAX: Duration = Duration::from_mins(3);
/// Maximum time for an app without a fault. Shorter than a hanging request, so that waiting for one
/// fails the test.
const UNAFFECTED_MAX: Duration = Duration::from_secs(25);

/// A fault and how often it happens.
struct Case {
    name: &'static str,
    fault: Value,
    times: u32,
    /// Whether the integration pauses and must be resumed.
    pauses: bool,
}

fn case(name: &'static str, fault: Value, times: u32) -> Case {
    Case {
        name,
        fault,
        times,
        pauses: false,
    }
}

/// Returns the faults to test with a network.
fn cases(network: SimulatedNetwork) -> Vec<Case> {
    let status =
        |status: u16, body: &str| json!({"kind": "status", "status": status, "body": body});
    let mut slow_down = status(429, "{}");
    slow_down["headers"] = json!({"Retry-After": "3"});
    let mut processed = status(504, "<html>late</html>");
    processed["processed"] = json!(true);
    let mut cases = vec![
        case("500", status(500, "{}"), 2),
        case("429", status(429, ""), 1),
        case("429 with Retry-After", slow_down, 1),
        case("hang", json!({"kind": "hang"}), 1),
        case("reset before", json!({"kind": "reset_before"}), 1),
        case("reset after", json!({"kind": "reset_after"}), 1),
        case("HTML", status(502, "<html>Bad gateway</html>"), 1),
        case("processed, but answered with 504", processed, 1),
    ];
    // Any successful status of network_d means success.
    if network != SimulatedNetwork::NetworkD {
        cases.push(case(
            "HTML with success",
            status(200, "<html>hello</html>"),
            1,
        ));
    }
    let error = match network {
        SimulatedNetwork::NetworkA => {
            Some(json!({"error": {"message": "later", "code": 2, "is_transient": true}}))
        }
        SimulatedNetwork::NetworkC => {
            Some(json!({"code": 40100, "message": "Too many requests.", "data": {}}))
        }
        SimulatedNetwork::NetworkB | SimulatedNetwork::NetworkD => None,
    };
    if let Some(error) = error {
        cases.push(case(
            "200 with an error",
            status(200, &error.to_string()),
            1,
        ));
    }
    cases.push(Case {
        name: "expired token",
        fault: json!({"kind": "expire_tokens"}),
        times: 1,
        pauses: network != SimulatedNetwork::NetworkB,
    });
    cases
}

/// An app whose deliveries meet a fault.
struct FaultyApp {
    site: Website,
    network: SimulatedNetwork,
    account: String,
    name: String,
    expected: BTreeMap<String, usize>,
    pauses: bool,
}

async fn send(site: &Website, events: usize) {
    for number in 0..events {
        let event = with_current_time(&site.purchase(&format!("event-{number}"), "9.99"));
        site.deliver(&event).await;
    }
}

/// Returns the expected counts when every event is delivered.
fn all_delivered(events: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([("delivered".to_owned(), events)])
}

/// Creates an app, injects the fault, and sends events.
async fn start_case(
    simulated: &ServerWithSimulator,
    network: SimulatedNetwork,
    number: usize,
    case: Case,
) -> FaultyApp {
    let site = simulated.site(network).await;
    let account = simulated.connect(&site, network, number).await;
    simulated.inject_fault(network, &account, case.fault, Some(case.times));
    send(&site, EVENTS).await;
    FaultyApp {
        site,
        network,
        account,
        name: format!("{}: {}", network.label(), case.name),
        expected: all_delivered(EVENTS),
        pauses: case.pauses,
    }
}

/// Creates an app with a batch that the network rejects because of one event.
async fn start_rejected_batch(
    simulated: &ServerWithSimulator,
    network: SimulatedNetwork,
    number: usize,
    names_event: bool,
) -> FaultyApp {
    let site = simulated.site(network).await;
    let account = simulated.connect(&site, network, number).await;
    let own_ids = json!({"settings": {"webEventId": true}});
    let path = format!("/integrations/{}", network.label());
    site.call("PATCH", &path, own_ids).await.expect(200);
    let poison = json!({"kind": "poison", "ids": [REJECTED_EVENT], "index": names_event});
    simulated.inject_fault(network, &account, poison, None);
    // The 503 makes all events wait, so that they form one batch.
    let later = json!({"kind": "status", "status": 503, "body": ""});
    simulated.inject_fault(network, &account, later, Some(1));
    send(&site, BATCH).await;
    let expected = [("delivered", BATCH - 1), ("failed", 1)];
    FaultyApp {
        site,
        network,
        account,
        name: format!(
            "{}: rejected batch, names the event: {names_event}",
            network.label()
        ),
        expected: expected
            .map(|(name, count)| (name.to_owned(), count))
            .into(),
        pauses: false,
    }
}

/// Waits until the integration is paused, then resumes it.
async fn resume(app: &FaultyApp) {
    let path = format!("/integrations/{}", app.network.label());
    let begun = Instant::now();
    loop {
        let found = app
            .site
            .call("GET", &path, Value::Null)
            .await
            .expect(200)
            .data();
        if found["status"] == "paused" {
            let reason = found["statusReason"].as_str().unwrap();
            assert!(
                !reason.contains("0123456789"),
                "the reason contains a credential: {reason}"
            );
            break;
        }
        assert!(begun.elapsed() < UNAFFECTED_MAX, "{}: {found}", app.name);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    app.site
        .call("POST", &format!("{path}/resume"), Value::Null)
        .await
        .expect(200);
}

async fn check_app(simulated: &ServerWithSimulator, app: &FaultyApp) {
    let name = &app.name;
    let counts = wait_until_settled(&app.site, SETTLE_MAX).await;
    assert_eq!(counts, app.expected, "{name}");
    let received = simulated.received(app.network, &app.account);
    assert_eq!(received.len(), app.expected["delivered"], "{name}");
    for one in &received {
        assert_eq!(one["counted"], 1, "{name}: counted twice: {one}");
    }
    let repeated = received.iter().filter(|one| one["times"] != 1).count();
    let failed: Vec<Value> = deliveries(&app.site)
        .await
        .into_iter()
        .filter(|one| one["status"] == "failed")
        .collect();
    for one in &failed {
        assert_eq!(one["eventId"], REJECTED_EVENT, "{name}: {one}");
        let answer = one["attempts"].as_array().unwrap().last().unwrap()["answer"].as_str();
        assert!(
            answer.is_some_and(|text| text.len() > 10),
            "{name}: the network's answer is stored: {one}"
        );
    }
    println!("{name}: {counts:?}, received more than once: {repeated}");
}

on_both_engines! {
    async fn every_deliverable_event_is_counted_once_after_the_faults(engine: Engine) {
        let simulated = ServerWithSimulator::start(engine).await;
        let mut apps = Vec::new();
        let mut number = 0;
        for (network, _) in NETWORKS {
            for case in cases(network) {
                number += 1;
                apps.push(start_case(&simulated, network, number, case).await);
            }
            for names_event in [true, false] {
                number += 1;
                apps.push(start_rejected_batch(&simulated, network, number, names_event).await);
            }
        }
        // Apps without a fault are not delayed.
        for (network, _) in NETWORKS {
            number += 1;
            let site = simulated.site(network).await;
            simulated.connect(&site, network, number).await;
            let begun = Instant::now();
            send(&site, EVENTS).await;
            assert_eq!(wait_until_settled(&site, UNAFFECTED_MAX).await, all_delivered(EVENTS));
            println!("{}: an app without a fault waited {:?}", network.label(), begun.elapsed());
        }
        for app in apps.iter().filter(|app| app.pauses) {
            resume(app).await;
        }
        for app in &apps {
            check_app(&simulated, app).await;
        }
        let log = simulated.server.log();
        for secret in ["0123456789abcdef", "client-secret-12345", "refresh-token-12345", "E.C.P.1", "127.0.0.1\""] {
            assert!(!log.contains(secret), "{secret} is in the log");
        }
    }
}
