//! `GET /api/v1/apps/{appId}/cost-sources/{network}` — returns a cost source.

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
use tributary_domain::access::AppsRead;
use tributary_domain::refusal::Refusal;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/cost-sources/{network}", tag = "Analytics",
    operation_id = "getCostSource", summary = "Get a cost source",
    description = "The ETag changes with the settings and credentials, not with a pull. Requires \
                   `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = String, Path, description = "`network_a` (Meta), `network_b` (Google Ads) or \
            `network_c` (TikTok)."),
    ),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound, Code::NetworkNotFound]]))),
    responses((status = 200, description = "The cost source.", body = inline(CostSourceEnvelope),
        headers(("ETag" = String)), example = json!({"data": example()})))
)]
pub(crate) async fn get(
    caller: Caller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (app, network) = (ids.app()?, reporting_network(&ids)?);
    let found = state.store.cost_sources(&caller.authorized, app).await?;
    let one = found.into_iter().find(|one| one.network == network);
    let one = one.ok_or(Refusal::NetworkNotFound)?;
    Ok(JsonResponse::ok(CostSourceOut::from(&one)).with_etag(&one.tag()))
}
