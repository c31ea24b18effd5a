//! `POST /api/v1/apps/{appId}/web-events` — accepts a web event.
//!
//! 202 means that the event is durably stored, not that it is attributed.

use super::fields::{WebEventBody, WebEventRequest};
use super::request::read_event;
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
use tributary_domain::vocabulary::time::Timestamp;
use utoipa::ToSchema;

/// A stored event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accepted {
    event_id: String,
    /// Always `accepted`. Other outcomes are errors.
    status: &'static str,
    /// True if the same event was already stored.
    duplicate: bool,
    /// Time at which the event first arrived.
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
    post, path = "/api/v1/apps/{appId}/web-events", tag = "Web events",
    operation_id = "acceptWebEvent",
    summary = "Send a web event",
    description = "Requires `apps:write`, a live key and `webEvents.enabled`. `eventId` is the \
                   idempotency key: after a `retryable` error or no response, send the same \
                   `eventId` and payload again; the event is recorded only once. A different \
                   payload with the same `eventId` is rejected.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(WebEventBody), description = "The event.", example = json!({
        "eventId": "order-1001", "arClickId": "clk_…", "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "timestampMs": 1_760_000_000_000_i64, "eventType": "purchase", "revenue": 49.99, "currency": "USD",
        "sourceUrl": "https://shop.example.com/checkout"
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::WebEventsDisabled, Code::AppArchived, Code::AppNotFound,
        Code::OriginalTransactionUnavailable, Code::EventIdConflict, Code::ClickNotVerified,
        Code::TestClick, Code::ClickNetworkUnsupported, Code::OriginMismatch,
        Code::OriginalTransactionInvalid, Code::RefundExceedsPayment, Code::CurrencyMismatch
    ]]))),
    responses((status = 202, description = "The event is stored.",
        body = inline(AcceptedEnvelope), example = json!({
        "data": {"eventId": "order-1001", "status": "accepted", "duplicate": false,
                 "receivedAt": "2025-10-09T08:53:20.000Z"}
    })))
)]
pub(crate) async fn accept(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    request: WebEventRequest,
) -> Result<impl IntoResponse, ApiError> {
    let external_id = request.external_id.clone();
    let event = read_event(&state, caller.authorized.read_access(), ids, request).await?;
    let accepted = state.store.accept_web_event(event).await?;
    let (duplicate, received_at) = (accepted.is_duplicate, accepted.received_at);
    Ok(JsonResponse::accepted(Accepted::new(
        external_id,
        duplicate,
        received_at,
    )))
}
