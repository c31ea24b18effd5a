//! Scripting: faults, accounts, the clock.

use super::{answer, body, done, parameter, refused};
use crate::accounts::Account;
use crate::faults::{Fault, Order};
use crate::network::{Endpoint, Network};
use crate::world::World;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn order_fault(world: &World, order: Value) -> Result<u64, String> {
    let order = Order::deserialize(order).map_err(|error| error.to_string())?;
    let mut state = world.state();
    let is_all_tokens = matches!(order.fault, Fault::ExpireTokens {})
        && order.network == Network::NetworkB
        && order.endpoint == Endpoint::Events;
    if is_all_tokens {
        // Done at once: there is nothing to wait for a turn.
        state.tokens.expire_all();
        return Ok(0);
    }
    Ok(state.faults.order(order)?)
}

pub(crate) fn clear_faults(world: &World, network: Option<Network>) {
    world.state().faults.clear(network);
    world.let_go();
}

pub(crate) fn register(world: &World, account: Value) -> Result<(), String> {
    let account = Account::deserialize(account).map_err(|error| error.to_string())?;
    Ok(world.state().registry.register(account)?)
}

pub(super) async fn post_fault(Shared(world): Shared<Arc<World>>, request: Request) -> Response {
    let ordered = body(request)
        .await
        .and_then(|order| order_fault(&world, order));
    match ordered {
        Ok(id) => answer(StatusCode::CREATED, &json!({"id": id})),
        Err(words) => refused(&words),
    }
}

pub(super) async fn delete_faults(Shared(world): Shared<Arc<World>>, request: Request) -> Response {
    let network = parameter(&request, "network");
    let known = network.as_deref().map(Network::parse);
    match known {
        Some(None) => refused("the network must be network_a, network_b, network_c or network_d"),
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
        Err(words) => refused(&words),
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
        Err(words) => refused(&words),
    }
}

pub(super) async fn post_reset(Shared(world): Shared<Arc<World>>) -> Response {
    world.reset();
    done()
}
