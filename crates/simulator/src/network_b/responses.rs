//! Responses in Google's format, including the token endpoint's.

use super::check::NamedViolation;
use super::tokens::LIFETIME;
use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::state::SimulatorState;
use crate::validation::{PathStep, ViolationKind};
use axum::http::StatusCode;
use serde_json::{Value, json};

const DOMAIN: &str = "datamanager.googleapis.com";

/// Formats 32 digits as a UUID.
pub(super) fn uuid(hex: &str) -> String {
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let parts = [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ];
    parts.join("-")
}

pub(super) fn ingested(request_id: &str) -> SimulatedOutcome {
    let body = json!({"requestId": request_id});
    SimulatedOutcome::accepted(SimulatedReply::json(StatusCode::OK, &body))
}

fn info(reason: &str, domain: &str) -> Value {
    json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
        "domain": domain})
}

fn error(
    code: StatusCode,
    status: &str,
    message: &str,
    reason: &str,
    details: Vec<Value>,
) -> SimulatedOutcome {
    let body = json!({"error": {"code": code.as_u16(), "status": status, "message": message,
        "details": details}});
    SimulatedOutcome::refused(SimulatedReply::json(code, &body), reason, message)
}

pub(super) fn unauthenticated() -> SimulatedOutcome {
    let message = "Request had invalid authentication credentials. Expected OAuth 2 access token, \
                   login cookie or other valid authentication credential.";
    let details = vec![info("ACCESS_TOKEN_EXPIRED", "googleapis.com")];
    error(
        StatusCode::UNAUTHORIZED,
        "UNAUTHENTICATED",
        message,
        "UNAUTHENTICATED",
        details,
    )
}

pub(super) fn scope_insufficient() -> SimulatedOutcome {
    let (message, reason) = (
        "Request had insufficient authentication scopes.",
        "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
    );
    let details = vec![info(reason, "googleapis.com")];
    error(
        StatusCode::FORBIDDEN,
        "PERMISSION_DENIED",
        message,
        reason,
        details,
    )
}

pub(super) fn permission_denied() -> SimulatedOutcome {
    let message = "The caller does not have permission";
    let details = vec![info("PERMISSION_DENIED", DOMAIN)];
    error(
        StatusCode::FORBIDDEN,
        "PERMISSION_DENIED",
        message,
        "PERMISSION_DENIED",
        details,
    )
}

pub(super) fn quota_exceeded() -> SimulatedOutcome {
    let message = "Quota exceeded for quota metric 'Ingestion Mutate Requests'.";
    let mut info = info("RESOURCE_EXHAUSTED", "googleapis.com");
    info["metadata"] = json!({"quota_limit": "IngestionMutateRequestsPerMinutePerProject"});
    let code = StatusCode::TOO_MANY_REQUESTS;
    error(
        code,
        "RESOURCE_EXHAUSTED",
        message,
        "RESOURCE_EXHAUSTED",
        vec![info],
    )
}

pub(super) fn not_json() -> SimulatedOutcome {
    let message = "Invalid JSON payload received.";
    error(
        StatusCode::BAD_REQUEST,
        "INVALID_ARGUMENT",
        message,
        "INVALID_ARGUMENT",
        Vec::new(),
    )
}

pub(super) fn unknown_request() -> SimulatedOutcome {
    let message = "Unknown request id.";
    error(
        StatusCode::NOT_FOUND,
        "NOT_FOUND",
        message,
        "NOT_FOUND",
        Vec::new(),
    )
}

/// Rejects the whole request because at least one record is invalid.
pub(super) fn invalid(world: &SimulatorState, wrong: &[NamedViolation]) -> SimulatedOutcome {
    let violations: Vec<Value> = wrong
        .iter()
        .map(|one| {
            json!({"field": field(one), "description": one.violation.kind.description(),
                "reason": reason(one)})
        })
        .collect();
    let first = wrong.first();
    let description = first
        .map(|one| one.violation.sentence())
        .unwrap_or_default();
    refused(
        world,
        json!(violations),
        first.map_or("INVALID_ARGUMENT", reason),
        &description,
    )
}

pub(super) fn poisoned(world: &SimulatorState, index: Option<usize>) -> SimulatedOutcome {
    let field = index.map_or("events".to_owned(), |index| {
        format!("events.events[{index}]")
    });
    let description = "The event was rejected by fault injection.";
    let violation =
        json!([{"field": field, "description": description, "reason": "INVALID_EVENT"}]);
    refused(world, violation, "INVALID_EVENT", description)
}

fn refused(
    world: &SimulatorState,
    violations: Value,
    reason: &str,
    description: &str,
) -> SimulatedOutcome {
    let request_id = format!("t-{}", &world.fresh_hex()[..8]);
    let details = vec![
        info("INVALID_ARGUMENT", DOMAIN),
        json!({"@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": violations}),
        json!({"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": request_id}),
    ];
    let message = "There was a problem with the request.";
    let mut outcome = error(
        StatusCode::BAD_REQUEST,
        "INVALID_ARGUMENT",
        message,
        reason,
        details,
    );
    outcome.refusal = Some((reason.to_owned(), description.to_owned()));
    outcome
}

/// Returns a field path such as `events.events[3].currency`.
fn field(one: &NamedViolation) -> String {
    let path = one.violation.path();
    match one.violation.steps.as_slice() {
        [PathStep::Field(list), PathStep::Index(_), ..] => format!("{list}.{path}"),
        _ => path,
    }
}

fn reason(one: &NamedViolation) -> &'static str {
    let last = one.violation.steps.last();
    let name = match last {
        Some(PathStep::Field(name)) => name.as_str(),
        _ => "",
    };
    match one.violation.kind {
        _ if one.reason.is_some() => one.reason.unwrap_or_default(),
        ViolationKind::Missing | ViolationKind::Empty => "REQUIRED_FIELD_MISSING",
        ViolationKind::NotHex => "INVALID_HEX_ENCODING",
        ViolationKind::NotSha256 => "INVALID_SHA256_FORMAT",
        ViolationKind::Money | ViolationKind::Type("number" | "integer") => "INVALID_NUMBER_FORMAT",
        ViolationKind::Currency => "INVALID_CURRENCY_CODE",
        ViolationKind::Choice => "INVALID_ENUM_VALUE",
        ViolationKind::TooOld | ViolationKind::TooNew => "EVENT_TIME_INVALID",
        ViolationKind::Identity => "NO_IDENTIFIERS_PROVIDED",
        ViolationKind::TooMany(_) => match name {
            "events" => "TOO_MANY_EVENTS",
            "destinations" => "TOO_MANY_DESTINATIONS",
            _ => "TOO_MANY_USER_IDENTIFIERS",
        },
        ViolationKind::Conflict(_) => "INVALID_EVENT",
        ViolationKind::Unknown | ViolationKind::Type(_) | ViolationKind::Format(_) => {
            "INVALID_FORMAT"
        }
    }
}

pub(super) fn token(token: &str, scope: &str, refresh_token: Option<&str>) -> SimulatedOutcome {
    let mut body = json!({"access_token": token, "expires_in": LIFETIME, "scope": scope,
        "token_type": "Bearer"});
    if let Some(refresh_token) = refresh_token {
        body["refresh_token"] = json!(refresh_token);
    }
    SimulatedOutcome::accepted(SimulatedReply::json(StatusCode::OK, &body))
}

pub(super) fn token_error(error: &str, description: &str) -> SimulatedOutcome {
    token_refused(StatusCode::BAD_REQUEST, error, description)
}

pub(super) fn invalid_grant(description: &str) -> SimulatedOutcome {
    token_refused(StatusCode::BAD_REQUEST, "invalid_grant", description)
}

pub(super) fn invalid_client(description: &str) -> SimulatedOutcome {
    token_refused(StatusCode::UNAUTHORIZED, "invalid_client", description)
}

fn token_refused(status: StatusCode, error: &str, description: &str) -> SimulatedOutcome {
    let body = json!({"error": error, "error_description": description});
    SimulatedOutcome::refused(SimulatedReply::json(status, &body), error, description)
}
