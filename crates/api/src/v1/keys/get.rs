//! `GET /api/v1/keys/{keyId}` — returns an API key's settings.

use super::shape::{KeyEnvelope, KeyOut, example};
use crate::body::JsonResponse;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::resource::OrganizationRead;

#[utoipa::path(
    get, path = "/api/v1/keys/{keyId}", tag = "Keys", operation_id = "getKey",
    summary = "Get a key",
    description = "Who created the key, who answers for it, what it may do, and when and from which \
                   address range it was last used. Requires `apps:read`.",
    params(("keyId" = String, Path, description = "Key id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::KeyNotFound]]))),
    responses((status = 200, description = "The key.", body = inline(KeyEnvelope),
        example = json!({"data": example()})))
)]
pub(crate) async fn get(
    caller: Caller<OrganizationRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let key = state.store.key(&caller.authorized, ids.key()?).await?;
    Ok(JsonResponse::ok(KeyOut::of(key, &state)))
}
