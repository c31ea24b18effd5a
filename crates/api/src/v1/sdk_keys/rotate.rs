//! `POST /api/v1/apps/{appId}/sdk-keys/rotate` — replaces the current SDK key of an environment.

use super::shape::{SdkKeysEnvelope, SdkKeysOut, example};
use super::{SdkKeyRotationFields, read_rotation};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;
use tributary_domain::access::key::KeyKind;
use tributary_domain::app::SdkKeyRotation;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/sdk-keys/rotate", tag = "Apps",
    operation_id = "rotateSdkKey", summary = "Rotate an SDK key",
    description = "Creates a new key for one environment. The replaced key stays valid for \
                   `overlapDays`, because installed apps carry it, and counts as the same app. At \
                   most 5 keys of an environment are valid at a time. Requires `apps:write` and a \
                   live key.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(SdkKeyRotationFields), description = "Environment and overlap.",
        example = json!({"environment": "live", "overlapDays": 90})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::TooManyKeys
    ]]))),
    responses((status = 201, description = "All keys of the app.", body = inline(SdkKeysEnvelope),
        example = json!({"data": example()})))
)]
pub(crate) async fn rotate(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let (environment, overlap) = body.read_whole(read_rotation)?;
    let app = ids.app()?;
    let key = state.runtime.new_key(KeyKind::Sdk, environment);
    let rotation = SdkKeyRotation {
        environment,
        successor: key.reveal().to_owned(),
        overlap,
    };
    let (writer, origin) = (&caller.authorized, caller.origin(&state));
    let rotated = state.store.rotate_sdk_key(writer, app, rotation, origin);
    rotated.await?;
    let keys = SdkKeysOut::load(&state, &writer.read_access(), app).await?;
    let location = format!("/api/v1/apps/{app}/sdk-keys");
    Ok(JsonResponse::created(keys, &location))
}
