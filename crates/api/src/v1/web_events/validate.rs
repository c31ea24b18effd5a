//! `POST /api/v1/apps/{appId}/web-events/validate` — says what a web event would cause.
//!
//! The checks are those of `web-events`, in the same order. Nothing is stored.

use super::fields::{WebEventBody, WebEventRequest};
use super::request::read_event;
use super::shape::{ValidatedEnvelope, ValidatedWebEvent, example};
use crate::body::JsonResponse;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::WebEventsValidate;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/web-events/validate", tag = "Web events",
    operation_id = "validateWebEvent",
    summary = "Try out a web event",
    description = "Checks an event like `web-events`, with the same errors, and returns what would \
                   be recorded and forwarded, and which events of other sources would stop \
                   counting. Nothing is stored, so the same `eventId` can be \
                   validated any number of times. Clicks on test links pass here only. Requires \
                   `apps:write` and `webEvents.enabled`; a test key will do.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(WebEventBody), description = "The event.", example = json!({
        "eventId": "test-order-1", "arClickId": "clk_…", "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "timestampMs": 1_760_000_000_000_i64, "eventType": "purchase", "revenue": 49.99, "currency": "USD",
        "sourceUrl": "https://shop.example.com/checkout"
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::WebEventsDisabled, Code::AppArchived, Code::AppNotFound,
        Code::OriginalTransactionUnavailable, Code::EventIdConflict, Code::ClickNotVerified,
        Code::ClickNetworkUnsupported, Code::OriginMismatch, Code::OriginalTransactionInvalid,
        Code::RefundExceedsPayment, Code::CurrencyMismatch
    ]]))),
    responses((status = 200, description = "What the event would cause.",
        body = inline(ValidatedEnvelope), example = json!({"data": example()})))
)]
pub(crate) async fn validate(
    caller: Caller<WebEventsValidate>,
    ids: PathIds,
    State(state): State<ApiState>,
    request: WebEventRequest,
) -> Result<impl IntoResponse, ApiError> {
    let event_id = request.external_id.clone();
    let event = read_event(&state, caller.authorized.read_access(), ids, request).await?;
    let preview = state.store.validate_web_event(event).await?;
    let shape = ValidatedWebEvent::of(event_id, preview, &state.click_tokens);
    Ok(JsonResponse::ok(shape))
}
