//! `network_d`: OpenAI Ads Conversions API, `POST /v1/events?pid={pixel id}`.

mod check;
mod data;
mod event;
mod responses;
mod user;

use crate::clock::HOUR;
use crate::ledger::{AcceptedEvent, Dedup};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::registry::is_valid_credential;
use crate::reply::SimulatedOutcome;
use crate::request_pipeline::{self, EndpointHandler, ReceivedRequest, RequestRoute};
use crate::state::SimulatorState;
use axum::extract::{Request, State as Shared};
use axum::response::Response;
use check::CheckedOpenAiRequest;
use serde_json::Value;
use std::sync::Arc;
use url::form_urlencoded;

/// Window and size limit that Tributary assumes; the network does not document them.
const WINDOW: i64 = 48 * HOUR;
const BODY_BYTES_MAX: usize = 1024 * 1024;

const HANDLER: EndpointHandler = EndpointHandler {
    account_of: |_| None,
    process,
    expired: |world| responses::unauthorized(world),
};

pub(crate) async fn events(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let pixel = pairs.find(|(name, _)| name == "pid");
    let route = RequestRoute {
        network: SimulatedNetwork::NetworkD,
        endpoint: Endpoint::Events,
        account: pixel.map(|(_, value)| value.into_owned()),
    };
    request_pipeline::handle(&world, route, &HANDLER, request).await
}

fn process(world: &SimulatorState, received: &mut ReceivedRequest) -> SimulatedOutcome {
    let pixel = received.route.account.clone().unwrap_or_default();
    if let Some(refused) = admit(world, &pixel, received) {
        return refused;
    }
    if received.body.len() > BODY_BYTES_MAX {
        return responses::too_large(world);
    }
    let Some(body) = received.json.take() else {
        return responses::unreadable(world);
    };
    let checked = match check::check(&body, received.now) {
        Ok(checked) => checked,
        Err(violations) => return responses::invalid(world, &violations),
    };
    accept_events(world, &pixel, received.now, checked, body)
}

/// Checks pixel, key and rate.
fn admit(
    world: &SimulatorState,
    pixel: &str,
    received: &ReceivedRequest,
) -> Option<SimulatedOutcome> {
    if pixel.is_empty() {
        return Some(responses::no_pid(world));
    }
    let mut state = world.state();
    let registered = state.registry.d.get(pixel);
    let expected = registered.and_then(|one| one.api_key.as_deref());
    if !is_valid_credential(received.bearer().unwrap_or_default(), expected) {
        return Some(responses::unauthorized(world));
    }
    if registered.is_none() && !world.options.open {
        return Some(responses::unknown_pid(world));
    }
    let percent =
        state
            .registry
            .rate_usage_percent(SimulatedNetwork::NetworkD, pixel, received.now);
    (percent > 100).then(|| responses::throttled(world))
}

/// Accepts all events or none.
fn accept_events(
    world: &SimulatorState,
    pixel: &str,
    now: i64,
    checked: CheckedOpenAiRequest,
    mut body: Value,
) -> SimulatedOutcome {
    let Some(Value::Array(events)) = body.get_mut("events").map(Value::take) else {
        return responses::unreadable(world);
    };
    let id_of = |event: &Value| {
        event
            .get("id")
            .and_then(Value::as_str)
            .map(Box::<str>::from)
    };
    let mut state = world.state();
    for poison in state.faults.poisons(SimulatedNetwork::NetworkD, pixel) {
        let is_marked = |event: &Value| event.pointer("/data/poison").is_some();
        let is_hit = |event: &Value| {
            let id = id_of(event);
            poison.matches(id.as_deref().unwrap_or_default(), is_marked(event))
        };
        if let Some(index) = events.iter().position(is_hit) {
            state.faults.mark_used(&poison);
            let index = poison.names_index.then_some(index);
            return responses::poisoned(world, index, poison.by_path);
        }
    }
    let count = events.len();
    let ledger = state.ledger(SimulatedNetwork::NetworkD);
    if checked.validate_only {
        ledger.totals.validated += count as u64;
    } else {
        let account = Arc::from(pixel);
        for (event, taken) in events.into_iter().zip(checked.events) {
            let accepted = AcceptedEvent {
                name: taken.name.into(),
                id: id_of(&event),
                money: taken.money,
                dedup: Dedup::Window(WINDOW),
                payload: event,
            };
            ledger.receive(&account, accepted, now);
        }
    }
    state.successes_d += 1;
    let is_empty = state.successes_d.is_multiple_of(2);
    drop(state);
    responses::received(world, count, is_empty)
}
