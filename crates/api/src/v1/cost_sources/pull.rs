//! `POST /api/v1/apps/{appId}/cost-sources/{network}/pull` — imports costs now.

use super::reporting_network;
use super::shape::{CostSourceEnvelope, CostSourceOut, example};
use crate::body::JsonResponse;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/cost-sources/{network}/pull", tag = "Analytics",
    operation_id = "pullCostSource", summary = "Import costs now",
    description = "Makes the next pull due at once, even after the network refused the last one. \
                   The pull starts within seconds; `lastPullAt` changes when it has ended. Changes \
                   nothing while a pull runs, in the five minutes after one, and during a longer \
                   wait that the network asked for: `nextPullAt` shows when the next pull is due. \
                   Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = String, Path, description = "`network_a` (Meta), `network_b` (Google Ads) or \
            `network_c` (TikTok)."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::ValidationFailed, Code::LiveOnly, Code::AppNotFound, Code::NetworkNotFound
    ]]))),
    responses((status = 200, description = "The cost source.", body = inline(CostSourceEnvelope),
        headers(("ETag" = String)), example = json!({"data": example()})))
)]
pub(crate) async fn pull(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (app, network) = (ids.app()?, reporting_network(&ids)?);
    let origin = caller.origin(&state);
    let due = state
        .store
        .pull_cost_source(&caller.authorized, app, network, origin)
        .await?;
    Ok(JsonResponse::ok(CostSourceOut::from(&due)).with_etag(&due.tag()))
}
