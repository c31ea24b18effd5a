//! How fast it is: a benchmark of the service must not measure the simulator.

use crate::client::{changed, purchase_a, world};
use serde_json::json;
use std::time::Instant;
use tributary_simulator::Network;

const BATCH: usize = 100;
const BATCHES: usize = 1_000;

/// Everything on one thread, the sender included.
#[tokio::test]
#[ignore = "a measurement: cargo test --release -p tributary-simulator -- --ignored --nocapture"]
async fn twenty_thousand_events_a_second_through_network_a() {
    let world = world().await;
    let body = purchase_a(world.now());
    let text = |batch: usize| {
        let event = |number: usize| {
            let id = format!("{batch}-{number}");
            changed(body["data"][0].clone(), "/event_id", json!(id))
        };
        let events: Vec<_> = (0..BATCH).map(event).collect();
        changed(body.clone(), "/data", json!(events)).to_string()
    };
    let texts: Vec<_> = (0..BATCHES).map(text).collect();
    let begun = Instant::now();
    for text in texts {
        let request = world.post("/v26.0/1/events?access_token=T");
        let request = request
            .header("content-type", "application/json")
            .body(text);
        assert_eq!(world.send(request).await.status, 200);
    }
    let took = begun.elapsed();
    let events = (BATCH * BATCHES) as u128;
    let rate = events * 1_000 / took.as_millis().max(1);
    println!("{rate} events a second");
    assert_eq!(u128::from(world.books(Network::NetworkA).0), events);
    assert!(rate > 20_000, "{rate} events a second");
}
