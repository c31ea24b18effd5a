//! `POST /api/v1/apps/{appId}/billing/{provider}/secret` — creates a webhook secret and shows it
//! once.

use crate::body::{Envelope, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::if_match::IfMatch;
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::sealing::{APP_SECRET_SCOPE, AppSealer};
use crate::state::ApiState;
use crate::time_text::rfc3339;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::AppsWrite;
use tributary_domain::app::{AppChange, AppSecret, BillingProvider};
use tributary_domain::billing::PREVIOUS_SECRET_VALID;
use tributary_domain::billing::signature::standard_secret;
use utoipa::ToSchema;

/// New webhook secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MadeSecretOut {
    provider: &'static str,
    /// The secret, shown only once. Paste it into the provider's webhook settings.
    secret: String,
    /// The previous secret remains valid until this time.
    #[schema(format = DateTime)]
    previous_valid_until: String,
}

type SecretEnvelope = Envelope<MadeSecretOut>;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/billing/{provider}/secret", tag = "Billing",
    operation_id = "makeBillingSecret", summary = "Create a billing provider's secret",
    description = "The secret is shown only once. The previous secret remains valid for 24 hours, \
                   so that you can update the provider without losing notifications. \
                   `PATCH` on the app sets a secret that you choose, with `keepPrevious` for the \
                   same overlap. For `revenuecat`, the secret is \
                   the value of the `Authorization` header, as for `adapty` and `qonversion`; for \
                   `superwall`, it is the signing secret. Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("provider" = String, Path,
            description = "`revenuecat`, `superwall`, `adapty` or `qonversion`. The App Store has \
                           no secret, and Stripe issues its own."),
        ("If-Match" = Option<String>, Header, description = "ETag of the app version to change."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::NotFound, Code::VersionConflict
    ]]))),
    responses((status = 201, description = "The secret.", body = inline(SecretEnvelope),
        example = json!({"data": {
            "provider": "superwall",
            "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
            "previousValidUntil": "2026-01-02T00:00:00.000Z"
        }})))
)]
pub(crate) async fn make(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (app, provider) = (ids.app()?, ids.provider()?);
    if !provider.has_created_secret() {
        return Err(ApiError::new(Code::NotFound, without_secret(provider)));
    }
    let secret = standard_secret(state.runtime.random_bytes());
    let sealer = AppSealer::new(&state, caller.authorized.organization(), app);
    let field = AppSecret::Billing(provider).as_str();
    let sealed = sealer.seal(APP_SECRET_SCOPE, field, &secret);
    let origin = caller.origin(&state);
    let until = origin.at.plus(PREVIOUS_SECRET_VALID);
    let (writer, rotation) = (
        &caller.authorized,
        AppChange::rotation(AppSecret::Billing(provider), sealed),
    );
    let stored = state
        .store
        .update_app(writer, app, rotation, precondition, origin);
    stored.await?;
    let location = format!("/api/v1/apps/{app}/billing");
    let made = MadeSecretOut {
        provider: provider.as_str(),
        secret,
        previous_valid_until: rfc3339(until),
    };
    Ok(JsonResponse::created(made, &location))
}

/// Tells why no secret can be created for a provider.
const fn without_secret(provider: BillingProvider) -> &'static str {
    if provider.issues_secret() {
        "This provider issues its secret. Set it with PATCH on the app."
    } else {
        "This provider has no secret; it signs notifications with certificates."
    }
}
