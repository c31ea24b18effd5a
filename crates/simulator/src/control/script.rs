//! Write endpoints of the control API: faults, accounts, clock.

use super::{bad_request, body, done, json_response, parameter};
use crate::accounts::SimulatedAccount;
use crate::faults::{FaultInjection, SimulatedFault};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::reports::ReportAccount;
use crate::state::SimulatorState;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn inject_fault(world: &SimulatorState, injection: Value) -> Result<u64, String> {
    let injection = FaultInjection::deserialize(injection).map_err(|error| error.to_string())?;
    let mut state = world.state();
    let is_all_tokens = matches!(injection.fault, SimulatedFault::ExpireTokens {})
        && injection.network == SimulatedNetwork::NetworkB
        && injection.endpoint == Endpoint::Events;
    if is_all_tokens {
        // Takes effect immediately, so it is not queued.
        state.tokens.expire_all();
        return Ok(0);
    }
    Ok(state.faults.add(injection)?)
}

pub(crate) fn clear_faults(world: &SimulatorState, network: Option<SimulatedNetwork>) {
    world.state().faults.clear(network);
    world.resume_hanging();
}

pub(crate) fn register(world: &SimulatorState, account: Value) -> Result<(), String> {
    let account = SimulatedAccount::deserialize(account).map_err(|error| error.to_string())?;
    Ok(world.state().registry.register(account)?)
}

/// Registers an ad account with its spend.
pub(crate) fn register_report(world: &SimulatorState, account: Value) -> Result<(), String> {
    let account = ReportAccount::deserialize(account).map_err(|error| error.to_string())?;
    Ok(world.state().reports.register(account)?)
}

pub(super) async fn post_report(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let registered = body(request)
        .await
        .and_then(|account| register_report(&world, account));
    match registered {
        Ok(()) => json_response(StatusCode::CREATED, &json!({})),
        Err(message) => bad_request(&message),
    }
}

pub(super) async fn post_fault(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let injected = body(request)
        .await
        .and_then(|injection| inject_fault(&world, injection));
    match injected {
        Ok(id) => json_response(StatusCode::CREATED, &json!({"id": id})),
        Err(message) => bad_request(&message),
    }
}

pub(super) async fn delete_faults(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let network = parameter(&request, "network");
    let known = network.as_deref().map(SimulatedNetwork::parse);
    match known {
        Some(None) => bad_request("network must be network_a, network_b, network_c or network_d"),
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

pub(super) async fn post_account(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let registered = body(request)
        .await
        .and_then(|account| register(&world, account));
    match registered {
        Ok(()) => json_response(StatusCode::CREATED, &json!({})),
        Err(message) => bad_request(&message),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClockChange {
    ahead_ms: i64,
}

pub(super) async fn post_clock(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let change = body(request)
        .await
        .and_then(|change| ClockChange::deserialize(change).map_err(|error| error.to_string()));
    match change {
        Ok(change) => {
            world.clock.set_ahead(change.ahead_ms);
            json_response(StatusCode::OK, &json!({"nowMs": world.clock.now()}))
        }
        Err(message) => bad_request(&message),
    }
}

pub(super) async fn post_reset(Shared(world): Shared<Arc<SimulatorState>>) -> Response {
    world.reset();
    done()
}
