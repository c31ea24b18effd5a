//! `GET /api/v1/apps/{appId}/integrations/{network}` — returns an integration.

use super::health::load_health;
use super::shape::{IntegrationEnvelope, IntegrationOut, example};
use crate::body::JsonResponse;
use crate::caller::ReportCaller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::integration::Integration;
use tributary_domain::refusal::Refusal;
use tributary_store::IntegrationHealth;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/integrations/{network}", tag = "Integrations",
    operation_id = "getIntegration", summary = "Get an integration",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = String, Path, description = "`network_a` (Meta), `network_b` (Google Ads), \
            `network_c` (TikTok) or `network_d` (OpenAI Ads)."),
    ),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound, Code::NetworkNotFound]]))),
    responses((status = 200, description = "The integration.", body = inline(IntegrationEnvelope),
        headers(("ETag" = String)), example = json!({"data": example()})))
)]
pub(crate) async fn get(
    caller: ReportCaller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (one, health) = find(&state, &caller.authorized, &ids).await?;
    Ok(JsonResponse::ok(IntegrationOut::of(&one, &health)).with_etag(&one.tag()))
}

/// Finds the integration named in a path, with its health.
pub(super) async fn find(
    state: &ApiState,
    reader: &Authorized<AppsRead>,
    ids: &PathIds,
) -> Result<(Integration, IntegrationHealth), ApiError> {
    let found = state.store.integrations(reader, ids.app()?).await?;
    let network = ids.network()?;
    let one = found.into_iter().find(|one| one.network == network);
    let one = one.ok_or(Refusal::NetworkNotFound)?;
    let health = load_health(state, reader, &one).await?;
    Ok((one, health))
}
