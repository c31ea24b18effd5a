//! The network's words. Nearly all errors come with HTTP 200.

use crate::clock;
use crate::read::{Step, Violation, Wrong};
use crate::reply::{Outcome, Reply};
use crate::world::World;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn reply(world: &World, code: u32, message: &str) -> Reply {
    reply_with(world, code, message, &json!({}))
}

fn reply_with(world: &World, code: u32, message: &str, data: &Value) -> Reply {
    let digits = |one: &char| one.is_ascii_digit();
    let time: String = clock::text(world.clock.now())
        .chars()
        .filter(digits)
        .collect();
    let serial = world.fresh_hex()[..12].to_uppercase();
    let body = json!({"code": code, "message": message, "request_id": format!("{time}{serial}"),
        "data": data});
    Reply::json(StatusCode::OK, &body)
}

fn refused(world: &World, code: u32, message: &str) -> Outcome {
    Outcome::refused(reply(world, code, message), code.to_string(), message)
}

pub(super) fn ok(world: &World) -> Outcome {
    Outcome::accepted(reply(world, 0, "OK"))
}

/// Some events were taken, these were not.
pub(super) fn partial(world: &World, failed: &BTreeSet<usize>) -> Outcome {
    let failed: Vec<Value> = failed
        .iter()
        .map(|index| json!({"order_in_batch": index, "error_message": "Invalid event"}))
        .collect();
    let data = json!({"failed_events": failed});
    Outcome::accepted(reply_with(world, 20001, "Partial success", &data))
}

pub(super) fn bad_token(world: &World) -> Outcome {
    refused(
        world,
        40105,
        "Access token is incorrect or has been revoked.",
    )
}

pub(super) fn no_permission(world: &World) -> Outcome {
    refused(world, 40001, "No permission to operate the pixel.")
}

pub(super) fn throttled(world: &World) -> Outcome {
    refused(world, 40100, "Too many requests. Please retry later.")
}

pub(super) fn unreadable(world: &World) -> Outcome {
    refused(world, 40002, "The body is not valid JSON")
}

pub(super) fn invalid(world: &World, violation: &Violation) -> Outcome {
    let message = format!("{}: {}", path(violation), words(violation.wrong));
    refused(world, 40002, &message)
}

pub(super) fn poisoned(world: &World, index: Option<usize>) -> Outcome {
    let message = index.map_or("Invalid event".to_owned(), |index| {
        format!("Batch.{index}.event: Invalid event")
    });
    refused(world, 40002, &message)
}

/// `Batch.3.properties.contents.0.content_id`.
fn path(violation: &Violation) -> String {
    let name = |(place, step): (usize, &Step)| match step {
        Step::Field(name) if place == 0 && name == "data" && violation.event().is_some() => {
            "Batch".to_owned()
        }
        Step::Field(name) => name.clone(),
        Step::Index(index) => index.to_string(),
    };
    let parts: Vec<_> = violation.steps.iter().enumerate().map(name).collect();
    if parts.is_empty() {
        return "body".to_owned();
    }
    parts.join(".")
}

fn words(wrong: Wrong) -> String {
    match wrong {
        Wrong::Missing => "Missing data for required field".to_owned(),
        Wrong::Unknown => "Unknown field".to_owned(),
        Wrong::Type("object") => "Not a valid mapping".to_owned(),
        Wrong::Type(kind) => format!("Not a valid {kind}"),
        other => other.words(),
    }
}
