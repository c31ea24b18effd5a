//! `/api/v1/apps/{appId}/alert-webhook` — the alert URL and its signing secret.

use crate::body::{Envelope, JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::fields::{Fields, described_body, integer_in};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use crate::time_text::rfc3339;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use std::time::Duration;
use tributary_domain::access::AppsWrite;
use tributary_domain::app::App;
use tributary_domain::keyring::alert::{
    ALERT_SECRET_OVERLAP_HOURS_DEFAULT, ALERT_SECRET_OVERLAP_HOURS_MAX, AlertSecret,
    AlertSecretRotation, AlertSecrets, StoredAlertSecrets,
};
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_store::StoreError;
use utoipa::ToSchema;

/// The URL that alerts are posted to, and their signing secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AlertWebhookOut {
    /// The app's `alertWebhookUrl`. If null, alerts are off.
    url: Option<String>,
    /// Secret that alerts are signed with, in Standard Webhooks format. Each app has its own
    /// secret.
    signing_secret: String,
    /// Until this time, alerts are signed with the replaced secret, too. Null if there is none.
    #[schema(format = DateTime)]
    previous_valid_until: Option<String>,
}

type AlertWebhookEnvelope = Envelope<AlertWebhookOut>;

impl AlertWebhookOut {
    fn of(app: &App, secrets: &AlertSecrets) -> Self {
        Self {
            url: app
                .alert_webhook_url
                .as_ref()
                .map(|url| url.as_str().to_owned()),
            signing_secret: secrets.current.reveal(),
            previous_valid_until: secrets.previous.as_ref().map(|(_, end)| rfc3339(*end)),
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
                   of `id.timestamp.body`. During a rotation of the secret, the header has \
                   two signatures, separated by a space. A rotation of the server's `secret_key` \
                   does not change the secret. Requires `apps:write` and a live key.",
    params(("appId" = String, Path, description = "App id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::LiveOnly, Code::AppNotFound]]))),
    responses((status = 200, description = "The URL and the secret.",
        body = inline(AlertWebhookEnvelope),
        example = json!({"data": {
            "url": "https://alerts.example.com/tributary",
            "signingSecret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
            "previousValidUntil": null
        }})))
)]
pub(crate) async fn alert_webhook(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let reader = caller.authorized.read_access();
    let app = state.store.app(&reader, ids.app()?).await?;
    let secrets = shown_secrets(&state, app.id).await?;
    Ok(JsonResponse::ok(AlertWebhookOut::of(&app, &secrets)))
}

described_body! {
    /// How to rotate an app's alert secret.
    AlertSecretRotationFields("AlertSecretRotationFields") = read_overlap
}

/// Reads how long the replaced secret stays valid.
fn read_overlap(fields: &mut Fields<'_>) -> Duration {
    let hours = fields.optional(
        "overlapHours",
        integer_in(0..=i64::from(ALERT_SECRET_OVERLAP_HOURS_MAX)).about(
            "Hours for which alerts are signed with the replaced secret, too; 0 ends it at once. \
             Default: 24.",
        ),
    );
    let hours = hours.and_then(|hours| u64::try_from(hours).ok());
    let hours = hours.unwrap_or_else(|| u64::from(ALERT_SECRET_OVERLAP_HOURS_DEFAULT));
    Duration::from_hours(hours)
}

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/alert-webhook/rotate", tag = "Apps",
    operation_id = "rotateAlertSecret", summary = "Rotate the alert webhook's secret",
    description = "Creates a new secret. Until `overlapHours` have passed, alerts are signed with \
                   the replaced secret, too, so that you can change the receiver without losing an \
                   alert. While a replaced secret is valid, another rotation is refused, unless \
                   `overlapHours` is 0, which ends all former secrets. Requires `apps:write` and \
                   a live key.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(AlertSecretRotationFields), description = "Overlap.",
        example = json!({"overlapHours": 24})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::SecretRotated
    ]]))),
    responses((status = 201, description = "The URL and the new secret.",
        body = inline(AlertWebhookEnvelope),
        example = json!({"data": {
            "url": "https://alerts.example.com/tributary",
            "signingSecret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
            "previousValidUntil": "2026-01-02T00:00:00.000Z"
        }})))
)]
pub(crate) async fn rotate(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let overlap = body.read(read_overlap)?;
    let writer = &caller.authorized;
    let app = state.store.app(&writer.read_access(), ids.app()?).await?;
    let of = (writer.organization(), app.id);
    let seal = |secret: &AlertSecret| {
        let nonce = state.runtime.random_bytes();
        state.keyring.seal_alert_secret(of, nonce, secret)
    };
    let derived = state.keyring.alert_secret(of, None);
    let successor = AlertSecret::from_bytes(state.runtime.random_bytes());
    let rotation = AlertSecretRotation {
        derived: seal(&derived.map_err(|_| unreadable(app.id))?),
        successor: seal(&successor),
        overlap,
    };
    let origin = caller.origin(&state);
    let rotated = state
        .store
        .rotate_alert_secret(writer, app.id, rotation, origin);
    let secrets = open(&state, of, &rotated.await?)?;
    let location = format!("/api/v1/apps/{}/alert-webhook", app.id);
    Ok(JsonResponse::created(
        AlertWebhookOut::of(&app, &secrets),
        &location,
    ))
}

/// Returns an app's secrets. Stores a derived one first, so that it does not change after it was
/// shown.
async fn shown_secrets(state: &ApiState, app: AppId) -> Result<AlertSecrets, ApiError> {
    let (organization, mut stored) = state.store.alert_secrets(app).await?;
    let of = (organization, app);
    if stored.is_none() {
        let derived = state.keyring.alert_secret(of, None);
        let derived = derived.map_err(|_| ApiError::from(unreadable(app)))?;
        let nonce = state.runtime.random_bytes();
        let sealed = state.keyring.seal_alert_secret(of, nonce, &derived);
        state.store.keep_alert_secret(app, sealed).await?;
        (_, stored) = state.store.alert_secrets(app).await?;
    }
    let stored = stored.ok_or_else(|| ApiError::from(unreadable(app)))?;
    open(state, of, &stored)
}

fn open(
    state: &ApiState,
    of: (OrganizationId, AppId),
    stored: &StoredAlertSecrets,
) -> Result<AlertSecrets, ApiError> {
    let opened = state
        .keyring
        .alert_secrets(of, Some(stored), state.runtime.now());
    opened.map_err(|_| unreadable(of.1).into())
}

fn unreadable(app: AppId) -> StoreError {
    StoreError::corrupt("alert_secrets", "sealed", app)
}
