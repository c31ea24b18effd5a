//! `POST /api/v1/apps/{appId}/integrations/{network}/resume` — lets a paused integration go on.

use super::health::load_health;
use super::shape::{IntegrationEnvelope, IntegrationOut, example};
use crate::body::JsonResponse;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::if_match::IfMatch;
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/integrations/{network}/resume", tag = "Integrations",
    operation_id = "resumeIntegration", summary = "Let a paused integration go on",
    description = "For when the cause was mended at the network: deliveries that were kept are sent, one at first. A \
                   new credential or setting resumes by itself, and one that is not paused stays as it is. Switching \
                   on what is switched off is a change of `enabled`. Needs `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("network" = String, Path, description = "`network_a` … `network_d`."),
        ("If-Match" = Option<String>, Header, description = "The ETag that the change builds on."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::NetworkNotFound, Code::VersionConflict
    ]]))),
    responses((status = 200, description = "The integration as it is now.", body = inline(IntegrationEnvelope),
        headers(("ETag" = String)), example = json!({"data": example()})))
)]
pub(crate) async fn resume(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (app, network) = (ids.app()?, ids.network()?);
    let origin = caller.origin(&state);
    let resumed = state
        .store
        .resume_integration(&caller.authorized, app, network, precondition, origin)
        .await?;
    let health = load_health(&state, &caller.authorized.read_access(), &resumed).await?;
    Ok(JsonResponse::ok(IntegrationOut::of(&resumed, &health)).with_etag(&resumed.tag()))
}
