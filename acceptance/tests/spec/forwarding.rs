//! The forwarding map, end to end: events sent to our endpoints reach the simulated networks as
//! conversions.

use crate::networks::{
    NETWORKS, ServerWithSimulator, install_from_click, now_ms, track, wait_until_settled,
    with_current_time,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::on_both_engines;

/// Time limit for sending all deliveries of one app.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(2);

/// The specification's table: event, name at `network_a` and `network_c`, key at `network_b`.
const FORWARDING_MAP: [(&str, &str, &str); 8] = [
    ("install", "Lead", "install"),
    ("purchase", "Purchase", "purchase"),
    ("sign_up", "CompleteRegistration", "sign_up"),
    ("start_trial", "StartTrial", "start_trial"),
    ("qualified_trial", "StartTrial", "qualified_trial"),
    ("subscribe", "Subscribe", "subscribe"),
    ("add_to_cart", "AddToCart", "add_to_cart"),
    ("view_content", "ViewContent", "view_content"),
];

/// Returns the names under which a network receives the SDK's events.
fn expected(network: SimulatedNetwork) -> BTreeSet<String> {
    let names = FORWARDING_MAP
        .into_iter()
        .map(|(_, a_and_c, b)| match network {
            SimulatedNetwork::NetworkA | SimulatedNetwork::NetworkC => a_and_c,
            SimulatedNetwork::NetworkB => b,
            SimulatedNetwork::NetworkD => "",
        });
    let network_d_names = ["order_created", "registration_completed"];
    let names = names.chain(
        network_d_names
            .into_iter()
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

fn skip_reasons(event: &Value) -> BTreeMap<String, String> {
    let skipped = event["deliveries"].as_array().unwrap().iter();
    let skipped = skipped.filter(|one| one["status"] == "skipped");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    skipped
        .map(|one| (text(&one["network"]), text(&one["reason"])))
        .collect()
}

on_both_engines! {
    async fn forwards_every_row_of_the_map_to_every_network(engine: Engine) {
        let simulated = ServerWithSimulator::start(engine).await;
        let mut sites = Vec::new();
        for (number, (network, _)) in NETWORKS.into_iter().enumerate() {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            let sdk_key = install_from_click(&site, network, "phone-1").await;
            let mut events: Vec<Value> = FORWARDING_MAP.iter().skip(1).map(|(name, ..)| sdk_event(name)).collect();
            // Names without a mapping, and an install event from the client (reporting only).
            events.extend(["initiate_checkout", "search", "boss_defeated", "install"].map(sdk_event));
            let body = json!({"deviceId": "phone-1", "events": events});
            track(&site, &sdk_key, "events", &body).await;
            sites.push((site, network, account));
        }
        for (site, network, account) in sites {
            let statuses = wait_until_settled(&site, SETTLE_TIMEOUT).await;
            assert_eq!(statuses.keys().collect::<Vec<_>>(), ["delivered"], "{network:?}");
            assert_eq!(simulated.names(network, &account), expected(network), "{network:?}");
            let received = simulated.received(network, &account);
            let rows = if network == SimulatedNetwork::NetworkD { 2 } else { FORWARDING_MAP.len() };
            assert_eq!(received.len(), rows, "each event once, under its own id: {network:?}");
            assert!(received.iter().all(|one| one["counted"] == 1 && one["times"] == 1), "{network:?}");
            let unmapped = site.logged_event("e-boss_defeated").await;
            assert_eq!(skip_reasons(&unmapped), BTreeMap::from([(network.label().to_owned(), "not_mapped".to_owned())]));
            let client_install = site.logged_event("e-install").await;
            assert_eq!(skip_reasons(&client_install), BTreeMap::from([(network.label().to_owned(), "reporting_only".to_owned())]));
        }
        let state = simulated.simulator.control().state();
        for (network, _) in NETWORKS {
            assert_eq!(state["networks"][network.label()]["refused"], 0, "{state}");
        }
    }

    async fn events_of_a_refusing_user_reach_no_network(engine: Engine) {
        let simulated = ServerWithSimulator::start(engine).await;
        let mut sites = Vec::new();
        for (number, (network, _)) in NETWORKS.into_iter().enumerate() {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            let sdk_key = install_from_click(&site, network, "phone-1").await;
            let tracked = |name: &str, consent: Value| {
                let mut event = sdk_event(name);
                event["consent"] = consent;
                event
            };
            // The refusal of the device is still on its way.
            let refused = tracked("purchase", json!({"adUserData": false}));
            let granted = tracked("sign_up", json!({"adUserData": true, "adPersonalization": true}));
            for event in [&refused, &granted, &refused] {
                let body = json!({"deviceId": "phone-1", "events": [event]});
                track(&site, &sdk_key, "events", &body).await;
            }
            // A later grant does not apply to the purchase.
            let grant = json!({"deviceId": "phone-1", "platform": "android", "consent": {"adUserData": true}});
            track(&site, &sdk_key, "configure", &grant).await;
            sites.push((site, network, account));
        }
        for (site, network, account) in sites {
            let statuses = wait_until_settled(&site, SETTLE_TIMEOUT).await;
            assert_eq!(statuses.keys().collect::<Vec<_>>(), ["delivered"], "{network:?}");
            let names = simulated.names(network, &account);
            assert!(!names.is_empty() && names.iter().all(|name| !["Purchase", "purchase", "order_created"].contains(&name.as_str())), "{names:?}");
            let purchase = site.logged_event("e-purchase").await;
            assert_eq!(skip_reasons(&purchase), BTreeMap::from([(network.label().to_owned(), "consent".to_owned())]));
            assert_eq!(purchase["consent"], json!({"adUserData": false, "adPersonalization": null, "tracking": null}));
        }
    }

    async fn web_events_are_forwarded_and_start_trial_is_trial_started_at_network_d(engine: Engine) {
        let simulated = ServerWithSimulator::start(engine).await;
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
                site.send_accepted(&with_current_time(&event)).await;
            }
            sites.push((site, network, account));
        }
        for (site, network, account) in sites {
            assert_eq!(wait_until_settled(&site, SETTLE_TIMEOUT).await, BTreeMap::from([("delivered".to_owned(), 3)]), "{network:?}");
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
                let event = site.logged_event(id).await;
                let found = skip_reasons(&event);
                assert_eq!(found, BTreeMap::from([(network.label().to_owned(), reason.to_owned())]), "{id}");
            }
        }
    }

    // `external_id` is the SHA-256 of the device id in its original case.
    async fn networks_receive_the_device_id_in_its_original_case(engine: Engine) {
        const UPPER: &str = "6F9619FF-8B86-4011-B42D-00C04FC964FF";
        let hash = |id: &str| hex(Digest::of(id.as_bytes()).as_bytes());
        let simulated = ServerWithSimulator::start(engine).await;
        for (number, network) in [SimulatedNetwork::NetworkA, SimulatedNetwork::NetworkC, SimulatedNetwork::NetworkD].into_iter().enumerate() {
            let site = simulated.site(network).await;
            let account = simulated.connect(&site, network, number).await;
            let sdk_key = install_from_click(&site, network, UPPER).await;
            let body = json!({"deviceId": UPPER.to_lowercase(), "events": [sdk_event("sign_up")]});
            track(&site, &sdk_key, "events", &body).await;
            let mut order = with_current_time(&site.purchase("order", "29.99"));
            order["deviceId"] = json!(UPPER);
            site.send_accepted(&order).await;
            assert_eq!(site.logged_event("e-sign_up").await["deviceId"], site.logged_event("order").await["deviceId"], "both events belong to one device");
            wait_until_settled(&site, SETTLE_TIMEOUT).await;
            let received = simulated.received(network, &account);
            assert!(received.len() > 1, "{network:?}: {received:?}");
            for one in received {
                let payload = one["payload"].to_string();
                assert!(payload.contains(&hash(UPPER)), "{network:?}: {payload}");
                assert!(!payload.contains(&hash(&UPPER.to_lowercase())), "{network:?}: {payload}");
            }
        }
    }

    async fn enabling_an_integration_sends_no_earlier_events(engine: Engine) {
        let simulated = ServerWithSimulator::start(engine).await;
        let site = simulated.site(SimulatedNetwork::NetworkA).await;
        site.send_accepted(&with_current_time(&site.purchase("before", "10"))).await;
        let account = simulated.connect(&site, SimulatedNetwork::NetworkA, 1).await;
        site.send_accepted(&with_current_time(&site.purchase("after", "10"))).await;
        // This event name is mapped only later.
        site.send_accepted(&with_current_time(&site.priced("cart-1", "checkout_started", "5"))).await;
        let mapping = json!([{"event": "checkout_started", "networkEvent": "InitiateCheckout", "enabled": true}]);
        let path = "/integrations/network_a";
        site.call("PATCH", path, json!({"eventMapping": mapping})).await.expect(200);
        site.send_accepted(&with_current_time(&site.priced("cart-2", "checkout_started", "5"))).await;
        wait_until_settled(&site, SETTLE_TIMEOUT).await;
        let ids: BTreeSet<String> = crate::networks::deliveries(&site).await.iter()
            .map(|one| one["eventId"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids, ["after", "cart-2"].map(str::to_owned).into());
        assert_eq!(simulated.received(SimulatedNetwork::NetworkA, &account).len(), 2);
        let before = site.logged_event("before").await;
        assert_eq!(skip_reasons(&before)["network_a"], "integration_disabled");
    }

    async fn test_events_are_never_forwarded(engine: Engine) {
        let simulated = ServerWithSimulator::start(engine).await;
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
