//! `GET /api/v1/apps/{appId}` — returns an app.

use super::shape::{AppEnvelope, AppOut, example};
use crate::body::JsonResponse;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}", tag = "Apps", operation_id = "getApp",
    summary = "Get an app",
    params(("appId" = String, Path, description = "App id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The app.", body = inline(AppEnvelope),
        headers(("ETag" = String)), example = json!({"data": example()})))
)]
pub(crate) async fn get(
    caller: Caller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let app = state.store.app(&caller.authorized, ids.app()?).await?;
    let tag = app.tag();
    Ok(JsonResponse::ok(AppOut::of(app, &state)).with_etag(&tag))
}
