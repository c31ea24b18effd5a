//! `GET /api/v1/apps/{appId}/alert-webhook` — returns the alert URL and its signing secret.

use crate::body::{Envelope, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use tributary_domain::access::AppsWrite;
use tributary_domain::app::App;
use tributary_domain::keyring::alert::AlertSecret;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::StoreError;
use utoipa::ToSchema;

/// Prefix of Standard Webhooks secrets.
const PREFIX: &str = "whsec_";

/// The URL that alerts are posted to, and their signing secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AlertWebhookOut {
    /// The app's `alertWebhookUrl`. If null, alerts are off.
    url: Option<String>,
    /// Secret that alerts are signed with, in Standard Webhooks format. Each app has its own
    /// secret.
    signing_secret: String,
}

type AlertWebhookEnvelope = Envelope<AlertWebhookOut>;

impl AlertWebhookOut {
    fn of(app: &App, secret: &AlertSecret) -> Self {
        Self {
            url: app
                .alert_webhook_url
                .as_ref()
                .map(|url| url.as_str().to_owned()),
            signing_secret: format!("{PREFIX}{}", BASE64.encode(secret.as_bytes())),
        }
    }
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/alert-webhook", tag = "Apps",
    operation_id = "getAlertWebhook",
    summary = "Get the alert webhook",
    description = "Alerts are posted to the app's `alertWebhookUrl` when an integration pauses, \
                   many deliveries fail, or exchange rates are stale. They are signed according to \
                   Standard Webhooks, with the headers `webhook-id`, `webhook-timestamp` and \
                   `webhook-signature`. The signature is `v1,` followed by the base64 HMAC-SHA256 \
                   of `id.timestamp.body`. The secret stays the same, also after a rotation of the \
                   server's `secret_key`. Requires `apps:write` and a live key.",
    params(("appId" = String, Path, description = "App id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::LiveOnly, Code::AppNotFound]]))),
    responses((status = 200, description = "The URL and the secret.",
        body = inline(AlertWebhookEnvelope),
        example = json!({"data": {
            "url": "https://alerts.example.com/tributary",
            "signingSecret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
        }})))
)]
pub(crate) async fn alert_webhook(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let reader = caller.authorized.read_access();
    let app = state.store.app(&reader, ids.app()?).await?;
    let secret = shown_secret(&state, app.id).await?;
    Ok(JsonResponse::ok(AlertWebhookOut::of(&app, &secret)))
}

/// Returns an app's secret, and stores it, so that it never changes after it was shown.
async fn shown_secret(state: &ApiState, app: AppId) -> Result<AlertSecret, ApiError> {
    let (organization, stored) = state.store.alert_secret(app).await?;
    let of = (organization, app);
    let sealed = if let Some(sealed) = stored {
        sealed
    } else {
        let secret = state.keyring.alert_secret(of, None);
        let secret = secret.map_err(|_| ApiError::from(unreadable(app)))?;
        let nonce = state.runtime.random_bytes();
        let sealed = state.keyring.seal_alert_secret(of, nonce, &secret);
        state.store.keep_alert_secret(app, sealed).await?
    };
    let secret = state.keyring.alert_secret(of, Some(&sealed));
    secret.map_err(|_| unreadable(app).into())
}

fn unreadable(app: AppId) -> StoreError {
    StoreError::corrupt("alert_secrets", "sealed", app)
}
