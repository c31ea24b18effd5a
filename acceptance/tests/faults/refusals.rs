//! Answers that refuse a whole request although no event is to blame, and answers that blame some events only.

use crate::networks::{NETWORKS, Simulated, deliveries, fresh, settled, standing};
use crate::website::Website;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::on_both_engines;

const EVENTS: usize = 12;
const RESUMES: usize = 3;
const SOON: Duration = Duration::from_secs(30);
/// Backing off may take this long.
const IN_THE_END: Duration = Duration::from_mins(3);

async fn send(site: &Website, prefix: &str) {
    for number in 0..EVENTS {
        let event = fresh(&site.purchase(&format!("{prefix}-{number}"), "9.99"));
        site.accepted(&event).await;
    }
}

fn answer(status: u16, body: &Value) -> Value {
    json!({"kind": "status", "status": status, "body": body})
}

fn google(reason: &str) -> Value {
    let detail = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason});
    json!({"error": {"code": 400, "message": "No.", "details": [detail]}})
}

/// An answer that says that the account cannot be used.
fn account_error(network: SimulatedNetwork) -> Value {
    match network {
        SimulatedNetwork::NetworkA => answer(
            400,
            &json!({"error": {"message": "Deprecated API version.", "code": 2635}}),
        ),
        SimulatedNetwork::NetworkB => answer(
            400,
            &google("EU_POLITICAL_ADVERTISING_DECLARATION_REQUIRED"),
        ),
        SimulatedNetwork::NetworkC => {
            answer(200, &json!({"code": 40007, "message": "No.", "data": {}}))
        }
        SimulatedNetwork::NetworkD => {
            answer(403, &json!({"error": {"message": "403: unknown pid"}}))
        }
    }
}

/// An answer with a code that nobody has heard of.
fn unknown_error(network: SimulatedNetwork) -> Value {
    match network {
        SimulatedNetwork::NetworkA => {
            answer(400, &json!({"error": {"message": "No.", "code": 31999}}))
        }
        SimulatedNetwork::NetworkB => answer(400, &google("SOMETHING_NEW")),
        SimulatedNetwork::NetworkC => {
            answer(200, &json!({"code": 40999, "message": "No.", "data": {}}))
        }
        SimulatedNetwork::NetworkD => answer(
            422,
            &json!({"error": {"message": "No.", "code": "something_new"}}),
        ),
    }
}

async fn paused(site: &Website, network: SimulatedNetwork) {
    let path = format!("/integrations/{}", network.label());
    let begun = Instant::now();
    loop {
        let found = site
            .call("GET", &path, Value::Null)
            .await
            .expect(200)
            .data();
        if found["status"] == "paused" {
            return;
        }
        assert!(begun.elapsed() < SOON, "{found}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn resume(site: &Website, network: SimulatedNetwork) {
    let path = format!("/integrations/{}/resume", network.label());
    site.call("POST", &path, Value::Null).await.expect(200);
}

fn all(status: &str) -> BTreeMap<String, usize> {
    BTreeMap::from([(status.to_owned(), EVENTS)])
}

on_both_engines! {
    async fn an_error_of_the_whole_account_loses_no_delivery_over_several_resumes(engine: Engine) {
        let simulated = Simulated::start(engine).await;
        let mut sites = Vec::new();
        for (number, (network, _)) in NETWORKS.into_iter().enumerate() {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            simulated.fault(network, &account, account_error(network), None);
            send(&site, "event").await;
            sites.push((site, network));
        }
        for _ in 0..RESUMES {
            for (site, network) in &sites {
                paused(site, *network).await;
                assert_eq!(standing(site).await, all("pending"), "{}", network.label());
                resume(site, *network).await;
            }
        }
        for (site, network) in &sites {
            paused(site, *network).await;
            simulated.simulator.control().clear_faults(Some(*network));
            resume(site, *network).await;
            assert_eq!(settled(site, IN_THE_END).await, all("delivered"), "{}", network.label());
        }
    }

    async fn an_unknown_error_of_every_request_holds_the_events(engine: Engine) {
        let simulated = Simulated::start(engine).await;
        let mut sites = Vec::new();
        for (number, (network, _)) in NETWORKS.into_iter().enumerate() {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            // Whatever the events are sent in, four requests do not end it.
            simulated.fault(network, &account, unknown_error(network), Some(4));
            send(&site, "event").await;
            sites.push((site, network));
        }
        for (site, network) in &sites {
            assert_eq!(settled(site, IN_THE_END).await, all("delivered"), "{}", network.label());
        }
    }

    async fn only_the_events_that_an_answer_lists_fail(engine: Engine) {
        let simulated = Simulated::start(engine).await;
        for (number, (network, how)) in [(SimulatedNetwork::NetworkC, "partial"), (SimulatedNetwork::NetworkD, "path")]
            .into_iter()
            .enumerate()
        {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            let path = format!("/integrations/{}", network.label());
            let own_ids = json!({"settings": {"webEventId": true}});
            site.call("PATCH", &path, own_ids).await.expect(200);
            let poison = json!({"kind": "poison", "ids": ["event-3", "event-8"], how: true});
            simulated.fault(network, &account, poison, None);
            // So that all of them wait together.
            let later = json!({"kind": "status", "status": 503, "body": ""});
            simulated.fault(network, &account, later, Some(1));
            send(&site, "event").await;
            let expected = BTreeMap::from([("delivered".to_owned(), EVENTS - 2), ("failed".to_owned(), 2)]);
            assert_eq!(settled(&site, IN_THE_END).await, expected, "{how}");
            for one in deliveries(&site).await {
                let is_bad = one["eventId"] == "event-3" || one["eventId"] == "event-8";
                assert_eq!(one["status"] == "failed", is_bad, "{how}: {one}");
            }
            assert_eq!(simulated.received(network, &account).len(), EVENTS - 2, "{how}");
        }
    }
}
