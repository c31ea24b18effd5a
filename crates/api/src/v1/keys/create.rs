//! `POST /api/v1/keys` — creates an API key and shows it once.

use super::NewKeyFields;
use super::shape::{KeyEnvelope, KeyOut, created_example};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::fields::key::read;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::KeysWrite;
use tributary_store::NewKey;

#[utoipa::path(
    post, path = "/api/v1/keys", tag = "Keys", operation_id = "createKey",
    summary = "Create a key",
    description = "The key is in the response only. It can do no more than the key that makes the \
                   request, and lives no longer: otherwise the error is `key_exceeds_own`, with the \
                   fields in `details`. It belongs to the same member, and ends when the member is \
                   removed. Requires `keys:write`.",
    request_body(content = inline(NewKeyFields), description = "The key.", example = json!({
        "name": "Warehouse", "permission": "read_only", "addresses": ["192.0.2.0/24"]
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::KeyExceedsOwn, Code::TooManyKeys
    ]]))),
    responses((status = 201, description = "The key.", body = inline(KeyEnvelope),
        headers(("Location" = String, description = "Path of the key.")),
        example = json!({"data": created_example()})))
)]
pub(crate) async fn create(
    caller: Caller<KeysWrite>,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let draft = body.read_whole(read)?;
    let organization = caller.authorized.organization();
    let (key, text) = state.runtime.drafted_key(organization, draft);
    let digest = text.digest();
    let origin = caller.origin(&state);
    let key = state
        .store
        .create_key(NewKey { key, digest }, origin)
        .await?;
    let location = format!("/api/v1/keys/{}", key.id);
    let created = KeyOut::created(key, &text, &state);
    Ok(JsonResponse::created(created, &location))
}
