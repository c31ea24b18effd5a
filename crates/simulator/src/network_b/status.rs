//! `GET /v1/requestStatus:retrieve`: the status of a request.

use super::check::CheckedDestination;
use super::responses;
use crate::clock::DAY;
use crate::faults::SimulatedFault;
use crate::network::{Endpoint, SimulatedNetwork};
use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::request_pipeline::{self, EndpointHandler, ReceivedRequest, RequestRoute};
use crate::state::SimulatorState;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Maximum number of requests whose status is kept. Older statuses are dropped.
const REQUESTS_MAX: usize = 10_000;
const STATUS_RETENTION: i64 = 50 * DAY;

const HANDLER: EndpointHandler = EndpointHandler {
    account_of: |_| None,
    process,
    expired: |_| responses::unauthenticated(),
};

/// An accepted request.
#[derive(Debug, Clone)]
pub(crate) struct SubmittedRequest {
    outcomes: Vec<DestinationOutcome>,
    at: i64,
}

/// Result at one destination.
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

    pub(super) fn accept(&mut self, position: usize) {
        self.outcomes[position].accepted += 1;
    }

    pub(super) fn discard(&mut self, position: usize, reason: &'static str) {
        *self.outcomes[position].discarded.entry(reason).or_default() += 1;
    }
}

/// Requests whose status is known.
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

/// Handles `GET /v1/requestStatus:retrieve`.
pub(crate) async fn retrieve(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let route = RequestRoute {
        network: SimulatedNetwork::NetworkB,
        endpoint: Endpoint::Status,
        account: None,
    };
    request_pipeline::handle(&world, route, &HANDLER, request).await
}

fn process(world: &SimulatorState, received: &mut ReceivedRequest) -> SimulatedOutcome {
    let mut state = world.state();
    let bearer = received.bearer().unwrap_or_default();
    match state.tokens.find(bearer, received.now) {
        None => return responses::unauthenticated(),
        Some(token) if !token.has_scope() => return responses::scope_insufficient(),
        Some(_) => {}
    }
    let request_id = received.query("requestId").unwrap_or_default();
    let submitted = state.statuses.kept.get(&request_id).cloned();
    let Some(submitted) = submitted.filter(|one| received.now - one.at <= STATUS_RETENTION) else {
        return responses::unknown_request();
    };
    let account = submitted.outcomes.first().map(|one| one.account.clone());
    let scripted = state
        .faults
        .request_status(account.as_deref().unwrap_or_default());
    received.route.account = account;
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
        status: scripted_status,
        reason,
        count,
    }) = scripted
    {
        status = scripted_status;
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
        // 64-bit integers are strings in Google's JSON.
        body["eventsIngestionStatus"] = json!({"recordCount": total.to_string()});
    }
    if !counts.is_empty() {
        let count = |(reason, count): &(String, u64)| json!({"recordCount": count.to_string(), "reason": reason});
        let counts: Vec<_> = counts.iter().map(count).collect();
        body["errorInfo"] = json!({"errorCounts": counts});
    }
    body
}
