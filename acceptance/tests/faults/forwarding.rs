//! Networks that fail in every way they know, and what becomes of the deliveries: each fault has an app and an account
//! of its own, so that all of them happen at once, and apps without a fault are there to see that nobody waits for
//! another's trouble.

use crate::networks::{NETWORKS, Simulated, deliveries, fresh, settled};
use crate::website::Website;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::on_both_engines;

/// Events of an app with a fault.
const EVENTS: usize = 10;
/// Events of a batch with a poisonous one.
const BATCH: usize = 100;
/// Which of them is poisonous.
const POISON: &str = "event-42";
/// Until everything has been sent: a request that hangs takes half a minute at `network_b`, and waits follow.
const IN_THE_END: Duration = Duration::from_mins(3);
/// Until an app without a fault has been served: less than a request that hangs takes, so that waiting for one is seen.
const AT_ONCE: Duration = Duration::from_secs(25);

/// A fault, and how often.
struct Case {
    name: &'static str,
    fault: Value,
    times: u32,
    /// Whether somebody has to let it go on.
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

/// The faults of a network.
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
        case("taken, and said to be not", processed, 1),
    ];
    // Whatever network_d says with success is success.
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

/// An app under a fault.
struct Patient {
    site: Website,
    network: SimulatedNetwork,
    account: String,
    name: String,
    expected: BTreeMap<String, usize>,
    pauses: bool,
}

async fn send(site: &Website, events: usize) {
    for number in 0..events {
        let event = fresh(&site.purchase(&format!("event-{number}"), "9.99"));
        site.deliver(&event).await;
    }
}

/// Everything as it should be.
fn all_delivered(events: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([("delivered".to_owned(), events)])
}

async fn under_fault(
    simulated: &Simulated,
    network: SimulatedNetwork,
    number: usize,
    case: Case,
) -> Patient {
    let site = simulated.site(network).await;
    let account = simulated.connect(&site, network, number).await;
    simulated.fault(network, &account, case.fault, Some(case.times));
    send(&site, EVENTS).await;
    Patient {
        site,
        network,
        account,
        name: format!("{}: {}", network.label(), case.name),
        expected: all_delivered(EVENTS),
        pauses: case.pauses,
    }
}

/// A batch of a hundred with one event that the network refuses, and all others for it.
async fn poisoned(
    simulated: &Simulated,
    network: SimulatedNetwork,
    number: usize,
    is_named: bool,
) -> Patient {
    let site = simulated.site(network).await;
    let account = simulated.connect(&site, network, number).await;
    let own_ids = json!({"settings": {"webEventId": true}});
    let path = format!("/integrations/{}", network.label());
    site.call("PATCH", &path, own_ids).await.expect(200);
    let poison = json!({"kind": "poison", "ids": [POISON], "index": is_named});
    simulated.fault(network, &account, poison, None);
    // So that all of them wait together.
    let later = json!({"kind": "status", "status": 503, "body": ""});
    simulated.fault(network, &account, later, Some(1));
    send(&site, BATCH).await;
    let expected = [("delivered", BATCH - 1), ("failed", 1)];
    Patient {
        site,
        network,
        account,
        name: format!("{}: poison, named: {is_named}", network.label()),
        expected: expected
            .map(|(name, count)| (name.to_owned(), count))
            .into(),
        pauses: false,
    }
}

/// Waits until the network's answer stopped the integration, then lets it go on.
async fn resume(patient: &Patient) {
    let path = format!("/integrations/{}", patient.network.label());
    let begun = Instant::now();
    loop {
        let found = patient
            .site
            .call("GET", &path, Value::Null)
            .await
            .expect(200)
            .data();
        if found["status"] == "paused" {
            let reason = found["statusReason"].as_str().unwrap();
            assert!(
                !reason.contains("0123456789"),
                "no credential is told: {reason}"
            );
            break;
        }
        assert!(begun.elapsed() < AT_ONCE, "{}: {found}", patient.name);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    patient
        .site
        .call("POST", &format!("{path}/resume"), Value::Null)
        .await
        .expect(200);
}

async fn examine(simulated: &Simulated, patient: &Patient) {
    let name = &patient.name;
    let standing = settled(&patient.site, IN_THE_END).await;
    assert_eq!(standing, patient.expected, "{name}");
    let received = simulated.received(patient.network, &patient.account);
    assert_eq!(received.len(), patient.expected["delivered"], "{name}");
    for one in &received {
        assert_eq!(one["counted"], 1, "{name}: counted twice: {one}");
    }
    let twice = received.iter().filter(|one| one["times"] != 1).count();
    let failed: Vec<Value> = deliveries(&patient.site)
        .await
        .into_iter()
        .filter(|one| one["status"] == "failed")
        .collect();
    for one in &failed {
        assert_eq!(one["eventId"], POISON, "{name}: {one}");
        let answer = one["attempts"].as_array().unwrap().last().unwrap()["answer"].as_str();
        assert!(
            answer.is_some_and(|words| words.len() > 10),
            "{name}: the network's words: {one}"
        );
    }
    println!("{name}: {standing:?}, came more than once: {twice}");
}

on_both_engines! {
    async fn after_the_faults_everything_deliverable_was_received_once(engine: Engine) {
        let simulated = Simulated::start(engine).await;
        let mut patients = Vec::new();
        let mut number = 0;
        for (network, _) in NETWORKS {
            for case in cases(network) {
                number += 1;
                patients.push(under_fault(&simulated, network, number, case).await);
            }
            for is_named in [true, false] {
                number += 1;
                patients.push(poisoned(&simulated, network, number, is_named).await);
            }
        }
        // Nobody waits for another's trouble.
        for (network, _) in NETWORKS {
            number += 1;
            let site = simulated.site(network).await;
            simulated.connect(&site, network, number).await;
            let begun = Instant::now();
            send(&site, EVENTS).await;
            assert_eq!(settled(&site, AT_ONCE).await, all_delivered(EVENTS));
            println!("{}: an app without a fault waited {:?}", network.label(), begun.elapsed());
        }
        for patient in patients.iter().filter(|patient| patient.pauses) {
            resume(patient).await;
        }
        for patient in &patients {
            examine(&simulated, patient).await;
        }
        let log = simulated.server.log();
        for secret in ["0123456789abcdef", "client-secret-12345", "refresh-token-12345", "E.C.P.1", "127.0.0.1\""] {
            assert!(!log.contains(secret), "{secret} is in the log");
        }
    }
}
