//! `GET /api/v1/apps/{appId}/alert-webhook` — where alerts go, and how to check that they are ours.

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
use utoipa::ToSchema;

/// What secrets of Standard Webhooks begin with.
const PREFIX: &str = "whsec_";

/// Where alerts go, and how to check that they are ours.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AlertWebhookOut {
    /// As `alertWebhookUrl` of the app says; null: alerts go nowhere.
    url: Option<String>,
    /// The secret that alerts are signed with, in the form of Standard Webhooks. It belongs to the app alone.
    signing_secret: String,
}

type AlertWebhookEnvelope = Envelope<AlertWebhookOut>;

impl AlertWebhookOut {
    fn of(app: &App, state: &ApiState) -> Self {
        let secret = state.keyring.alert_secret(app.id);
        Self {
            url: app
                .alert_webhook_url
                .as_ref()
                .map(|url| url.as_str().to_owned()),
            signing_secret: format!("{PREFIX}{}", BASE64.encode(secret)),
        }
    }
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/alert-webhook", tag = "Apps", operation_id = "getAlertWebhook",
    summary = "Read how alerts are signed",
    description = "Alerts are posted to the app's `alertWebhookUrl` when an integration pauses, many deliveries fail or \
                   exchange rates grow old, signed as Standard Webhooks has it: `webhook-id`, `webhook-timestamp`, \
                   `webhook-signature: v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`. The secret follows from \
                   the server's own `secret_key`. Needs `apps:write` and a live key, since it is a secret.",
    params(("appId" = String, Path, description = "The app's id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::LiveOnly, Code::AppNotFound]]))),
    responses((status = 200, description = "The address and the secret.", body = inline(AlertWebhookEnvelope),
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
    Ok(JsonResponse::ok(AlertWebhookOut::of(&app, &state)))
}
