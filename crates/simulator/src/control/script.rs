//! Scripting: faults, accounts, the clock.

use super::{answer, bad_request, body, done, parameter};
use crate::accounts::SimulatedAccount;
use crate::faults::{FaultInjection, SimulatedFault};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::world::World;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn inject_fault(world: &World, order: Value) -> Result<u64, String> {
    let order = FaultInjection::deserialize(order).map_err(|error| error.to_string())?;
    let mut state = world.state();
    let is_all_tokens = matches!(order.fault, SimulatedFault::ExpireTokens {})
        && order.network == SimulatedNetwork::NetworkB
        && order.endpoint == Endpoint::Events;
    if is_all_tokens {
        // Done at once: there is nothing to wait for a turn.
        state.tokens.expire_all();
        return Ok(0);
    }
    Ok(state.faults.add(order)?)
}

pub(crate) fn clear_faults(world: &World, network: Option<SimulatedNetwork>) {
    world.state().faults.clear(network);
    world.resume_hanging();
}

pub(crate) fn register(world: &World, account: Value) -> Result<(), String> {
    let account = SimulatedAccount::deserialize(account).map_err(|error| error.to_string())?;
    Ok(world.state().registry.register(account)?)
}

pub(super) async fn post_fault(Shared(world): Shared<Arc<World>>, request: Request) -> Response {
    let ordered = body(request)
        .await
        .and_then(|order| inject_fault(&world, order));
    match ordered {
        Ok(id) => answer(StatusCode::CREATED, &json!({"id": id})),
        Err(words) => bad_request(&words),
    }
}

pub(super) async fn delete_faults(Shared(world): Shared<Arc<World>>, request: Request) -> Response {
    let network = parameter(&request, "network");
    let known = network.as_deref().map(SimulatedNetwork::parse);
    match known {
        Some(None) => {
            bad_request("the network must be network_a, network_b, network_c or network_d")
        }
        Some(network) => {
            clear_faults(&world, network);
            done()
        }
        None => {
            clear_faults(&world, None);
            done()
        }
    }
}

pub(super) async fn post_account(Shared(world): Shared<Arc<World>>, request: Request) -> Response {
    let registered = body(request)
        .await
        .and_then(|account| register(&world, account));
    match registered {
        Ok(()) => answer(StatusCode::CREATED, &json!({})),
        Err(words) => bad_request(&words),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClockOrder {
    ahead_ms: i64,
}

pub(super) async fn post_clock(Shared(world): Shared<Arc<World>>, request: Request) -> Response {
    let order = body(request)
        .await
        .and_then(|order| ClockOrder::deserialize(order).map_err(|error| error.to_string()));
    match order {
        Ok(order) => {
            world.clock.set_ahead(order.ahead_ms);
            answer(StatusCode::OK, &json!({"nowMs": world.clock.now()}))
        }
        Err(words) => bad_request(&words),
    }
}

pub(super) async fn post_reset(Shared(world): Shared<Arc<World>>) -> Response {
    world.reset();
    done()
}
