//! `GET /api/v1/apps/{appId}/skan` — returns the current configuration.

use super::shape::{SkanEnvelope, answer, example};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/skan", tag = "Conversion value", operation_id = "getSkan",
    summary = "Get the conversion-value configuration",
    description = "If the app was never configured, returns a disabled document with version 0 and \
                   no windows.",
    params(("appId" = String, Path, description = "App id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The configuration.", body = inline(SkanEnvelope),
        headers(("ETag" = String)), example = json!(example())))
)]
pub(crate) async fn get(
    caller: Caller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    Ok(answer(
        &state.store.skan(&caller.authorized, ids.app()?).await?,
    ))
}
