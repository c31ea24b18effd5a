//! Tests fault injection.

use crate::client::{
    Answer, World, changed, purchase_a, purchase_b, purchase_c, purchase_d, world,
};
use rstest::rstest;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;

const A: SimulatedNetwork = SimulatedNetwork::NetworkA;
/// Long enough for a response that is going to arrive.
const PATIENCE: Duration = Duration::from_millis(300);

async fn send(world: &World, network: SimulatedNetwork) -> Result<Answer, reqwest::Error> {
    let now = world.now();
    let request = match network {
        SimulatedNetwork::NetworkA => world.request_a(&purchase_a(now)),
        SimulatedNetwork::NetworkB => {
            let token = world.token().await;
            let request = world.post("/v1/events:ingest").bearer_auth(token);
            request.json(&purchase_b(now))
        }
        SimulatedNetwork::NetworkC => {
            let request = world.post("/open_api/v1.3/event/track/");
            request.header("access-token", "T").json(&purchase_c(now))
        }
        SimulatedNetwork::NetworkD => world
            .post("/v1/events?pid=P")
            .bearer_auth("K")
            .json(&purchase_d(now)),
    };
    Ok(Answer::of(request.timeout(Duration::from_secs(5)).send().await?).await)
}

#[rstest]
#[case(SimulatedNetwork::NetworkA)]
#[case(SimulatedNetwork::NetworkB)]
#[case(SimulatedNetwork::NetworkC)]
#[case(SimulatedNetwork::NetworkD)]
#[tokio::test]
async fn every_network_supports_every_fault(#[case] network: SimulatedNetwork) {
    let world = world().await;
    let html = "<html>502</html>";
    let status = json!({"kind": "status", "status": 502, "body": html});
    world.fault(network, status, Some(2));
    world.fault(network, json!({"kind": "reset_before"}), Some(1));
    world.fault(network, json!({"kind": "reset_after"}), Some(1));
    for _ in 0..2 {
        let answer = send(&world, network).await.expect("a response");
        assert_eq!((answer.status, answer.text.as_str()), (502, html));
    }
    assert!(send(&world, network).await.is_err());
    assert_eq!(world.counts(network), (0, 0, 0), "nothing was accepted yet");
    assert!(send(&world, network).await.is_err());
    assert_eq!(
        world.counts(network),
        (1, 0, 0),
        "accepted without a response"
    );
    assert_eq!(send(&world, network).await.expect("a response").status, 200);
    assert_eq!(world.counts(network), (1, 1, 0));
    let requests = world.running.control().requests(network, 20);
    let seen: Vec<_> = requests
        .iter()
        .filter(|one| one["path"] != "/token")
        .map(|one| (one["status"].clone(), one["fault"].clone()))
        .collect();
    let (lost, bad) = (Value::Null, json!(502));
    assert_eq!(
        seen,
        [
            (json!(200), Value::Null),
            (lost.clone(), json!("reset_after")),
            (lost, json!("reset_before")),
            (bad.clone(), json!("status")),
            (bad, json!("status")),
        ]
    );
}

#[tokio::test]
async fn resets_the_connection() {
    let world = world().await;
    world.fault(A, json!({"kind": "reset_before"}), None);
    let error = send(&world, A).await.expect_err("no response");
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    let mut kinds = Vec::new();
    while let Some(one) = cause {
        kinds.extend(
            one.downcast_ref::<std::io::Error>()
                .map(std::io::Error::kind),
        );
        cause = one.source();
    }
    assert!(
        kinds.contains(&std::io::ErrorKind::ConnectionReset),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_status_fault_has_headers_and_may_accept_the_events() {
    let world = world().await;
    let fault = json!({"kind": "status", "status": 429, "headers": {"Retry-After": "7"},
        "body": {"error": "slow down"}, "processed": true});
    world.fault(A, fault, Some(1));
    let request = world.request_a(&purchase_a(world.now()));
    let response = request.send().await.expect("a response");
    assert_eq!(response.headers()["retry-after"], "7");
    let answer = Answer::of(response).await;
    assert_eq!(
        (answer.status, answer.body),
        (429, json!({"error": "slow down"}))
    );
    assert_eq!(world.counts(A), (1, 0, 0));
}

#[tokio::test]
async fn a_delayed_response_still_accepts_the_events() {
    let world = world().await;
    world.fault(A, json!({"kind": "delay", "ms": 600}), Some(2));
    let request = world.request_a(&purchase_a(world.now())).timeout(PATIENCE);
    assert!(request.send().await.is_err_and(|error| error.is_timeout()));
    assert_eq!(world.counts(A), (1, 0, 0));
    let started_at = Instant::now();
    assert_eq!(send(&world, A).await.expect("a response").status, 200);
    assert!(started_at.elapsed() >= Duration::from_millis(600));
}

#[tokio::test]
async fn hanging_requests_resume_when_the_faults_are_cleared() {
    let world = world().await;
    world.fault(A, json!({"kind": "hang"}), None);
    let request = world.request_a(&purchase_a(world.now())).timeout(PATIENCE);
    assert!(request.send().await.is_err_and(|error| error.is_timeout()));
    assert_eq!(world.counts(A), (0, 0, 0));
    let clearing = async {
        tokio::time::sleep(PATIENCE).await;
        let url = world.url("/control/faults?network=network_a");
        world.send(world.client.delete(url)).await.status
    };
    let (answer, cleared) = tokio::join!(send(&world, A), clearing);
    assert_eq!((answer.expect("a response").status, cleared), (200, 200));
    assert_eq!(world.counts(A), (1, 0, 0));
}

#[tokio::test]
async fn hanging_requests_do_not_delay_the_shutdown() {
    let world = world().await;
    world.fault(A, json!({"kind": "hang"}), None);
    let request = world.request_a(&purchase_a(world.now()));
    let hanging = tokio::spawn(request.send());
    tokio::time::sleep(PATIENCE).await;
    let started_at = Instant::now();
    world.running.shutdown().await;
    assert!(started_at.elapsed() < Duration::from_secs(3));
    assert!(hanging.await.expect("a task").is_err());
}

#[rstest]
#[case(SimulatedNetwork::NetworkA, 400, "/error/code", json!(190))]
#[case(SimulatedNetwork::NetworkC, 200, "/code", json!(40105))]
#[case(SimulatedNetwork::NetworkD, 401, "/error/code", json!("invalid_api_key"))]
#[tokio::test]
async fn credentials_expire_on_demand(
    #[case] network: SimulatedNetwork,
    #[case] status: u16,
    #[case] pointer: &str,
    #[case] code: Value,
) {
    let world = world().await;
    world.fault(network, json!({"kind": "expire_tokens"}), Some(1));
    let answer = send(&world, network).await.expect("a response");
    assert_eq!(
        (answer.status, answer.body.pointer(pointer)),
        (status, Some(&code))
    );
    assert_eq!(send(&world, network).await.expect("a response").status, 200);
}

#[rstest]
#[case(SimulatedNetwork::NetworkA, "/error/error_data/blame_field_specs/0/0", json!("data[1]"))]
#[case(SimulatedNetwork::NetworkB, "/error/details/1/fieldViolations/0/field", json!("events.events[1]"))]
#[case(SimulatedNetwork::NetworkC, "/message", json!("Batch.1.event: Invalid event"))]
#[case(SimulatedNetwork::NetworkD, "/error/param", json!("events[1]"))]
#[tokio::test]
async fn poison_refuses_the_batch_and_optionally_names_the_event(
    #[case] network: SimulatedNetwork,
    #[case] pointer: &str,
    #[case] named: Value,
) {
    let world = world().await;
    let now = world.now();
    let (body, list, id) = match network {
        SimulatedNetwork::NetworkA => (purchase_a(now), "data", "event_id"),
        SimulatedNetwork::NetworkB => (purchase_b(now), "events", "transactionId"),
        SimulatedNetwork::NetworkC => (purchase_c(now), "data", "event_id"),
        SimulatedNetwork::NetworkD => (purchase_d(now), "events", "id"),
    };
    let second = changed(body[list][0].clone(), &format!("/{id}"), json!("poisoned"));
    let body = changed(body, &format!("/{list}/1"), second);
    let send = async || match network {
        SimulatedNetwork::NetworkA => world.to_a(&body).await,
        SimulatedNetwork::NetworkB => world.to_b(&body).await,
        SimulatedNetwork::NetworkC => world.to_c(&body).await,
        SimulatedNetwork::NetworkD => world.to_d(&body).await,
    };
    world.fault(
        network,
        json!({"kind": "poison", "ids": ["poisoned"]}),
        Some(1),
    );
    let answer = send().await;
    assert_eq!(answer.body.pointer(pointer), Some(&named), "{answer:?}");
    world.fault(
        network,
        json!({"kind": "poison", "prefix": "pois", "index": false}),
        Some(1),
    );
    let answer = send().await;
    assert_ne!(answer.body.pointer(pointer), Some(&named), "{answer:?}");
    assert_eq!(world.counts(network), (0, 0, 4));
    assert_eq!(send().await.status, 200);
    assert_eq!(world.counts(network), (2, 0, 4), "used up");
}

#[tokio::test]
async fn poison_matches_a_marked_event() {
    let world = world().await;
    world.fault(A, json!({"kind": "poison"}), None);
    let body = purchase_a(world.now());
    assert_eq!(world.to_a(&body).await.status, 200);
    let marked = changed(body, "/data/0/custom_data/poison", json!(true));
    assert_eq!(world.to_a(&marked).await.status, 400);
}

#[tokio::test]
async fn a_usage_fault_sets_the_headers() {
    let world = world().await;
    let fault = json!({"kind": "usage", "percent": 85, "regainMinutes": 3});
    world.fault(A, fault, Some(1));
    let request = world.request_a(&purchase_a(world.now()));
    let response = request.send().await.expect("a response");
    let header = response.headers()["x-business-use-case-usage"]
        .to_str()
        .expect("text");
    let usage: Value = serde_json::from_str(header).expect("JSON");
    let first = &usage["1029384756"][0];
    assert_eq!(
        (
            &first["call_count"],
            &first["estimated_time_to_regain_access"]
        ),
        (&json!(85), &json!(3))
    );
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_fault_can_target_one_account_or_endpoint() {
    let world = world().await;
    let control = world.running.control();
    let status = json!({"kind": "status", "status": 503});
    let injection = json!({"network": "network_c", "account": "OTHER", "fault": status});
    control.inject_fault(injection).expect("a fault");
    let reset =
        json!({"network": "network_c", "account": "OTHER", "fault": {"kind": "reset_before"}});
    control.inject_fault(reset).expect("a fault");
    assert_eq!(world.to_c(&purchase_c(world.now())).await.status, 200);
    let other = changed(purchase_c(world.now()), "/event_source_id", json!("OTHER"));
    assert_eq!(world.to_c(&other).await.status, 503);

    let injection =
        json!({"network": "network_b", "endpoint": "token", "fault": status, "times": 1});
    control.inject_fault(injection).expect("a fault");
    let form = "client_id=C&client_secret=S&refresh_token=R&grant_type=refresh_token";
    assert_eq!(world.send(world.token_request(form)).await.status, 503);
    assert_eq!(world.to_b(&purchase_b(world.now())).await.status, 200);
}
