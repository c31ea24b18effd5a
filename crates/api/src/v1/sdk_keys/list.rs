//! `GET /api/v1/apps/{appId}/sdk-keys` — lists an app's SDK keys.

use super::shape::{SdkKeysEnvelope, SdkKeysOut, example};
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
    get, path = "/api/v1/apps/{appId}/sdk-keys", tag = "Apps", operation_id = "listSdkKeys",
    summary = "List SDK keys",
    description = "The current key of each environment, and those that it replaced, with their end \
                   and last use. A replaced key that is no longer used can be revoked. Requires \
                   `apps:read`.",
    params(("appId" = String, Path, description = "App id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The keys.", body = inline(SdkKeysEnvelope),
        example = json!({"data": example()})))
)]
pub(crate) async fn list(
    caller: Caller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let keys = SdkKeysOut::load(&state, &caller.authorized, ids.app()?).await?;
    Ok(JsonResponse::ok(keys))
}
