//! "Forwarding map", end to end: events in at our doors, conversions out at the simulated networks.

use crate::networks::{NETWORKS, Simulated, fresh, installed, now_ms, settled, track};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::on_both_engines;

/// Until everything of one app has been sent.
const SOON: Duration = Duration::from_mins(2);

/// The specification's table, without its first column for `network_b`, where names are keys.
const MAP: [(&str, &str, &str); 8] = [
    ("install", "Lead", "install"),
    ("purchase", "Purchase", "purchase"),
    ("sign_up", "CompleteRegistration", "sign_up"),
    ("start_trial", "StartTrial", "start_trial"),
    ("qualified_trial", "StartTrial", "qualified_trial"),
    ("subscribe", "Subscribe", "subscribe"),
    ("add_to_cart", "AddToCart", "add_to_cart"),
    ("view_content", "ViewContent", "view_content"),
];

/// What each network calls the events of the SDK.
fn expected(network: SimulatedNetwork) -> BTreeSet<String> {
    let names = MAP.into_iter().map(|(_, a_and_c, b)| match network {
        SimulatedNetwork::NetworkA | SimulatedNetwork::NetworkC => a_and_c,
        SimulatedNetwork::NetworkB => b,
        SimulatedNetwork::NetworkD => "",
    });
    let of_d = ["order_created", "registration_completed"];
    let names = names.chain(
        of_d.into_iter()
            .filter(|_| network == SimulatedNetwork::NetworkD),
    );
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn sdk_event(name: &str) -> Value {
    let mut event = json!({"eventId": format!("e-{name}"), "name": name, "timestampMs": now_ms()});
    if matches!(
        name,
        "purchase" | "subscribe" | "start_trial" | "qualified_trial"
    ) {
        event["revenue"] = json!("29.99");
        event["currency"] = json!("USD");
    }
    event
}

fn reasons(event: &Value) -> BTreeMap<String, String> {
    let skipped = event["deliveries"].as_array().unwrap().iter();
    let skipped = skipped.filter(|one| one["status"] == "skipped");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    skipped
        .map(|one| (text(&one["network"]), text(&one["reason"])))
        .collect()
}

on_both_engines! {
    async fn every_row_of_the_forwarding_map_for_every_network(engine: Engine) {
        let simulated = Simulated::start(engine).await;
        let mut sites = Vec::new();
        for (number, (network, _)) in NETWORKS.into_iter().enumerate() {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            let sdk_key = installed(&site, network, "phone-1").await;
            let mut events: Vec<Value> = MAP.iter().skip(1).map(|(name, ..)| sdk_event(name)).collect();
            // Names that stay in the service unless somebody maps them, and an install that is not the service's own.
            events.extend(["initiate_checkout", "search", "boss_defeated", "install"].map(sdk_event));
            let body = json!({"deviceId": "phone-1", "events": events});
            track(&site, &sdk_key, "events", &body).await;
            sites.push((site, network, account));
        }
        for (site, network, account) in sites {
            let standing = settled(&site, SOON).await;
            assert_eq!(standing.keys().collect::<Vec<_>>(), ["delivered"], "{network:?}");
            assert_eq!(simulated.names(network, &account), expected(network), "{network:?}");
            let received = simulated.received(network, &account);
            let rows = if network == SimulatedNetwork::NetworkD { 2 } else { MAP.len() };
            assert_eq!(received.len(), rows, "each event once, under an id of its own: {network:?}");
            assert!(received.iter().all(|one| one["counted"] == 1 && one["times"] == 1), "{network:?}");
            let stays = site.logged("e-boss_defeated").await;
            assert_eq!(reasons(&stays), BTreeMap::from([(network.label().to_owned(), "not_mapped".to_owned())]));
            let said = site.logged("e-install").await;
            assert_eq!(reasons(&said), BTreeMap::from([(network.label().to_owned(), "reporting_only".to_owned())]));
        }
        let state = simulated.simulator.control().state();
        for (network, _) in NETWORKS {
            assert_eq!(state["networks"][network.label()]["refused"], 0, "{state}");
        }
    }

    async fn web_events_are_forwarded_and_start_trial_is_trial_started_at_network_d(engine: Engine) {
        let simulated = Simulated::start(engine).await;
        let mut sites = Vec::new();
        for (number, (network, _)) in NETWORKS.into_iter().enumerate() {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            for event in [
                site.purchase("order", "29.99"), site.event("joined", "sign_up"),
                site.priced("trial", "start_trial", "9.99"), site.priced("cart", "checkout_started", "5"),
                site.child("renewal", "renewal", "29.99", "order"), site.refund("refund", "-1", "order"),
                site.purchase("too-much", "2000.01"),
            ] {
                site.accepted(&fresh(&event)).await;
            }
            sites.push((site, network, account));
        }
        for (site, network, account) in sites {
            assert_eq!(settled(&site, SOON).await, BTreeMap::from([("delivered".to_owned(), 3)]), "{network:?}");
            let names = simulated.names(network, &account);
            let expected = match network {
                SimulatedNetwork::NetworkA | SimulatedNetwork::NetworkC => ["CompleteRegistration", "Purchase", "StartTrial"],
                SimulatedNetwork::NetworkB => ["purchase", "sign_up", "start_trial"],
                SimulatedNetwork::NetworkD => ["order_created", "registration_completed", "trial_started"],
            };
            assert_eq!(names, expected.map(str::to_owned).into(), "{network:?}");
            for (id, reason) in [
                ("cart", "not_mapped"), ("renewal", "reporting_only"), ("refund", "reporting_only"),
                ("too-much", "amount_not_forwardable"),
            ] {
                let event = site.logged(id).await;
                let found = reasons(&event);
                assert_eq!(found, BTreeMap::from([(network.label().to_owned(), reason.to_owned())]), "{id}");
            }
        }
    }

    // external_id: SHA-256 of the device id, case kept.
    async fn networks_get_the_device_id_as_it_was_spelled(engine: Engine) {
        const UPPER: &str = "6F9619FF-8B86-4011-B42D-00C04FC964FF";
        let hash = |id: &str| hex(Digest::of(id.as_bytes()).as_bytes());
        let simulated = Simulated::start(engine).await;
        for (number, network) in [SimulatedNetwork::NetworkA, SimulatedNetwork::NetworkC, SimulatedNetwork::NetworkD].into_iter().enumerate() {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            let sdk_key = installed(&site, network, UPPER).await;
            let body = json!({"deviceId": UPPER.to_lowercase(), "events": [sdk_event("sign_up")]});
            track(&site, &sdk_key, "events", &body).await;
            let mut order = fresh(&site.purchase("order", "29.99"));
            order["deviceId"] = json!(UPPER);
            site.accepted(&order).await;
            assert_eq!(site.logged("e-sign_up").await["deviceId"], site.logged("order").await["deviceId"], "one device");
            settled(&site, SOON).await;
            let received = simulated.received(network, &account);
            assert!(received.len() > 1, "{network:?}: {received:?}");
            for one in received {
                let payload = one["payload"].to_string();
                assert!(payload.contains(&hash(UPPER)), "{network:?}: {payload}");
                assert!(!payload.contains(&hash(&UPPER.to_lowercase())), "{network:?}: {payload}");
            }
        }
    }

    async fn enabling_an_integration_sends_nothing_that_was_accepted_before(engine: Engine) {
        let simulated = Simulated::start(engine).await;
        let site = simulated.site(SimulatedNetwork::NetworkA).await;
        site.accepted(&fresh(&site.purchase("before", "10"))).await;
        let account = simulated.connect(&site, SimulatedNetwork::NetworkA, 1).await;
        site.accepted(&fresh(&site.purchase("after", "10"))).await;
        // A name that is mapped later.
        site.accepted(&fresh(&site.priced("cart-1", "checkout_started", "5"))).await;
        let mapping = json!([{"event": "checkout_started", "networkEvent": "InitiateCheckout", "enabled": true}]);
        let path = "/integrations/network_a";
        site.call("PATCH", path, json!({"eventMapping": mapping})).await.expect(200);
        site.accepted(&fresh(&site.priced("cart-2", "checkout_started", "5"))).await;
        settled(&site, SOON).await;
        let ids: BTreeSet<String> = crate::networks::deliveries(&site).await.iter()
            .map(|one| one["eventId"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids, ["after", "cart-2"].map(str::to_owned).into());
        assert_eq!(simulated.received(SimulatedNetwork::NetworkA, &account).len(), 2);
        let before = site.logged("before").await;
        assert_eq!(reasons(&before)["network_a"], "integration_disabled");
    }

    async fn test_events_are_never_forwarded(engine: Engine) {
        let simulated = Simulated::start(engine).await;
        let site = simulated.site(SimulatedNetwork::NetworkA).await;
        let all = json!({"scope": "all"});
        simulated.connect(&site, SimulatedNetwork::NetworkA, 1).await;
        site.call("PATCH", "/integrations/network_a", all).await.expect(200);
        let app = site.call("GET", "", Value::Null).await.expect(200).data();
        let test_key = app["sdk"]["testKey"].as_str().unwrap().to_owned();
        let configure = json!({"deviceId": "phone-1", "platform": "ios"});
        track(&site, &test_key, "configure", &configure).await;
        let events = json!({"deviceId": "phone-1", "events": [sdk_event("sign_up")]});
        track(&site, &test_key, "events", &events).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(crate::networks::deliveries(&site).await, Vec::<Value>::new());
    }
}
