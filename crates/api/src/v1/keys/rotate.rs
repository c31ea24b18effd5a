//! `POST /api/v1/keys/{keyId}/rotate` — replaces an API key by a successor, which is shown once.

use super::shape::{KeyEnvelope, KeyOut, created_example};
use super::{RotationFields, read_rotation};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::KeysWrite;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::key_management::KeyRotation;
use tributary_domain::vocabulary::id::KeyId;

#[utoipa::path(
    post, path = "/api/v1/keys/{keyId}/rotate", tag = "Keys", operation_id = "rotateKey",
    summary = "Rotate a key",
    description = "Creates a successor with the same name, permission and limits, which is in the \
                   response only. The old key expires after `overlapHours`. A key may rotate itself. \
                   A key that has ended cannot be rotated, and no key twice. Requires `keys:write`, \
                   and a key that can do as much as the rotated one and lives as long as the \
                   successor.",
    params(("keyId" = String, Path, description = "Key id.")),
    request_body(content = inline(RotationFields), description = "Overlap and expiry.",
        example = json!({"overlapHours": 48})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::KeyNotFound, Code::KeyExceedsOwn, Code::KeyEnded, Code::KeyRotated, Code::TooManyKeys
    ]]))),
    responses((status = 201, description = "The successor.", body = inline(KeyEnvelope),
        headers(("Location" = String, description = "Path of the successor.")),
        example = json!({"data": created_example()})))
)]
pub(crate) async fn rotate(
    caller: Caller<KeysWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let (overlap, expiry) = body.read(read_rotation)?;
    // Keys never change their environment, so this read cannot race with the rotation.
    let reader = caller.authorized.read_access();
    let old = state.store.key(&reader, ids.key()?).await?;
    let text = state.runtime.new_key(KeyKind::Private, old.environment);
    let rotation = KeyRotation {
        successor: KeyId::new(state.runtime.now(), state.runtime.random_bytes()),
        hint: text.hint().to_owned(),
        overlap,
        expiry,
    };
    let (digest, origin) = (text.digest(), caller.origin(&state));
    let rotated = state
        .store
        .rotate_key(&caller.authorized, old.id, rotation, digest, origin);
    let key = rotated.await?;
    let location = format!("/api/v1/keys/{}", key.id);
    let created = KeyOut::created(key, &text, &state);
    Ok(JsonResponse::created(created, &location))
}
