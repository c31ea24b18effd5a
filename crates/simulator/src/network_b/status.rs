//! `GET /v1/requestStatus:retrieve`: what became of a request.

use super::check::CheckedDestination;
use super::responses;
use crate::clock::DAY;
use crate::faults::SimulatedFault;
use crate::network::{Endpoint, SimulatedNetwork};
use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::request_pipeline::{self, EndpointHandler, ReceivedRequest, RequestRoute};
use crate::world::World;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Requests whose outcome is kept, and for how long.
const REQUESTS_MAX: usize = 10_000;
const STATUS_RETENTION: i64 = 50 * DAY;

const HANDLER: EndpointHandler = EndpointHandler {
    account_of: |_| None,
    process,
    expired: |_| responses::unauthenticated(),
};

/// A request that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct SubmittedRequest {
    outcomes: Vec<DestinationOutcome>,
    at: i64,
}

/// What became of it at one destination.
#[derive(Debug, Clone)]
struct DestinationOutcome {
    account: String,
    action: String,
    accepted: u64,
    discarded: BTreeMap<&'static str, u64>,
}

impl SubmittedRequest {
    pub(super) fn new(destinations: &[CheckedDestination], at: i64) -> Self {
        let outcome = |one: &CheckedDestination| DestinationOutcome {
            account: one.account.clone(),
            action: one.action.clone(),
            accepted: 0,
            discarded: BTreeMap::new(),
        };
        let outcomes = destinations.iter().map(outcome).collect();
        Self { outcomes, at }
    }

    pub(super) fn accept(&mut self, place: usize) {
        self.outcomes[place].accepted += 1;
    }

    pub(super) fn discard(&mut self, place: usize, reason: &'static str) {
        *self.outcomes[place].discarded.entry(reason).or_default() += 1;
    }
}

/// The requests whose outcome is known.
#[derive(Debug, Default)]
pub(crate) struct RequestStatuses {
    kept: HashMap<String, SubmittedRequest>,
    order: VecDeque<String>,
}

impl RequestStatuses {
    pub(super) fn keep(&mut self, request_id: String, submitted: SubmittedRequest) {
        self.order.push_back(request_id.clone());
        self.kept.insert(request_id, submitted);
        while self.order.len() > REQUESTS_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.kept.remove(&oldest);
            }
        }
    }
}

/// `GET /v1/requestStatus:retrieve`.
pub(crate) async fn retrieve(Shared(world): Shared<Arc<World>>, request: Request) -> Response {
    let call = RequestRoute {
        network: SimulatedNetwork::NetworkB,
        endpoint: Endpoint::Status,
        account: None,
    };
    request_pipeline::handle(&world, call, &HANDLER, request).await
}

fn process(world: &World, arrived: &mut ReceivedRequest) -> SimulatedOutcome {
    let mut state = world.state();
    let bearer = arrived.bearer().unwrap_or_default();
    match state.tokens.find(bearer, arrived.now) {
        None => return responses::unauthenticated(),
        Some(token) if !token.has_scope() => return responses::scope_insufficient(),
        Some(_) => {}
    }
    let request_id = arrived.query("requestId").unwrap_or_default();
    let submitted = state.statuses.kept.get(&request_id).cloned();
    let Some(submitted) = submitted.filter(|one| arrived.now - one.at <= STATUS_RETENTION) else {
        return responses::unknown_request();
    };
    let account = submitted.outcomes.first().map(|one| one.account.clone());
    let scripted = state
        .faults
        .request_status(account.as_deref().unwrap_or_default());
    arrived.route.account = account;
    let list: Vec<Value> = submitted
        .outcomes
        .iter()
        .map(|one| status_json(one, scripted.as_ref()))
        .collect();
    let body = json!({"requestStatusPerDestination": list});
    SimulatedOutcome::accepted(SimulatedReply::json(StatusCode::OK, &body))
}

fn status_json(one: &DestinationOutcome, scripted: Option<&SimulatedFault>) -> Value {
    let total = one.accepted + one.discarded.values().sum::<u64>();
    let mut status = match (one.accepted, one.discarded.is_empty()) {
        (_, true) => "SUCCESS",
        (0, false) => "FAILED",
        (_, false) => "PARTIAL_SUCCESS",
    };
    let mut counts: Vec<(String, u64)> = one
        .discarded
        .iter()
        .map(|(reason, count)| ((*reason).to_owned(), *count))
        .collect();
    if let Some(SimulatedFault::RequestStatus {
        status: said,
        reason,
        count,
    }) = scripted
    {
        status = said;
        let count = count.unwrap_or(total);
        counts = reason
            .iter()
            .map(|reason| (reason.clone(), count))
            .collect();
    }
    let mut body = json!({
        "destination": {
            "operatingAccount": {"accountType": "GOOGLE_ADS", "accountId": one.account},
            "productDestinationId": one.action,
        },
        "requestStatus": status,
    });
    if status != "PROCESSING" {
        // Counts of 64 bits are strings in JSON.
        body["eventsIngestionStatus"] = json!({"recordCount": total.to_string()});
    }
    if !counts.is_empty() {
        let count = |(reason, count): &(String, u64)| json!({"recordCount": count.to_string(), "reason": reason});
        let counts: Vec<_> = counts.iter().map(count).collect();
        body["errorInfo"] = json!({"errorCounts": counts});
    }
    body
}
