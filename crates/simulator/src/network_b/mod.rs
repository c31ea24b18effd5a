//! `network_b`: Google Data Manager API and Google's token endpoint.

mod check;
mod event;
mod grants;
mod jwt;
mod responses;
mod status;
mod tokens;

pub(crate) use status::{RequestStatuses, retrieve};
pub(crate) use tokens::{ADS_SCOPE, IssuedTokens, issue};

use crate::ledger::{AcceptedEvent, Dedup};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::reply::SimulatedOutcome;
use crate::request_pipeline::{self, EndpointHandler, ReceivedRequest, RequestRoute};
use crate::state::{SimulatorState, State};
use axum::extract::{Request, State as Shared};
use axum::response::Response;
use check::{AcceptedGoogleEvent, CheckedGoogleRequest};
use serde_json::Value;
use status::SubmittedRequest;
use std::sync::Arc;
use tokens::TokenHolder;

const HANDLER: EndpointHandler = EndpointHandler {
    account_of,
    process,
    expired: |_| responses::unauthenticated(),
};

/// Handles `POST /v1/events:ingest`.
pub(crate) async fn ingest(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let route = RequestRoute {
        network: SimulatedNetwork::NetworkB,
        endpoint: Endpoint::Events,
        account: None,
    };
    request_pipeline::handle(&world, route, &HANDLER, request).await
}

fn account_of(received: &ReceivedRequest) -> Option<String> {
    let account = received
        .json
        .as_ref()?
        .pointer("/destinations/0/operatingAccount/accountId")?;
    account.as_str().map(str::to_owned)
}

fn process(world: &SimulatorState, received: &mut ReceivedRequest) -> SimulatedOutcome {
    let account = received.route.account.clone().unwrap_or_default();
    let bearer = received.bearer().unwrap_or_default();
    if let Some(refused) = admit(&mut world.state(), bearer, &account, received.now) {
        return refused;
    }
    let Some(body) = received.json.take() else {
        return responses::not_json();
    };
    let mut checked = match check::check(&body, received.now) {
        Ok(checked) => checked,
        Err(violations) => return responses::invalid(world, &violations),
    };
    let (wrong, poisons) = {
        let (state, is_open) = (world.state(), world.options.open);
        let accounts = &state.registry.b;
        let wrong = check::check_against_accounts(&mut checked, &body, accounts, is_open);
        (
            wrong,
            state.faults.poisons(SimulatedNetwork::NetworkB, &account),
        )
    };
    if !wrong.is_empty() {
        return responses::invalid(world, &wrong);
    }
    for poison in &poisons {
        let is_hit = |event: &AcceptedGoogleEvent| poison.matches(&event.id, false);
        if let Some(index) = checked.events.iter().position(is_hit) {
            world.state().faults.mark_used(poison);
            return responses::poisoned(world, poison.names_index.then_some(index));
        }
    }
    accept_events(world, &account, received.now, checked, body)
}

/// Checks token, scope, permission and quota.
fn admit(state: &mut State, bearer: &str, account: &str, now: i64) -> Option<SimulatedOutcome> {
    let Some(token) = state.tokens.find(bearer, now) else {
        return Some(responses::unauthenticated());
    };
    if !token.has_scope() {
        return Some(responses::scope_insufficient());
    }
    let holder = token.holder.clone();
    if let Some(registered) = state.registry.b.get(account) {
        let clients = registered.client_id.as_deref();
        let service = registered.service_account.as_ref();
        let service = service.map(|one| one.client_email.as_str());
        let may = match &holder {
            TokenHolder::Client(id) => clients.is_none_or(|one| one == id),
            TokenHolder::Service(email) => service.is_none_or(|one| one == email),
        };
        if !may {
            return Some(responses::permission_denied());
        }
    }
    let percent = state
        .registry
        .rate_usage_percent(SimulatedNetwork::NetworkB, account, now);
    (percent > 100).then(responses::quota_exceeded)
}

fn accept_events(
    world: &SimulatorState,
    account: &str,
    now: i64,
    checked: CheckedGoogleRequest,
    body: Value,
) -> SimulatedOutcome {
    let request_id = responses::uuid(&world.fresh_hex());
    let account: Arc<str> = Arc::from(account);
    let mut payloads = match body {
        Value::Object(mut fields) => match fields.remove("events") {
            Some(Value::Array(events)) => events,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let mut state = world.state();
    let ledger = state.ledger(SimulatedNetwork::NetworkB);
    if checked.validate_only {
        ledger.totals.validated += payloads.len() as u64;
        drop(state);
        return responses::ingested(&request_id);
    }
    let mut submitted = SubmittedRequest::new(&checked.destinations, now);
    for (event, payload) in checked.events.into_iter().zip(&mut payloads) {
        for &position in &event.destinations {
            if let Some(reason) = event.discard_reason(&checked.destinations[position]) {
                submitted.discard(position, reason);
                ledger.refuse(reason, 1);
                continue;
            }
            submitted.accept(position);
            let accepted = AcceptedEvent {
                name: checked.destinations[position].action.as_str().into(),
                id: Some(event.id.as_str().into()),
                money: event.money.clone(),
                dedup: Dedup::Restate,
                payload: match event.destinations.len() {
                    1 => payload.take(),
                    _ => payload.clone(),
                },
            };
            ledger.receive(&account, accepted, now);
        }
    }
    state.statuses.keep(request_id.clone(), submitted);
    drop(state);
    responses::ingested(&request_id)
}
