//! `network_c`: TikTok Events API 2.0, `POST /open_api/v1.3/event/track/`.

mod check;
mod event;
mod responses;

use crate::clock::HOUR;
use crate::ledger::{AcceptedEvent, Dedup};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::registry::is_valid_credential;
use crate::reply::SimulatedOutcome;
use crate::request_pipeline::{self, EndpointHandler, ReceivedRequest, RequestRoute};
use crate::state::SimulatorState;
use axum::extract::{Request, State as Shared};
use axum::response::Response;
use check::CheckedTikTokRequest;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

const WINDOW: i64 = 48 * HOUR;

const HANDLER: EndpointHandler = EndpointHandler {
    account_of,
    process,
    expired: |world| responses::bad_token(world),
};

pub(crate) async fn track(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let route = RequestRoute {
        network: SimulatedNetwork::NetworkC,
        endpoint: Endpoint::Events,
        account: None,
    };
    request_pipeline::handle(&world, route, &HANDLER, request).await
}

fn account_of(received: &ReceivedRequest) -> Option<String> {
    let pixel = received.json.as_ref()?.get("event_source_id")?;
    pixel.as_str().map(str::to_owned)
}

fn process(world: &SimulatorState, received: &mut ReceivedRequest) -> SimulatedOutcome {
    let pixel = received.route.account.clone().unwrap_or_default();
    if let Some(refused) = admit(world, &pixel, received) {
        return refused;
    }
    let Some(body) = received.json.take() else {
        return responses::unreadable(world);
    };
    let checked = match check::check(&body, received.now) {
        Ok(checked) => checked,
        Err(violation) => return responses::invalid(world, &violation),
    };
    accept_events(world, &pixel, received.now, checked, body)
}

/// Checks token, pixel and rate. A prefix such as `Bearer` makes the token invalid.
fn admit(
    world: &SimulatorState,
    pixel: &str,
    received: &ReceivedRequest,
) -> Option<SimulatedOutcome> {
    let mut state = world.state();
    let registered = state.registry.c.get(pixel);
    let expected = registered.and_then(|one| one.access_token.as_deref());
    let token = received.header("access-token").unwrap_or_default();
    if !is_valid_credential(token, expected) {
        return Some(responses::bad_token(world));
    }
    if registered.is_none() && !world.options.open && !pixel.is_empty() {
        return Some(responses::no_permission(world));
    }
    let percent =
        state
            .registry
            .rate_usage_percent(SimulatedNetwork::NetworkC, pixel, received.now);
    (percent > 100).then(|| responses::throttled(world))
}

/// Returns the deduplication id: the event id or, if there is none, the network's cookie.
fn id_of(event: &Value) -> Option<&str> {
    let id = event.get("event_id").or_else(|| event.pointer("/user/ttp"));
    id.and_then(Value::as_str)
}

/// Accepts all events or none, unless a fault requests a partial success.
fn accept_events(
    world: &SimulatorState,
    pixel: &str,
    now: i64,
    checked: CheckedTikTokRequest,
    mut body: Value,
) -> SimulatedOutcome {
    let Some(Value::Array(events)) = body.get_mut("data").map(Value::take) else {
        return responses::unreadable(world);
    };
    let mut state = world.state();
    let mut failed = BTreeSet::new();
    for poison in state.faults.poisons(SimulatedNetwork::NetworkC, pixel) {
        let is_marked = |event: &Value| event.pointer("/properties/poison").is_some();
        let is_hit =
            |event: &Value| poison.matches(id_of(event).unwrap_or_default(), is_marked(event));
        if poison.is_partial {
            let hits = events.iter().enumerate().filter(|(_, event)| is_hit(event));
            failed.extend(hits.map(|(index, _)| index));
        } else if let Some(index) = events.iter().position(is_hit) {
            state.faults.mark_used(&poison);
            return responses::poisoned(world, poison.names_index.then_some(index));
        }
    }
    let ledger = state.ledger(SimulatedNetwork::NetworkC);
    if checked.is_test {
        // Test events are not stored as live data.
        ledger.totals.test += events.len() as u64;
        return responses::ok(world);
    }
    let account = Arc::from(pixel);
    let taken = events.into_iter().zip(checked.money).enumerate();
    for (_, (event, money)) in taken.filter(|(index, _)| !failed.contains(index)) {
        let name = event.get("event").and_then(Value::as_str);
        let accepted = AcceptedEvent {
            name: name.unwrap_or_default().into(),
            id: id_of(&event).map(Box::from),
            money,
            dedup: Dedup::Window(WINDOW),
            payload: event,
        };
        ledger.receive(&account, accepted, now);
    }
    if failed.is_empty() {
        responses::ok(world)
    } else {
        responses::partial(world, &failed)
    }
}
