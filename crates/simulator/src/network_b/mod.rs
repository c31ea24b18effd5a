//! `network_b` — Google Data Manager API, and Google's token endpoint.

mod answer;
mod check;
mod event;
mod grants;
mod jwt;
mod status;
mod tokens;

pub(crate) use status::{Statuses, retrieve};
pub(crate) use tokens::{Tokens, issue};

use crate::exchange::{self, Arrived, Call, Door};
use crate::ledger::{Arriving, Dedup};
use crate::network::{Endpoint, Network};
use crate::reply::Outcome;
use crate::world::{State, World};
use axum::extract::{Request, State as Shared};
use axum::response::Response;
use check::{Checked, Taken};
use serde_json::Value;
use status::Submitted;
use std::sync::Arc;
use tokens::Holder;

const DOOR: Door = Door {
    account_of,
    process,
    expired: |_| answer::unauthenticated(),
};

/// `POST /v1/events:ingest`.
pub(crate) async fn ingest(Shared(world): Shared<Arc<World>>, request: Request) -> Response {
    let call = Call {
        network: Network::NetworkB,
        endpoint: Endpoint::Events,
        account: None,
    };
    exchange::run(&world, call, &DOOR, request).await
}

fn account_of(arrived: &Arrived) -> Option<String> {
    let account = arrived
        .json
        .as_ref()?
        .pointer("/destinations/0/operatingAccount/accountId")?;
    account.as_str().map(str::to_owned)
}

fn process(world: &World, arrived: &mut Arrived) -> Outcome {
    let account = arrived.call.account.clone().unwrap_or_default();
    let bearer = arrived.bearer().unwrap_or_default();
    if let Some(refused) = admit(&mut world.state(), bearer, &account, arrived.now) {
        return refused;
    }
    let Some(body) = arrived.json.take() else {
        return answer::not_json();
    };
    let mut checked = match check::check(&body, arrived.now) {
        Ok(checked) => checked,
        Err(violations) => return answer::invalid(world, &violations),
    };
    let (wrong, poisons) = {
        let (state, is_open) = (world.state(), world.options.open);
        let accounts = &state.registry.b;
        let wrong = check::against_accounts(&mut checked, &body, accounts, is_open);
        (wrong, state.faults.poisons(Network::NetworkB, &account))
    };
    if !wrong.is_empty() {
        return answer::invalid(world, &wrong);
    }
    for poison in &poisons {
        let is_hit = |event: &Taken| poison.hits(&event.id, false);
        if let Some(index) = checked.events.iter().position(is_hit) {
            world.state().faults.used(poison);
            return answer::poisoned(world, poison.names_index.then_some(index));
        }
    }
    take_in(world, &account, arrived.now, checked, body)
}

/// Token, scope, permission, quota.
fn admit(state: &mut State, bearer: &str, account: &str, now: i64) -> Option<Outcome> {
    let Some(token) = state.tokens.find(bearer, now) else {
        return Some(answer::unauthenticated());
    };
    if !token.has_scope() {
        return Some(answer::scope_insufficient());
    }
    let holder = token.holder.clone();
    if let Some(registered) = state.registry.b.get(account) {
        let clients = registered.client_id.as_deref();
        let service = registered.service_account.as_ref();
        let service = service.map(|one| one.client_email.as_str());
        let may = match &holder {
            Holder::Client(id) => clients.is_none_or(|one| one == id),
            Holder::Service(email) => service.is_none_or(|one| one == email),
        };
        if !may {
            return Some(answer::permission_denied());
        }
    }
    let percent = state.registry.use_of_rate(Network::NetworkB, account, now);
    (percent > 100).then(answer::quota_exceeded)
}

fn take_in(world: &World, account: &str, now: i64, checked: Checked, body: Value) -> Outcome {
    let request_id = answer::uuid(&world.fresh_hex());
    let account: Arc<str> = Arc::from(account);
    let mut payloads = match body {
        Value::Object(mut fields) => match fields.remove("events") {
            Some(Value::Array(events)) => events,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let mut state = world.state();
    let ledger = state.ledger(Network::NetworkB);
    if checked.validate_only {
        ledger.totals.validated += payloads.len() as u64;
        drop(state);
        return answer::ingested(&request_id);
    }
    let mut submitted = Submitted::new(&checked.destinations, now);
    for (event, payload) in checked.events.into_iter().zip(&mut payloads) {
        for &place in &event.destinations {
            if let Some(reason) = event.discarded_by(&checked.destinations[place]) {
                submitted.discard(place, reason);
                ledger.refuse(reason, 1);
                continue;
            }
            submitted.accept(place);
            let arriving = Arriving {
                name: checked.destinations[place].action.as_str().into(),
                id: Some(event.id.as_str().into()),
                money: event.money.clone(),
                dedup: Dedup::Restate,
                payload: match event.destinations.len() {
                    1 => payload.take(),
                    _ => payload.clone(),
                },
            };
            ledger.receive(&account, arriving, now);
        }
    }
    state.statuses.keep(request_id.clone(), submitted);
    drop(state);
    answer::ingested(&request_id)
}
