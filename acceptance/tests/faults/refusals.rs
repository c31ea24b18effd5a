//! Network responses that reject a whole request, and responses that reject some of its events.

use crate::networks::{
    NETWORKS, ServerWithSimulator, deliveries, delivery_counts, wait_until_settled,
    with_current_time,
};
use crate::website::Website;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::on_both_engines;

const EVENTS: usize = 12;
const RESUMES: usize = 3;
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Maximum time until everything is sent, with back-off.
const SETTLE_MAX: Duration = Duration::from_mins(3);

async fn send(site: &Website, prefix: &str) {
    for number in 0..EVENTS {
        let event = with_current_time(&site.purchase(&format!("{prefix}-{number}"), "9.99"));
        site.send_accepted(&event).await;
    }
}

/// Builds a fault that answers with this status and body.
fn answer(status: u16, body: &Value) -> Value {
    json!({"kind": "status", "status": status, "body": body})
}

/// Builds an error body of Google Ads.
fn google_error(reason: &str) -> Value {
    let detail = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason});
    json!({"error": {"code": 400, "message": "No.", "details": [detail]}})
}

/// Returns an answer that rejects the whole account.
fn account_error(network: SimulatedNetwork) -> Value {
    match network {
        SimulatedNetwork::NetworkA => answer(
            400,
            &json!({"error": {"message": "Deprecated API version.", "code": 2635}}),
        ),
        SimulatedNetwork::NetworkB => answer(
            400,
            &google_error("EU_POLITICAL_ADVERTISING_DECLARATION_REQUIRED"),
        ),
        SimulatedNetwork::NetworkC => {
            answer(200, &json!({"code": 40007, "message": "No.", "data": {}}))
        }
        SimulatedNetwork::NetworkD => {
            answer(403, &json!({"error": {"message": "403: unknown pid"}}))
        }
    }
}

/// Returns an answer with an undocumented error code.
fn unknown_error(network: SimulatedNetwork) -> Value {
    match network {
        SimulatedNetwork::NetworkA => {
            answer(400, &json!({"error": {"message": "No.", "code": 31999}}))
        }
        SimulatedNetwork::NetworkB => answer(400, &google_error("SOMETHING_NEW")),
        SimulatedNetwork::NetworkC => {
            answer(200, &json!({"code": 40999, "message": "No.", "data": {}}))
        }
        SimulatedNetwork::NetworkD => answer(
            422,
            &json!({"error": {"message": "No.", "code": "something_new"}}),
        ),
    }
}

async fn wait_until_paused(site: &Website, network: SimulatedNetwork) {
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
        assert!(begun.elapsed() < PAUSE_MAX, "{found}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn resume(site: &Website, network: SimulatedNetwork) {
    let path = format!("/integrations/{}/resume", network.label());
    site.call("POST", &path, Value::Null).await.expect(200);
}

/// Returns the expected counts when all events have this status.
fn all_with_status(status: &str) -> BTreeMap<String, usize> {
    BTreeMap::from([(status.to_owned(), EVENTS)])
}

on_both_engines! {
    async fn an_account_error_loses_no_delivery_across_several_resumes(engine: Engine) {
        let simulated = ServerWithSimulator::start(engine).await;
        let mut sites = Vec::new();
        for (number, (network, _)) in NETWORKS.into_iter().enumerate() {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            simulated.inject_fault(network, &account, account_error(network), None);
            send(&site, "event").await;
            sites.push((site, network));
        }
        for _ in 0..RESUMES {
            for (site, network) in &sites {
                wait_until_paused(site, *network).await;
                assert_eq!(delivery_counts(site).await, all_with_status("pending"), "{}", network.label());
                resume(site, *network).await;
            }
        }
        for (site, network) in &sites {
            wait_until_paused(site, *network).await;
            simulated.simulator.control().clear_faults(Some(*network));
            resume(site, *network).await;
            assert_eq!(wait_until_settled(site, SETTLE_MAX).await, all_with_status("delivered"), "{}", network.label());
        }
    }

    async fn an_unknown_error_for_the_whole_request_is_retried(engine: Engine) {
        let simulated = ServerWithSimulator::start(engine).await;
        let mut sites = Vec::new();
        for (number, (network, _)) in NETWORKS.into_iter().enumerate() {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            // Four failed requests do not use up the retries, however the events are batched.
            simulated.inject_fault(network, &account, unknown_error(network), Some(4));
            send(&site, "event").await;
            sites.push((site, network));
        }
        for (site, network) in &sites {
            assert_eq!(wait_until_settled(site, SETTLE_MAX).await, all_with_status("delivered"), "{}", network.label());
        }
    }

    async fn only_the_listed_events_fail(engine: Engine) {
        let simulated = ServerWithSimulator::start(engine).await;
        for (number, (network, format)) in [(SimulatedNetwork::NetworkC, "partial"), (SimulatedNetwork::NetworkD, "path")]
            .into_iter()
            .enumerate()
        {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            let path = format!("/integrations/{}", network.label());
            let own_ids = json!({"settings": {"webEventId": true}});
            site.call("PATCH", &path, own_ids).await.expect(200);
            let poison = json!({"kind": "poison", "ids": ["event-3", "event-8"], format: true});
            simulated.inject_fault(network, &account, poison, None);
            // The 503 makes all events wait, so that they form one batch.
            let later = json!({"kind": "status", "status": 503, "body": ""});
            simulated.inject_fault(network, &account, later, Some(1));
            send(&site, "event").await;
            let expected = BTreeMap::from([("delivered".to_owned(), EVENTS - 2), ("failed".to_owned(), 2)]);
            assert_eq!(wait_until_settled(&site, SETTLE_MAX).await, expected, "{format}");
            for one in deliveries(&site).await {
                let is_rejected = one["eventId"] == "event-3" || one["eventId"] == "event-8";
                assert_eq!(one["status"] == "failed", is_rejected, "{format}: {one}");
            }
            assert_eq!(simulated.received(network, &account).len(), EVENTS - 2, "{format}");
        }
    }
}
