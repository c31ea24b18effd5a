//! `POST /api/v1/apps/{appId}/integrations/{network}/resume` — resumes a paused integration.

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
    operation_id = "resumeIntegration", summary = "Resume a paused integration",
    description = "Use this after fixing the cause of the pause on the network's side. Pending \
                   deliveries are then sent, starting with a single one. Changing a credential or \
                   setting resumes the integration automatically. An integration that is not \
                   paused is unchanged. To enable a disabled integration, change `enabled`. \
                   Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = String, Path, description = "`network_a` (Meta), `network_b` (Google Ads), \
            `network_c` (TikTok) or `network_d` (OpenAI Ads)."),
        ("If-Match" = Option<String>, Header, description = "ETag of the version to change."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::NetworkNotFound, Code::VersionConflict
    ]]))),
    responses((status = 200, description = "The integration.", body = inline(IntegrationEnvelope),
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
