//! `POST /api/v1/apps/{appId}/web-events` — a verified website event.
//!
//! Accepting is not attributing: 202 promises that the event is on disk, and nothing else.

use super::fields::{WebEventBody, WebEventRequest};
use crate::body::{Envelope, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use crate::time_text::rfc3339;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::AppsWrite;
use tributary_domain::event::web::WebEvent;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use utoipa::ToSchema;

/// An event that is on disk.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accepted {
    event_id: String,
    /// Always `accepted`: what is not is an error.
    status: &'static str,
    /// Whether the same event was here before.
    duplicate: bool,
    /// When it arrived, the first time.
    #[schema(format = "date-time")]
    received_at: String,
}

impl Accepted {
    fn new(event_id: String, duplicate: bool, received_at: Timestamp) -> Self {
        Self {
            event_id,
            status: "accepted",
            duplicate,
            received_at: rfc3339(received_at),
        }
    }
}

pub(crate) type AcceptedEnvelope = Envelope<Accepted>;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/web-events", tag = "Web events", operation_id = "acceptWebEvent",
    summary = "Send a verified website event",
    description = "Needs `apps:write`, a live key and `webEvents.enabled`. Repeat with the identical `eventId` and \
        payload after any answer that is `retryable`, or none: it is recorded once. Another payload under the same \
        `eventId` is refused for ever.",
    params(("appId" = String, Path, description = "The app's id.")),
    request_body(content = inline(WebEventBody), description = "The event.", example = json!({
        "eventId": "order-1001", "arClickId": "clk_…", "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "timestampMs": 1_760_000_000_000_i64, "eventType": "purchase", "revenue": 49.99, "currency": "USD",
        "sourceUrl": "https://shop.example.com/checkout"
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::WebEventsDisabled, Code::AppArchived, Code::AppNotFound,
        Code::OriginalTransactionUnavailable, Code::EventIdConflict, Code::ClickNotVerified,
        Code::ClickNetworkUnsupported, Code::OriginMismatch, Code::OriginalTransactionInvalid,
        Code::RefundExceedsPayment, Code::CurrencyMismatch
    ]]))),
    responses((status = 202, description = "On disk.", body = inline(AcceptedEnvelope), example = json!({
        "data": {"eventId": "order-1001", "status": "accepted", "duplicate": false,
                 "receivedAt": "2025-10-09T08:53:20.000Z"}
    })))
)]
pub(crate) async fn accept(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    sent: WebEventRequest,
) -> Result<impl IntoResponse, ApiError> {
    let app = state
        .read_cache
        .app(&state.store, caller.authorized.read_access(), ids.app()?)
        .await?;
    app.admit_web_events()?;
    let given_id = sent.external_id.clone();
    let accepted = state
        .store
        .accept_web_event(into_web_event(sent, app.id, &state))
        .await?;
    let (duplicate, received_at) = (accepted.is_duplicate, accepted.received_at);
    Ok(JsonResponse::accepted(Accepted::new(
        given_id,
        duplicate,
        received_at,
    )))
}

fn into_web_event(sent: WebEventRequest, app: AppId, state: &ApiState) -> WebEvent {
    let click = state
        .click_tokens
        .verify(&sent.click_text)
        .filter(|click| click.belongs_to(app))
        .map(|click| click.click);
    WebEvent {
        app,
        id: EventId::new(sent.occurred_at, state.runtime.random_bytes()),
        external_id: sent.external_id,
        click_text: sent.click_text,
        click,
        device: sent.device,
        occurred_at: sent.occurred_at,
        kind: sent.kind,
        amount: sent.amount,
        currency: sent.currency,
        origin: sent.source_url.origin(),
        source_url: sent.source_url.as_str().to_owned(),
        parent: sent.parent,
        email_sha256: sent.email_sha256,
        received_at: sent.received_at,
    }
}
