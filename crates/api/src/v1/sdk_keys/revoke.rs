//! `POST /api/v1/apps/{appId}/sdk-keys/revoke` — ends a replaced SDK key at once.

use super::shape::{SdkKeysEnvelope, SdkKeysOut, example};
use super::{SdkKeyRevocationFields, read_revocation};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/sdk-keys/revoke", tag = "Apps",
    operation_id = "revokeSdkKey", summary = "Revoke a replaced SDK key",
    description = "Installed apps that carry the key can no longer send data. The current key ends \
                   only by a rotation. Revoking a key again changes nothing. Requires `apps:write` \
                   and a live key.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(SdkKeyRevocationFields), description = "The key.",
        example = json!({"key": "pk_live_1Aa2Bb3Cc4Dd5Ee6Ff7Gg8Hh9Ii0Jj1Kk2Ll3Mm4Nn5"})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::KeyNotFound
    ]]))),
    responses((status = 200, description = "All keys of the app.", body = inline(SdkKeysEnvelope),
        example = json!({"data": example()})))
)]
pub(crate) async fn revoke(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let key = body.read_whole(read_revocation)?;
    let app = ids.app()?;
    let (writer, origin) = (&caller.authorized, caller.origin(&state));
    let revoked = state.store.revoke_sdk_key(writer, app, key, origin);
    revoked.await?;
    let keys = SdkKeysOut::load(&state, &writer.read_access(), app).await?;
    Ok(JsonResponse::ok(keys))
}
