//! Responses in the network's format. Nearly all errors have HTTP status 200.

use crate::clock;
use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::state::SimulatorState;
use crate::validation::{PathStep, Violation, ViolationKind};
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn reply(world: &SimulatorState, code: u32, message: &str) -> SimulatedReply {
    reply_with(world, code, message, &json!({}))
}

fn reply_with(world: &SimulatorState, code: u32, message: &str, data: &Value) -> SimulatedReply {
    let digits = |one: &char| one.is_ascii_digit();
    let time: String = clock::format_time(world.clock.now())
        .chars()
        .filter(digits)
        .collect();
    let serial = world.fresh_hex()[..12].to_uppercase();
    let body = json!({"code": code, "message": message, "request_id": format!("{time}{serial}"),
        "data": data});
    SimulatedReply::json(StatusCode::OK, &body)
}

fn refused(world: &SimulatorState, code: u32, message: &str) -> SimulatedOutcome {
    SimulatedOutcome::refused(reply(world, code, message), code.to_string(), message)
}

pub(super) fn ok(world: &SimulatorState) -> SimulatedOutcome {
    SimulatedOutcome::accepted(reply(world, 0, "OK"))
}

/// Reports a partial success with the failed events.
pub(super) fn partial(world: &SimulatorState, failed: &BTreeSet<usize>) -> SimulatedOutcome {
    let failed: Vec<Value> = failed
        .iter()
        .map(|index| json!({"order_in_batch": index, "error_message": "Invalid event"}))
        .collect();
    let data = json!({"failed_events": failed});
    SimulatedOutcome::accepted(reply_with(world, 20001, "Partial success", &data))
}

pub(super) fn bad_token(world: &SimulatorState) -> SimulatedOutcome {
    refused(
        world,
        40105,
        "Access token is incorrect or has been revoked.",
    )
}

pub(super) fn no_permission(world: &SimulatorState) -> SimulatedOutcome {
    refused(world, 40001, "No permission to operate the pixel.")
}

pub(super) fn throttled(world: &SimulatorState) -> SimulatedOutcome {
    refused(world, 40100, "Too many requests. Please retry later.")
}

pub(super) fn unreadable(world: &SimulatorState) -> SimulatedOutcome {
    refused(world, 40002, "The body is not valid JSON")
}

pub(super) fn invalid(world: &SimulatorState, violation: &Violation) -> SimulatedOutcome {
    let message = format!("{}: {}", path(violation), describe(violation.kind));
    refused(world, 40002, &message)
}

pub(super) fn poisoned(world: &SimulatorState, index: Option<usize>) -> SimulatedOutcome {
    let message = index.map_or("Invalid event".to_owned(), |index| {
        format!("Batch.{index}.event: Invalid event")
    });
    refused(world, 40002, &message)
}

/// Returns a path such as `Batch.3.properties.contents.0.content_id`.
fn path(violation: &Violation) -> String {
    let name = |(position, step): (usize, &PathStep)| match step {
        PathStep::Field(name) if position == 0 && name == "data" && violation.event().is_some() => {
            "Batch".to_owned()
        }
        PathStep::Field(name) => name.clone(),
        PathStep::Index(index) => index.to_string(),
    };
    let parts: Vec<_> = violation.steps.iter().enumerate().map(name).collect();
    if parts.is_empty() {
        return "body".to_owned();
    }
    parts.join(".")
}

fn describe(kind: ViolationKind) -> String {
    match kind {
        ViolationKind::Missing => "Missing data for required field".to_owned(),
        ViolationKind::Unknown => "Unknown field".to_owned(),
        ViolationKind::Type("object") => "Not a valid mapping".to_owned(),
        ViolationKind::Type(kind) => format!("Not a valid {kind}"),
        other => other.description(),
    }
}
