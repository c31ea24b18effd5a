//! `GET /v1/requestStatus:retrieve`: what became of a request.

use super::answer;
use super::check::Destination;
use crate::clock::DAY;
use crate::exchange::{self, Arrived, Call, Door};
use crate::faults::Fault;
use crate::network::{Endpoint, Network};
use crate::reply::{Outcome, Reply};
use crate::world::World;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Requests whose outcome is kept, and for how long.
const REQUESTS_MAX: usize = 10_000;
const KEPT: i64 = 50 * DAY;

const DOOR: Door = Door {
    account_of: |_| None,
    process,
    expired: |_| answer::unauthenticated(),
};

/// A request that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Submitted {
    outcomes: Vec<OutcomeAt>,
    at: i64,
}

/// What became of it at one destination.
#[derive(Debug, Clone)]
struct OutcomeAt {
    account: String,
    action: String,
    accepted: u64,
    discarded: BTreeMap<&'static str, u64>,
}

impl Submitted {
    pub(super) fn new(destinations: &[Destination], at: i64) -> Self {
        let outcome = |one: &Destination| OutcomeAt {
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
pub(crate) struct Statuses {
    kept: HashMap<String, Submitted>,
    order: VecDeque<String>,
}

impl Statuses {
    pub(super) fn keep(&mut self, request_id: String, submitted: Submitted) {
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
    let call = Call {
        network: Network::NetworkB,
        endpoint: Endpoint::Status,
        account: None,
    };
    exchange::run(&world, call, &DOOR, request).await
}

fn process(world: &World, arrived: &mut Arrived) -> Outcome {
    let mut state = world.state();
    let bearer = arrived.bearer().unwrap_or_default();
    match state.tokens.find(bearer, arrived.now) {
        None => return answer::unauthenticated(),
        Some(token) if !token.has_scope() => return answer::scope_insufficient(),
        Some(_) => {}
    }
    let request_id = arrived.query("requestId").unwrap_or_default();
    let submitted = state.statuses.kept.get(&request_id).cloned();
    let Some(submitted) = submitted.filter(|one| arrived.now - one.at <= KEPT) else {
        return answer::unknown_request();
    };
    let account = submitted.outcomes.first().map(|one| one.account.clone());
    let scripted = state
        .faults
        .request_status(account.as_deref().unwrap_or_default());
    arrived.call.account = account;
    let list: Vec<Value> = submitted
        .outcomes
        .iter()
        .map(|one| shown(one, scripted.as_ref()))
        .collect();
    let body = json!({"requestStatusPerDestination": list});
    Outcome::accepted(Reply::json(StatusCode::OK, &body))
}

fn shown(one: &OutcomeAt, scripted: Option<&Fault>) -> Value {
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
    if let Some(Fault::RequestStatus {
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
