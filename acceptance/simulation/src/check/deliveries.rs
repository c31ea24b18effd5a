//! Checks the deliveries: each has a final state, and each network received and counted what was
//! delivered under one deduplication id with one content.

use super::Evidence;
use crate::scenario::Keys;
use crate::template::NETWORKS;
use crate::totals::{DOUBLED, LOST};
use serde_json::Value;
use std::collections::BTreeSet;
use tributary_domain::integration::Network;
use tributary_simulator::SimulatedNetwork;

/// Fields with the time of a conversion, at the four networks.
const TIME_FIELDS: [&str; 3] = ["event_time", "eventTimestamp", "timestamp_ms"];
/// More conversions than any run sends.
const CONVERSIONS_MAX: usize = 1_000_000;

pub(super) fn check(evidence: &Evidence<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    let [(_, live), (_, test)] = &evidence.deliveries;
    check_states(live, &mut violations);
    check_received(evidence, live, test, &mut violations);
    check_counted(evidence, &mut violations);
    check_planned(evidence, &mut violations);
    violations
}

fn id_of(delivery: &Value) -> (String, String) {
    let text = |field: &str| delivery[field].as_str().unwrap_or_default().to_owned();
    (text("network"), text("dedupId"))
}

/// Checks that each delivery has a final state, with a reason unless it was delivered.
fn check_states(live: &[Value], violations: &mut Vec<String>) {
    for delivery in live {
        let status = delivery["status"].as_str().unwrap_or_default();
        if status == "pending" {
            violations.push(format!("unsettled delivery: {delivery}"));
        } else if status != "delivered" && delivery["reason"].is_null() {
            violations.push(format!("a final state without a reason: {delivery}"));
        }
    }
}

/// Compares the deliveries with what the networks received.
fn check_received(
    evidence: &Evidence<'_>,
    live: &[Value],
    test: &[Value],
    violations: &mut Vec<String>,
) {
    let received = evidence.networks.received();
    let known: BTreeSet<_> = live.iter().map(id_of).collect();
    let tests: BTreeSet<_> = test.iter().map(id_of).collect();
    let may_move = billing_conversions(evidence, live);
    for ((network, id), one) in received.iter() {
        let key = (network.as_str().to_owned(), id.clone());
        if tests.contains(&key) {
            violations.push(format!("a test event left: {key:?}"));
        } else if !known.contains(&key) {
            violations.push(format!("{DOUBLED}: received under an unknown id: {key:?}"));
        }
        let mut contents: BTreeSet<String> = one.contents.iter().cloned().collect();
        if may_move.contains(&key) {
            contents = contents.iter().map(|one| without_time(one)).collect();
        }
        if contents.len() > 1 {
            violations.push(format!("{key:?} had different contents: {contents:?}"));
        }
    }
    for delivery in live.iter().filter(|one| one["status"] == "delivered") {
        let (network, id) = id_of(delivery);
        let network = Network::ALL.into_iter().find(|one| one.as_str() == network);
        let is_received = network.is_some_and(|network| received.contains_key(&(network, id)));
        if !is_received {
            violations.push(format!("{LOST}: delivered but not received: {delivery}"));
        }
    }
}

/// Returns the conversions of billing events.
///
/// Their time may differ when they are sent again. Two notifications may report one payment, and the
/// event is that of the one that sorts first, whichever arrives first. A payment that is dated ahead is
/// sent with its time of arrival, so it moves when the second notification takes over. The id stays, so
/// the network counts the payment once.
fn billing_conversions(evidence: &Evidence<'_>, live: &[Value]) -> BTreeSet<(String, String)> {
    let logs = evidence.logs.iter().flat_map(|(_, log)| log);
    let events: BTreeSet<&str> = logs
        .filter(|event| event["source"] == "billing")
        .filter_map(|event| event["id"].as_str())
        .collect();
    let of_billing = live.iter().filter(|delivery| {
        let event = delivery["event"]["id"].as_str();
        event.is_some_and(|event| events.contains(event))
    });
    of_billing.map(id_of).collect()
}

/// Removes the time from the content of a conversion.
fn without_time(content: &str) -> String {
    let mut content: Value = serde_json::from_str(content).unwrap_or_default();
    if let Some(fields) = content.as_object_mut() {
        fields.retain(|name, _| !TIME_FIELDS.contains(&name.as_str()));
    }
    content.to_string()
}

/// Checks that each network counted each conversion once.
fn check_counted(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    for network in SimulatedNetwork::ALL {
        let simulator = &evidence.networks.simulator;
        for one in simulator.conversions(network, None, None, CONVERSIONS_MAX) {
            if one["counted"] != 1 {
                violations.push(format!("{DOUBLED}: counted more than once: {one}"));
            }
        }
    }
}

/// Checks that each event names each network, with a delivery or a reason.
fn check_planned(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    for (keys, log) in &evidence.logs {
        for event in log {
            let planned = event["deliveries"].as_array();
            let planned = planned.into_iter().flatten();
            for one in planned {
                let status = one["status"].as_str().unwrap_or_default();
                let is_known = NETWORKS.contains(&one["network"].as_str().unwrap_or_default());
                let leaves = status != "skipped" && *keys == Keys::Test;
                if !is_known || leaves {
                    violations.push(format!("a delivery that must not exist: {event}"));
                }
            }
        }
    }
}
