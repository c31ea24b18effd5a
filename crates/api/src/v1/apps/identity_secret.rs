//! `POST /api/v1/apps/{appId}/identity/secret` — creates an identity secret and shows it once.

use crate::body::{Envelope, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::if_match::IfMatch;
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::sealing::{APP_SECRET_SCOPE, AppSealer};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::AppsWrite;
use tributary_domain::app::{AppChange, AppSecret};
use tributary_domain::device::identity_secret;
use utoipa::ToSchema;

/// New identity secret.
#[derive(Serialize, ToSchema)]
struct IdentitySecretOut {
    /// The secret, shown only once. The app's backend signs user ids with it.
    secret: String,
}

type IdentitySecretEnvelope = Envelope<IdentitySecretOut>;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/identity/secret", tag = "Apps",
    operation_id = "makeIdentitySecret", summary = "Create an identity secret",
    description = "The app's backend signs user ids with this secret: HMAC-SHA256 over the user \
                   id, with the whole text of the secret as the key, in hexadecimal digits. The \
                   SDK sends the signature as `userIdSignature`. The secret is shown only once. \
                   The previous secret remains valid until the next rotation; to revoke a leaked \
                   secret at once, create two secrets. Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("If-Match" = Option<String>, Header, description = "ETag of the app version to change."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::VersionConflict
    ]]))),
    responses((status = 201, description = "The secret.", body = inline(IdentitySecretEnvelope),
        example = json!({"data": {
            "secret": "idsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo"
        }})))
)]
pub(crate) async fn make(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let app = ids.app()?;
    let secret = identity_secret(state.runtime.random_bytes());
    let sealer = AppSealer::new(&state, caller.authorized.organization(), app);
    let sealed = sealer.seal(APP_SECRET_SCOPE, AppSecret::Identity.as_str(), &secret);
    let (writer, origin) = (&caller.authorized, caller.origin(&state));
    let rotation = AppChange::rotation(AppSecret::Identity, sealed);
    let stored = state
        .store
        .update_app(writer, app, rotation, precondition, origin);
    stored.await?;
    let location = format!("/api/v1/apps/{app}");
    Ok(JsonResponse::created(
        IdentitySecretOut { secret },
        &location,
    ))
}
