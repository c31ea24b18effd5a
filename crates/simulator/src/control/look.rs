//! Looking into the books.

use super::{answer, parameter, refused};
use crate::clock;
use crate::faults::Active;
use crate::ledger::{Conversion, RequestLine};
use crate::network::Network;
use crate::world::World;
use axum::extract::{Path, Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Entries of a list, unless asked for more.
const LIMIT: usize = 100;

pub(crate) fn state(world: &World) -> Value {
    let state = world.state();
    let networks: Map<String, Value> = Network::ALL
        .into_iter()
        .map(|network| {
            (
                network.label().to_owned(),
                json!(state.books(network).totals),
            )
        })
        .collect();
    let faults: Vec<_> = state.faults.active().iter().map(Active::shown).collect();
    json!({
        "now": clock::text(world.clock.now()),
        "nowMs": world.clock.now(),
        "aheadMs": world.clock.ahead(),
        "open": world.options.open,
        "networks": networks,
        "faults": faults,
    })
}

pub(crate) fn conversions(
    world: &World,
    network: Network,
    account: Option<&str>,
    event_id: Option<&str>,
    limit: usize,
) -> Vec<Value> {
    let state = world.state();
    state
        .books(network)
        .conversions()
        .filter(|one| account.is_none_or(|account| &*one.account == account))
        .filter(|one| event_id.is_none_or(|id| one.id.as_deref() == Some(id)))
        .take(limit)
        .map(|one| conversion(network, one))
        .collect()
}

fn conversion(network: Network, one: &Conversion) -> Value {
    json!({
        "account": &*one.account,
        "eventName": one.name,
        "eventId": one.id,
        "money": one.money_text(network),
        "amount": one.money.as_ref().map(|money| &money.amount),
        "currency": one.money.as_ref().map(|money| money.currency.as_str()),
        "firstReceivedAt": clock::text(one.first_received),
        "lastReceivedAt": clock::text(one.last_received),
        "times": one.times,
        "counted": one.counted,
        "payload": one.payload,
    })
}

pub(crate) fn requests(world: &World, network: Network, limit: usize) -> Vec<Value> {
    let state = world.state();
    let lines = state.books(network).requests().take(limit);
    lines.map(RequestLine::shown).collect()
}

pub(super) async fn get_state(Shared(world): Shared<Arc<World>>) -> Response {
    answer(StatusCode::OK, &state(&world))
}

pub(super) async fn list_faults(Shared(world): Shared<Arc<World>>) -> Response {
    let faults = state(&world)["faults"].take();
    answer(StatusCode::OK, &json!({"faults": faults}))
}

pub(super) async fn get_conversions(
    Shared(world): Shared<Arc<World>>,
    Path(label): Path<String>,
    request: Request,
) -> Response {
    let Some(network) = Network::parse(&label) else {
        return refused("the network must be network_a, network_b, network_c or network_d");
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
    answer(StatusCode::OK, &json!({"conversions": list}))
}

pub(super) async fn get_requests(
    Shared(world): Shared<Arc<World>>,
    Path(label): Path<String>,
    request: Request,
) -> Response {
    let Some(network) = Network::parse(&label) else {
        return refused("the network must be network_a, network_b, network_c or network_d");
    };
    let list = requests(&world, network, limit(&request));
    answer(StatusCode::OK, &json!({"requests": list}))
}

fn limit(request: &Request) -> usize {
    let limit = parameter(request, "limit").and_then(|text| text.parse().ok());
    limit.unwrap_or(LIMIT)
}
