//! Read endpoints of the control API.

use super::{bad_request, json_response, parameter};
use crate::clock;
use crate::faults::ActiveFault;
use crate::ledger::{RecordedConversion, RequestRecord};
use crate::network::SimulatedNetwork;
use crate::state::SimulatorState;
use axum::extract::{Path, Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Default length of a list.
const LIMIT: usize = 100;

pub(crate) fn state(world: &SimulatorState) -> Value {
    let state = world.state();
    let networks: Map<String, Value> = SimulatedNetwork::ALL
        .into_iter()
        .map(|network| {
            (
                network.label().to_owned(),
                json!(state.read_ledger(network).totals),
            )
        })
        .collect();
    let faults: Vec<_> = state
        .faults
        .active()
        .iter()
        .map(ActiveFault::to_json)
        .collect();
    json!({
        "now": clock::format_time(world.clock.now()),
        "nowMs": world.clock.now(),
        "aheadMs": world.clock.ahead(),
        "open": world.options.open,
        "networks": networks,
        "faults": faults,
    })
}

pub(crate) fn conversions(
    world: &SimulatorState,
    network: SimulatedNetwork,
    account: Option<&str>,
    event_id: Option<&str>,
    limit: usize,
) -> Vec<Value> {
    let state = world.state();
    state
        .read_ledger(network)
        .conversions()
        .filter(|one| account.is_none_or(|account| &*one.account == account))
        .filter(|one| event_id.is_none_or(|id| one.id.as_deref() == Some(id)))
        .take(limit)
        .map(|one| conversion(network, one))
        .collect()
}

fn conversion(network: SimulatedNetwork, one: &RecordedConversion) -> Value {
    json!({
        "account": &*one.account,
        "eventName": one.name,
        "eventId": one.id,
        "money": one.money_text(network),
        "amount": one.money.as_ref().map(|money| &money.amount),
        "currency": one.money.as_ref().map(|money| money.currency.as_str()),
        "firstReceivedAt": clock::format_time(one.first_received),
        "lastReceivedAt": clock::format_time(one.last_received),
        "times": one.times,
        "counted": one.counted,
        "payload": one.payload,
    })
}

pub(crate) fn requests(
    world: &SimulatorState,
    network: SimulatedNetwork,
    limit: usize,
) -> Vec<Value> {
    let state = world.state();
    let lines = state.read_ledger(network).requests().take(limit);
    lines.map(RequestRecord::to_json).collect()
}

pub(super) async fn get_state(Shared(world): Shared<Arc<SimulatorState>>) -> Response {
    json_response(StatusCode::OK, &state(&world))
}

pub(super) async fn list_faults(Shared(world): Shared<Arc<SimulatorState>>) -> Response {
    let faults = state(&world)["faults"].take();
    json_response(StatusCode::OK, &json!({"faults": faults}))
}

pub(super) async fn get_conversions(
    Shared(world): Shared<Arc<SimulatorState>>,
    Path(label): Path<String>,
    request: Request,
) -> Response {
    let Some(network) = SimulatedNetwork::parse(&label) else {
        return bad_request("network must be network_a, network_b, network_c or network_d");
    };
    let account = parameter(&request, "account");
    let event_id = parameter(&request, "eventId");
    let list = conversions(
        &world,
        network,
        account.as_deref(),
        event_id.as_deref(),
        limit(&request),
    );
    json_response(StatusCode::OK, &json!({"conversions": list}))
}

pub(super) async fn get_requests(
    Shared(world): Shared<Arc<SimulatorState>>,
    Path(label): Path<String>,
    request: Request,
) -> Response {
    let Some(network) = SimulatedNetwork::parse(&label) else {
        return bad_request("network must be network_a, network_b, network_c or network_d");
    };
    let list = requests(&world, network, limit(&request));
    json_response(StatusCode::OK, &json!({"requests": list}))
}

fn limit(request: &Request) -> usize {
    let limit = parameter(request, "limit").and_then(|text| text.parse().ok());
    limit.unwrap_or(LIMIT)
}
