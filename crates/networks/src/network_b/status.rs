//! The final status of a request's events. Google counts errors per request and does not say which
//! events failed.

use super::encode::bearer;
use crate::json::{integer, list, text};
use crate::request::{NetworkRequest, RequestMethod};
use crate::response::{NetworkResponse, SendOutcome};
use crate::text::form_encode;
use serde_json::Value;
use std::time::Duration;
pub use tributary_domain::forwarding::status_check::{StatusProblems, StatusRuling};
use tributary_domain::forwarding::waits::DELIVERY_WAIT_MAX;

/// Prefixes of reasons. Most reasons have the longer prefix; one has only the shorter one.
const PREFIXES: [&str; 2] = ["PROCESSING_ERROR_REASON_", "PROCESSING_ERROR_"];
const TOO_RECENT_CLICK: &str = "TOO_RECENT_CLICK";
/// Time until a click is known to all of Google's systems.
const CLICK_PROPAGATION: Duration = Duration::from_hours(6);

const _: () = assert!(CLICK_PROPAGATION.as_secs() <= DELIVERY_WAIT_MAX.as_secs());
const INTERNAL_ERROR: &str = "INTERNAL_ERROR";
/// The event was already received.
const DUPLICATE_REASONS: [&str; 2] = ["DUPLICATE_TRANSACTION_ID", "DUPLICATE_GCLID"];
/// Reasons that the operator has to resolve.
const ALERTING: [&str; 3] = [
    "ONE_PER_CLICK_CONVERSION_ACTION_NOT_PERMITTED_WITH_BRAID",
    "DESTINATION_ACCOUNT_ENHANCED_CONVERSIONS_TERMS_NOT_SIGNED",
    "EXTERNAL_ATTRIBUTION_DATA_MISSING",
];

/// Returns a request for the status of an earlier request. `request_id` comes from the response to
/// that request; the response to a request that was only validated has none.
pub fn status_request(request_id: &str, access_token: &str) -> NetworkRequest {
    let query = form_encode(&[("requestId", request_id)]);
    NetworkRequest {
        method: RequestMethod::Get,
        path_and_query: format!("/v1/requestStatus:retrieve?{query}"),
        headers: vec![bearer(access_token)],
        body: Vec::new(),
    }
}

/// Classifies the response to a status request.
pub fn judge_status(outcome: &SendOutcome) -> StatusRuling {
    let response = match outcome {
        SendOutcome::Response(response) => response,
        SendOutcome::NotSent | SendOutcome::Interrupted => return StatusRuling::Retry,
    };
    match response.status {
        200..=299 => read(response).unwrap_or(StatusRuling::Retry),
        401 => StatusRuling::TokenRefused,
        408 | 429 => StatusRuling::Retry,
        400..=499 => StatusRuling::Unavailable,
        _ => StatusRuling::Retry,
    }
}

fn read(response: &NetworkResponse) -> Option<StatusRuling> {
    let body = response.object()?;
    let destinations: Vec<&Value> = list(&body, "requestStatusPerDestination").collect();
    let status_of = |one: &&Value| text(one, "requestStatus").unwrap_or_default().to_owned();
    let decided = |one: &&Value| {
        let decided = ["SUCCESS", "PARTIAL_SUCCESS", "FAILED"];
        decided.contains(&status_of(one).as_str())
    };
    if destinations.is_empty() || !destinations.iter().all(decided) {
        return Some(StatusRuling::Processing);
    }
    let mut failing = destinations
        .iter()
        .filter(|one| status_of(one) != "SUCCESS");
    let Some(destination) = failing.next() else {
        return Some(StatusRuling::Success);
    };
    // A request has one destination, so at most one destination fails.
    Some(StatusRuling::Problems(problems(
        destination,
        &status_of(destination),
    )))
}

fn problems(destination: &Value, status: &str) -> StatusProblems {
    let mut problems = StatusProblems::default();
    let counts = destination
        .get("errorInfo")
        .map(|info| list(info, "errorCounts").collect::<Vec<_>>())
        .unwrap_or_default();
    for count in &counts {
        let reason = unprefixed(text(count, "reason").unwrap_or("UNSPECIFIED"));
        let records = integer(count, "recordCount").and_then(|n| u64::try_from(n).ok());
        let mut again = |after: Duration| {
            problems.requeue_after = problems.requeue_after.max(Some(after));
        };
        match reason {
            TOO_RECENT_CLICK => again(CLICK_PROPAGATION),
            INTERNAL_ERROR => again(Duration::ZERO),
            _ if DUPLICATE_REASONS.contains(&reason) => continue,
            _ => {}
        }
        if ALERTING.contains(&reason) {
            problems.alert.push(reason.to_owned());
        }
        problems
            .failed
            .push((reason.to_owned(), records.unwrap_or(0)));
    }
    if counts.is_empty() {
        problems.failed.push((status.to_owned(), 0));
    }
    problems.already_delivered = problems.failed.is_empty();
    problems
}

fn unprefixed(reason: &str) -> &str {
    let found = PREFIXES
        .into_iter()
        .find_map(|prefix| reason.strip_prefix(prefix));
    found.unwrap_or(reason)
}
