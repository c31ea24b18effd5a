//! `network_c` — `TikTok` Events API 2.0: `POST /open_api/v1.3/event/track/`.

mod answer;
mod check;
mod event;

use crate::clock::HOUR;
use crate::exchange::{self, Arrived, Call, Door};
use crate::ledger::{Arriving, Dedup};
use crate::network::{Endpoint, Network};
use crate::registry::is_credential;
use crate::reply::Outcome;
use crate::world::World;
use axum::extract::{Request, State as Shared};
use axum::response::Response;
use check::Checked;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

const WINDOW: i64 = 48 * HOUR;

const DOOR: Door = Door {
    account_of,
    process,
    expired: |world| answer::bad_token(world),
};

pub(crate) async fn track(Shared(world): Shared<Arc<World>>, request: Request) -> Response {
    let call = Call {
        network: Network::NetworkC,
        endpoint: Endpoint::Events,
        account: None,
    };
    exchange::run(&world, call, &DOOR, request).await
}

fn account_of(arrived: &Arrived) -> Option<String> {
    let pixel = arrived.json.as_ref()?.get("event_source_id")?;
    pixel.as_str().map(str::to_owned)
}

fn process(world: &World, arrived: &mut Arrived) -> Outcome {
    let pixel = arrived.call.account.clone().unwrap_or_default();
    if let Some(refused) = admit(world, &pixel, arrived) {
        return refused;
    }
    let Some(body) = arrived.json.take() else {
        return answer::unreadable(world);
    };
    let checked = match check::check(&body, arrived.now) {
        Ok(checked) => checked,
        Err(violation) => return answer::invalid(world, &violation),
    };
    take_in(world, &pixel, arrived.now, checked, body)
}

/// Token, pixel, rate. A prefix before the token is part of it, and so it is wrong.
fn admit(world: &World, pixel: &str, arrived: &Arrived) -> Option<Outcome> {
    let mut state = world.state();
    let registered = state.registry.c.get(pixel);
    let expected = registered.and_then(|one| one.access_token.as_deref());
    let token = arrived.header("access-token").unwrap_or_default();
    if !is_credential(token, expected) {
        return Some(answer::bad_token(world));
    }
    if registered.is_none() && !world.options.open && !pixel.is_empty() {
        return Some(answer::no_permission(world));
    }
    let percent = state
        .registry
        .use_of_rate(Network::NetworkC, pixel, arrived.now);
    (percent > 100).then(|| answer::throttled(world))
}

/// Without an id the network falls back to its cookie.
fn id_of(event: &Value) -> Option<&str> {
    let id = event.get("event_id").or_else(|| event.pointer("/user/ttp"));
    id.and_then(Value::as_str)
}

/// All or nothing, unless a fault asks for a partial success.
fn take_in(world: &World, pixel: &str, now: i64, checked: Checked, mut body: Value) -> Outcome {
    let Some(Value::Array(events)) = body.get_mut("data").map(Value::take) else {
        return answer::unreadable(world);
    };
    let mut state = world.state();
    let mut failed = BTreeSet::new();
    for poison in state.faults.poisons(Network::NetworkC, pixel) {
        let is_marked = |event: &Value| event.pointer("/properties/poison").is_some();
        let is_hit =
            |event: &Value| poison.hits(id_of(event).unwrap_or_default(), is_marked(event));
        if poison.is_partial {
            let hits = events.iter().enumerate().filter(|(_, event)| is_hit(event));
            failed.extend(hits.map(|(index, _)| index));
        } else if let Some(index) = events.iter().position(is_hit) {
            state.faults.used(&poison);
            return answer::poisoned(world, poison.names_index.then_some(index));
        }
    }
    let ledger = state.ledger(Network::NetworkC);
    if checked.is_test {
        // Not stored as live data.
        ledger.totals.test += events.len() as u64;
        return answer::ok(world);
    }
    let account = Arc::from(pixel);
    let taken = events.into_iter().zip(checked.money).enumerate();
    for (_, (event, money)) in taken.filter(|(index, _)| !failed.contains(index)) {
        let name = event.get("event").and_then(Value::as_str);
        let arriving = Arriving {
            name: name.unwrap_or_default().into(),
            id: id_of(&event).map(Box::from),
            money,
            dedup: Dedup::Window(WINDOW),
            payload: event,
        };
        ledger.receive(&account, arriving, now);
    }
    if failed.is_empty() {
        answer::ok(world)
    } else {
        answer::partial(world, &failed)
    }
}
