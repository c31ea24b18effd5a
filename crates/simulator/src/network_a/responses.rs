//! Responses in the network's format.

use super::Usage;
use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::state::SimulatorState;
use crate::validation::{PathStep, Violation, ViolationKind};
use axum::http::{HeaderName, StatusCode};
use serde_json::{Value, json};

/// Length of a trace id.
const TRACE_CHARS: usize = 22;

fn trace(world: &SimulatorState) -> String {
    let mut trace = world.fresh_hex();
    trace.truncate(TRACE_CHARS);
    format!("A{trace}")
}

fn error(
    mut error: Value,
    world: &SimulatorState,
    reason: &str,
    message: &str,
) -> SimulatedOutcome {
    error["fbtrace_id"] = json!(trace(world));
    let reply = SimulatedReply::json(StatusCode::BAD_REQUEST, &json!({"error": error}));
    SimulatedOutcome::refused(reply, reason, message)
}

pub(super) fn received(world: &SimulatorState, count: usize) -> SimulatedOutcome {
    let body = json!({"events_received": count, "messages": [], "fbtrace_id": trace(world)});
    SimulatedOutcome::accepted(SimulatedReply::json(StatusCode::OK, &body))
}

pub(super) fn no_version(world: &SimulatorState) -> SimulatedOutcome {
    let message = "Unknown path components: a call needs a version, such as /v26.0/";
    let body = json!({"message": message, "type": "OAuthException", "code": 2500});
    error(body, world, "2500", message)
}

pub(super) fn no_token(world: &SimulatorState) -> SimulatedOutcome {
    let message = "An access token is required to request this resource.";
    let body = json!({"message": message, "type": "OAuthException", "code": 104});
    error(body, world, "104", message)
}

pub(super) fn bad_token(world: &SimulatorState) -> SimulatedOutcome {
    let message = "Error validating access token: Session has expired or the token is not valid.";
    let body =
        json!({"message": message, "type": "OAuthException", "code": 190, "error_subcode": 463});
    error(body, world, "190", message)
}

pub(super) fn bad_proof(world: &SimulatorState, is_given: bool) -> SimulatedOutcome {
    let message = if is_given {
        "Invalid appsecret_proof provided in the API argument"
    } else {
        "API calls from the server require an appsecret_proof argument"
    };
    let body = json!({"message": message, "type": "GraphMethodException", "code": 100});
    error(body, world, "100", message)
}

pub(super) fn unknown_pixel(world: &SimulatorState, pixel: &str) -> SimulatedOutcome {
    let message = format!(
        "Unsupported post request. Object with ID '{pixel}' does not exist, cannot be loaded due \
         to missing permissions, or does not support this operation."
    );
    let body = json!({"message": message, "type": "GraphMethodException", "code": 100,
        "error_subcode": 33});
    error(body, world, "100/33", &message)
}

pub(super) fn throttled(world: &SimulatorState, pixel: &str) -> SimulatedOutcome {
    let message = "There have been too many calls from this ad-account. Wait a bit and try again.";
    let body = json!({"message": message, "type": "OAuthException", "code": 80004,
        "is_transient": true});
    let outcome = error(body, world, "80004", message);
    let usage = Usage {
        percent: 100,
        regain_minutes: 1,
    };
    with_usage(outcome, pixel, usage)
}

pub(super) fn unreadable(world: &SimulatorState, message: &str) -> SimulatedOutcome {
    let body = json!({"message": message, "type": "OAuthException", "code": 100,
        "is_transient": false});
    error(body, world, "100", message)
}

/// Reports the first violation. `blame_field_specs` does not say which event in the batch is
/// invalid, because the reference does not document an index.
pub(super) fn invalid(world: &SimulatorState, violation: &Violation) -> SimulatedOutcome {
    let (subcode, title) = match violation.kind {
        ViolationKind::TooOld => (Some(2_804_003), "Event Timestamp Too Old"),
        ViolationKind::Identity => (
            Some(2_804_050),
            "Insufficient Customer Information Parameters",
        ),
        _ => (None, "Invalid Event Parameter"),
    };
    let blamed: Vec<_> = violation
        .steps
        .iter()
        .filter_map(|step| match step {
            PathStep::Field(name) => Some(name),
            PathStep::Index(_) => None,
        })
        .collect();
    let sentence = violation.sentence();
    let mut body = json!({
        "message": "Invalid parameter", "type": "OAuthException", "code": 100,
        "is_transient": false, "error_user_title": title, "error_user_msg": sentence,
        "error_data": {"blame_field_specs": [blamed]},
    });
    if let Some(subcode) = subcode {
        body["error_subcode"] = json!(subcode);
    }
    let reason = subcode.map_or("100".to_owned(), |subcode| format!("100/{subcode}"));
    error(body, world, &reason, &sentence)
}

pub(super) fn poisoned(world: &SimulatorState, index: Option<usize>) -> SimulatedOutcome {
    let mut body = json!({
        "message": "Invalid parameter", "type": "OAuthException", "code": 100,
        "is_transient": false, "error_user_title": "Invalid Event Parameter",
        "error_user_msg": "An event was rejected by fault injection.",
    });
    if let Some(index) = index {
        let blamed = format!("data[{index}]");
        body["error_data"] = json!({"blame_field_specs": [[blamed]]});
    }
    error(
        body,
        world,
        "100",
        "An event was rejected by fault injection.",
    )
}

/// Adds the three usage headers, which every response has.
pub(super) fn with_usage(
    mut outcome: SimulatedOutcome,
    pixel: &str,
    usage: Usage,
) -> SimulatedOutcome {
    let Usage {
        percent,
        regain_minutes,
    } = usage;
    let counts = json!({"call_count": percent, "total_cputime": percent, "total_time": percent});
    let mut business = counts.clone();
    business["type"] = json!("ads_management");
    business["estimated_time_to_regain_access"] = json!(regain_minutes);
    let headers = [
        ("x-business-use-case-usage", json!({pixel: [business]})),
        ("x-app-usage", counts),
        ("x-ad-account-usage", json!({"acc_id_util_pct": percent})),
    ];
    for (name, value) in headers {
        let name = HeaderName::from_static(name);
        outcome.reply = outcome.reply.header(name, &value.to_string());
    }
    outcome
}

pub(super) fn with_version_warning(mut outcome: SimulatedOutcome) -> SimulatedOutcome {
    let name = HeaderName::from_static("x-ad-api-version-warning");
    let message = "The call has been auto-upgraded to a newer version.";
    outcome.reply = outcome.reply.header(name, message);
    outcome
}
