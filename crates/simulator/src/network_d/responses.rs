//! Responses in the network's format. The body of a success response is not documented, so every
//! second body is empty.

use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::state::SimulatorState;
use crate::validation::{PathStep, Violation, ViolationKind};
use axum::http::{HeaderName, StatusCode};
use serde_json::{Value, json};

fn with_id(world: &SimulatorState, reply: SimulatedReply) -> SimulatedReply {
    let id = format!("req_{}", &world.fresh_hex()[..24]);
    reply.header(HeaderName::from_static("x-request-id"), &id)
}

fn error(world: &SimulatorState, status: StatusCode, error: Value) -> SimulatedOutcome {
    let code = error["code"].as_str();
    let reason = code.map_or_else(|| status.as_u16().to_string(), str::to_owned);
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let reply = with_id(
        world,
        SimulatedReply::json(status, &json!({"error": error})),
    );
    SimulatedOutcome::refused(reply, reason, message)
}

fn invalid_request(message: &str, param: &Value, code: &str) -> Value {
    json!({"message": message, "type": "invalid_request_error", "param": param, "code": code})
}

pub(super) fn received(world: &SimulatorState, count: usize, is_empty: bool) -> SimulatedOutcome {
    let reply = if is_empty {
        SimulatedReply::empty(StatusCode::OK)
    } else {
        SimulatedReply::json(StatusCode::OK, &json!({"events_received": count}))
    };
    SimulatedOutcome::accepted(with_id(world, reply))
}

pub(super) fn no_pid(world: &SimulatorState) -> SimulatedOutcome {
    let body = invalid_request("pid is required", &json!("pid"), "missing_pid");
    error(world, StatusCode::BAD_REQUEST, body)
}

pub(super) fn unauthorized(world: &SimulatorState) -> SimulatedOutcome {
    let message = "Incorrect API key provided, or the key lacks the scope for conversions.";
    let body = invalid_request(message, &Value::Null, "invalid_api_key");
    error(world, StatusCode::UNAUTHORIZED, body)
}

pub(super) fn unknown_pid(world: &SimulatorState) -> SimulatedOutcome {
    let body = json!({"message": "403: unknown pid", "type": "server_error", "param": null,
        "code": null});
    error(world, StatusCode::FORBIDDEN, body)
}

pub(super) fn throttled(world: &SimulatorState) -> SimulatedOutcome {
    let body = json!({"message": "Rate limit exceeded.", "type": "rate_limit_error",
        "param": null, "code": "rate_limit_exceeded"});
    error(world, StatusCode::TOO_MANY_REQUESTS, body)
}

pub(super) fn too_large(world: &SimulatorState) -> SimulatedOutcome {
    let body = invalid_request("The body is too large.", &Value::Null, "payload_too_large");
    error(world, StatusCode::PAYLOAD_TOO_LARGE, body)
}

pub(super) fn unreadable(world: &SimulatorState) -> SimulatedOutcome {
    let body = invalid_request("The body is not valid JSON.", &Value::Null, "invalid_json");
    error(world, StatusCode::BAD_REQUEST, body)
}

pub(super) fn poisoned(
    world: &SimulatorState,
    index: Option<usize>,
    by_path: bool,
) -> SimulatedOutcome {
    if by_path {
        return poisoned_by_path(world, index);
    }
    let param = index.map(|index| format!("events[{index}]"));
    let body = invalid_request(
        "An event was rejected by fault injection.",
        &json!(param),
        "invalid_event",
    );
    error(world, StatusCode::BAD_REQUEST, body)
}

fn poisoned_by_path(world: &SimulatorState, index: Option<usize>) -> SimulatedOutcome {
    let message = "An event was rejected by fault injection.";
    let mut path = vec![json!("body"), json!("events")];
    path.extend(index.map(|index| json!(index)));
    let body = json!({"detail": [{"type": "value_error", "loc": path, "msg": message}]});
    let reply = SimulatedReply::json(StatusCode::UNPROCESSABLE_ENTITY, &body);
    SimulatedOutcome::refused(with_id(world, reply), "value_error".to_owned(), message)
}

pub(super) fn invalid(world: &SimulatorState, violations: &[Violation]) -> SimulatedOutcome {
    let Some(first) = violations.first() else {
        return unreadable(world);
    };
    let sentence = first.sentence();
    let body = match (first.kind, first.event()) {
        (ViolationKind::TooOld, _) => timestamp(
            first,
            "Event timestamp is too old.",
            "event_timestamp_too_old",
        ),
        (ViolationKind::TooNew, _) => {
            let message = "Event timestamp is too far in the future.";
            timestamp(first, message, "event_timestamp_in_future")
        }
        (_, None) => invalid_request(&sentence, &json!(first.path()), &code(first)),
        (_, Some(index)) => {
            let message = "One or more events are invalid.";
            let param = json!(format!("events[{index}]"));
            let mut body = invalid_request(message, &param, "invalid_event");
            body["errors"] = violations.iter().map(detail).collect();
            body
        }
    };
    let mut outcome = error(world, StatusCode::BAD_REQUEST, body);
    if let Some((_, message)) = &mut outcome.refusal {
        *message = sentence;
    }
    outcome
}

fn timestamp(violation: &Violation, message: &str, code: &str) -> Value {
    invalid_request(message, &json!(violation.path()), code)
}

fn detail(violation: &Violation) -> Value {
    let below = violation.steps.get(2..).unwrap_or_default();
    let field = Violation {
        steps: below.to_vec(),
        kind: violation.kind,
    };
    json!({"message": field.sentence(), "param": violation.path(), "code": code(violation)})
}

/// Returns a code such as `missing_event_data_type` for `events[1].data.type`.
fn code(violation: &Violation) -> String {
    let verb = match violation.kind {
        ViolationKind::Missing => "missing",
        ViolationKind::Unknown => return "unknown_parameter".to_owned(),
        ViolationKind::TooMany(_) => "too_many",
        _ => "invalid",
    };
    let fields = violation.steps.iter().filter_map(|step| match step {
        PathStep::Field(name) if name == "events" && violation.event().is_some() => Some("event"),
        PathStep::Field(name) => Some(name.as_str()),
        PathStep::Index(_) => None,
    });
    let parts: Vec<_> = std::iter::once(verb).chain(fields).collect();
    parts.join("_")
}
