//! `DELETE /api/v1/keys/{keyId}` — revokes an API key.

use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::http::StatusCode;
use tributary_domain::access::KeysWrite;

#[utoipa::path(
    delete, path = "/api/v1/keys/{keyId}", tag = "Keys", operation_id = "revokeKey",
    summary = "Revoke a key",
    description = "The key ends at once, on all nodes within a second, and cannot be restored. A \
                   key may revoke itself. Revoking a key again changes nothing. Requires \
                   `keys:write`, and a key that can do as much as the revoked one.",
    params(("keyId" = String, Path, description = "Key id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::KeyNotFound, Code::KeyExceedsOwn]]))),
    responses((status = 204, description = "The key is revoked."))
)]
pub(crate) async fn delete(
    caller: Caller<KeysWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<StatusCode, ApiError> {
    let (key, origin) = (ids.key()?, caller.origin(&state));
    let revoked = state
        .store
        .revoke_managed_key(&caller.authorized, key, origin);
    revoked.await?;
    Ok(StatusCode::NO_CONTENT)
}
