//! Tests the control API over HTTP.

use crate::client::{changed, purchase_a, world};
use rstest::rstest;
use serde_json::json;
use tributary_simulator::SimulatedNetwork;

const A: SimulatedNetwork = SimulatedNetwork::NetworkA;

#[tokio::test]
async fn controls_everything_over_http() {
    let world = world().await;
    let post =
        async |path: &str, body: serde_json::Value| world.send(world.post(path).json(&body)).await;
    let account = json!({"network": "network_a", "pixelId": "1029384756", "accessToken": "SECRET"});
    assert_eq!(post("/control/accounts", account).await.status, 201);
    assert_eq!(
        world.to_a(&purchase_a(world.now())).await.status,
        400,
        "another token"
    );
    let fault = json!({"network": "network_a", "account": null, "times": 3,
        "fault": {"kind": "status", "status": 500, "body": "oops", "headers": {}}});
    assert_eq!(post("/control/faults", fault).await.status, 201);
    assert_eq!(world.to_a(&purchase_a(world.now())).await.text, "oops");
    let state = world.get("/control/state").await.body;
    assert_eq!(state["faults"][0]["remaining"], 2);
    assert_eq!(state["networks"]["network_a"]["requests"], 2);
    assert_eq!(
        state["networks"]["network_a"]["refusedByReason"],
        json!({"190": 1})
    );
    assert_eq!(
        world.get("/control/faults").await.body["faults"],
        state["faults"]
    );

    assert_eq!(
        post("/control/clock", json!({"aheadMs": 86_400_000}))
            .await
            .status,
        200
    );
    assert_eq!(
        world.get("/control/state").await.body["aheadMs"],
        86_400_000
    );
    assert_eq!(post("/control/reset", json!({})).await.status, 200);
    let state = world.get("/control/state").await.body;
    assert_eq!(
        (&state["aheadMs"], &state["faults"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(state["networks"]["network_a"]["requests"], 0);
    assert_eq!(
        world.to_a(&purchase_a(world.now())).await.status,
        200,
        "the account was reset"
    );
}

#[tokio::test]
async fn lists_conversions_and_requests_without_credentials() {
    let world = world().await;
    let body = purchase_a(world.now());
    for id in ["one", "two", "two"] {
        world
            .to_a(&changed(body.clone(), "/data/0/event_id", json!(id)))
            .await;
    }
    let path = "/control/networks/network_a/conversions?account=1029384756&eventId=two";
    let list = world.get(path).await.body["conversions"].clone();
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&list[0]["times"], &list[0]["counted"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(list[0]["payload"]["event_name"], "Purchase");
    let path = "/control/networks/network_a/conversions?limit=1";
    assert_eq!(
        world.get(path).await.body["conversions"][0]["eventId"],
        "two"
    );
    let path = "/control/networks/network_a/conversions?account=5";
    assert_eq!(world.get(path).await.body["conversions"], json!([]));

    let answer = world
        .get("/control/networks/network_a/requests?limit=2")
        .await;
    assert_eq!(answer.body["requests"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        answer.body["requests"][0]["body"]["data"][0]["event_id"],
        "two"
    );
    assert!(
        !answer.text.contains("access_token"),
        "the query is not recorded"
    );
    world.token().await;
    let answer = world.get("/control/networks/network_b/requests").await;
    let form = &answer.body["requests"][0]["body"];
    assert_eq!(
        (&form["client_secret"], &form["refresh_token"]),
        (&json!("***"), &json!("***"))
    );
}

#[rstest]
#[case(
    "/control/faults",
    r#"{"network":"network_e","fault":{"kind":"hang"}}"#
)]
#[case(
    "/control/faults",
    r#"{"network":"network_a","fault":{"kind":"explode"}}"#
)]
#[case(
    "/control/faults",
    r#"{"network":"network_a","fault":{"kind":"delay"}}"#
)]
#[case(
    "/control/faults",
    r#"{"network":"network_a","fault":{"kind":"hang"},"times":0}"#
)]
#[case(
    "/control/faults",
    r#"{"network":"network_a","fault":{"kind":"hang"},"surprise":1}"#
)]
#[case("/control/accounts", r#"{"network":"network_a"}"#)]
#[case(
    "/control/accounts",
    r#"{"network":"network_a","pixelId":"1","surprise":1}"#
)]
#[case("/control/clock", r#"{"aheadMs":"1"}"#)]
#[case("/control/clock", "not json")]
#[tokio::test]
async fn rejects_invalid_requests(#[case] path: &str, #[case] body: &str) {
    let world = world().await;
    let answer = world.send(world.post(path).body(body.to_owned())).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body["error"].is_string());
    assert_eq!(world.running.control().state()["faults"], json!([]));
}

#[tokio::test]
async fn rejects_cross_site_requests() {
    let world = world().await;
    let request = world
        .post("/control/reset")
        .header("sec-fetch-site", "cross-site");
    assert_eq!(world.send(request).await.status, 403);
}

#[tokio::test]
async fn limits_memory_but_not_totals() {
    let options = tributary_simulator::SimulatorConfig {
        conversions_max: 50,
        payloads_max: 5,
        ..tributary_simulator::SimulatorConfig::default()
    };
    let world = crate::client::world_with(options).await;
    let body = purchase_a(world.now());
    let event = |id: usize| changed(body["data"][0].clone(), "/event_id", json!(id.to_string()));
    for from in [0, 100] {
        let events: Vec<_> = (from..from + 100).map(event).collect();
        world
            .to_a(&changed(body.clone(), "/data", json!(events)))
            .await;
    }
    assert_eq!(world.counts(A), (200, 0, 0));
    let kept = world.running.control().conversions(A, None, None, 1_000);
    let payloads = kept.iter().filter(|one| !one["payload"].is_null()).count();
    assert_eq!((kept.len(), payloads), (50, 5));
}
