//! `POST /api/v1/apps/{appId}/held/{deviceId}/decision` — releases or rejects a held install.

use super::fields::{DecisionFields, read_decision};
use super::shape::{HeldEnvelope, HeldOut, example};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::InstallsReview;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/held/{deviceId}/decision", tag = "Held installs",
    operation_id = "decideHeld",
    summary = "Release or reject a held install",
    description = "Releasing moves the install and its revenue to the normal figures and forwards \
                   its events; an event older than a network's window is skipped there as \
                   `too_old`. A rejected install counts nowhere. A repeated decision changes \
                   nothing. A decision can be changed until an event of the install was sent to a \
                   network; after that, rejecting gets 409 `install_forwarded`. Affects only the \
                   key's environment. Requires `apps:write`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("deviceId" = String, Path, description = "Device id that the SDK sends as `deviceId`."),
    ),
    request_body(content = inline(DecisionFields), description = "The decision.",
        example = json!({"decision": "release"})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::AppNotFound, Code::DeviceNotFound, Code::InstallNotHeld, Code::InstallForwarded
    ]]))),
    responses((status = 200, description = "The install after the decision.",
        body = inline(HeldEnvelope),
        example = json!({"data": example_released()})))
)]
pub(crate) async fn decide(
    caller: Caller<InstallsReview>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let decision = body.read_whole(read_decision)?;
    let (app, device, origin) = (ids.app()?, ids.device()?, caller.origin(&state));
    let decided = state
        .store
        .review_install(&caller.authorized, app, device, decision, origin)
        .await?;
    Ok(JsonResponse::ok(HeldOut::from(decided)))
}

fn example_released() -> serde_json::Value {
    let mut example = example();
    example["hold"] = serde_json::json!({
        "state": "released",
        "heldAt": "2026-01-01T00:00:00.000Z",
        "decidedAt": "2026-01-02T09:00:00.000Z",
        "decidedBy": {"kind": "key", "id": "key_01k9z3v7q8e4r9m2x5c6b7n8d3"}
    });
    example
}
