//! `POST /api/track/erase` — erases a device at its user's request.

use super::body::TrackBody;
use super::caller::SdkCaller;
use crate::body::{Envelope, JsonResponse};
use crate::error::{ApiError, Code};
use crate::fields::{Fields, described_body, text_as};
use crate::openapi::errors::{SDK_BODY, SDK_KEY};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::Actor;
use tributary_domain::audit::AuditContext;
use tributary_domain::device::DeviceKey;
use tributary_domain::erasure::{ERASE_TOKEN_CHARS, EraseToken, pseudonym};
use tributary_domain::refusal::Refusal;
use tributary_store::{EraseRequest, StoreError};
use utoipa::ToSchema;

/// Response to `erase`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Erased")]
struct ErasedOut {
    /// Always `erased`.
    status: &'static str,
}

type ErasedEnvelope = Envelope<ErasedOut>;

described_body! {
    /// The device to erase, and the proof that its user asks for it.
    EraseFields("Erase") = read
}

#[utoipa::path(
    post, path = "/api/track/erase", tag = "SDK", operation_id = "eraseOwnDevice",
    summary = "Erase the user's own device",
    description = "Erases the device as `DELETE /api/v1/apps/{appId}/devices/{deviceId}` does. The \
                   token must be the first one that the device sent to `configure`. The request \
                   may be repeated: an erased device gives the same response. This also works if \
                   the SDK is disabled. The body may also be sent as `text/plain`, and the key as \
                   `?key=`.",
    security(("sdkKey" = [])),
    request_body(content = inline(EraseFields), description = "The device.", example = json!({
        "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "eraseToken": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
    })),
    extensions(("x-errors" = json!([SDK_KEY, SDK_BODY, [Code::InvalidEraseToken]]))),
    responses((status = 200, description = "The device is erased.",
        body = inline(ErasedEnvelope), example = json!({"data": {"status": "erased"}})))
)]
pub(crate) async fn erase(
    caller: SdkCaller,
    State(state): State<ApiState>,
    body: TrackBody,
) -> Result<impl IntoResponse, ApiError> {
    let (device, token) = body.read(read)?;
    let request = EraseRequest {
        organization: caller.app.organization,
        app: caller.app.id,
        environment: caller.environment,
        proof: token.proof(&device),
        device,
        pseudonym: pseudonym(state.runtime.random_bytes()),
        origin: AuditContext {
            environment: caller.environment,
            // Without the address, which is personal data of the user who is erased.
            ..state.runtime.origin(Actor::DeviceUser, None, None)
        },
    };
    match state.store.erase_own_device(request).await {
        // The device was erased before, and the response was lost.
        Ok(()) | Err(StoreError::Refused(Refusal::DeviceNotFound)) => {
            Ok(JsonResponse::ok(ErasedOut { status: "erased" }))
        }
        Err(error) => Err(error.into()),
    }
}

fn read(fields: &mut Fields<'_>) -> Option<(DeviceKey, EraseToken)> {
    let device = fields.required("deviceId", text_as(DeviceKey::parse));
    let token = text_as(EraseToken::parse)
        .size(ERASE_TOKEN_CHARS..=ERASE_TOKEN_CHARS)
        .about("The token that the device sent to `configure`.");
    let token = fields.required("eraseToken", token);
    Some((device?, token?))
}
