//! Tests the page.

use crate::client::{AGENT, changed, purchase_a, purchase_d, world};
use serde_json::json;
use tributary_simulator::SimulatedNetwork;

#[tokio::test]
async fn the_page_shows_conversions_without_personal_data() {
    let world = world().await;
    let body = purchase_a(world.now());
    world.to_a(&body).await;
    world.to_a(&body).await;
    world.to_d(&purchase_d(world.now())).await;
    let markup = changed(
        body.clone(),
        "/data/0/event_id",
        json!("<script>alert(1)</script>"),
    );
    world.to_a(&markup).await;
    world
        .to_a(&changed(body, "/data/0/event_time", json!(1)))
        .await;
    world.fault(SimulatedNetwork::NetworkC, json!({"kind": "hang"}), None);

    let response = world
        .client
        .get(world.url("/"))
        .send()
        .await
        .expect("a response");
    let policy = response.headers()["content-security-policy"]
        .to_str()
        .expect("text");
    assert!(policy.starts_with("default-src 'none'; style-src 'self'; form-action 'self'"));
    let page = response.text().await.expect("a page");
    for shown in [
        "ord_20261114_000731",
        "29.99 USD",
        "received 2 times",
        "1029384756",
        "is too far in the past",
        "100/2804003",
        "until cleared",
        "http-equiv=\"refresh\"",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    for hidden in [AGENT, "203.0.113.24", "access_token", "<script"] {
        assert!(!page.contains(hidden), "{hidden}");
    }
    let still = world.get("/?still").await;
    assert!(!still.text.contains("http-equiv"));
    let style = world.get("/simulator.css").await;
    assert_eq!(style.status, 200);
}

#[tokio::test]
async fn forms_inject_and_clear_faults() {
    let world = world().await;
    let form = async |path: &str, body: &'static str| {
        let kind = "application/x-www-form-urlencoded";
        let request = world.post(path).header("content-type", kind).body(body);
        world.send(request).await.status
    };
    let faults = || {
        world.running.control().state()["faults"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!(
        form("/page/faults", "network=network_a&kind=server_error").await,
        200
    );
    assert_eq!(
        form("/page/faults", "network=network_d&kind=hang").await,
        200
    );
    assert_eq!(
        form("/page/faults", "network=network_d&kind=status").await,
        400
    );
    assert_eq!(faults(), Some(2));
    assert_eq!(world.to_a(&purchase_a(world.now())).await.status, 500);
    assert_eq!(faults(), Some(1));
    assert_eq!(form("/page/clear", "network=network_e").await, 400);
    assert_eq!(form("/page/clear", "network=network_a").await, 200);
    assert_eq!(faults(), Some(1));
    assert_eq!(form("/page/clear", "").await, 200);
    assert_eq!(faults(), Some(0));
}
