//! `POST /api/v1/apps/{appId}/deliveries/retry` — queues all matching deliveries again.

use super::fields::{DeliveriesQuery, RetryFields};
use crate::body::{Envelope, JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::AppsWrite;
use tributary_store::RETRIES_MAX;
use utoipa::ToSchema;

/// Result of a bulk retry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "DeliveriesRetried")]
struct RetriedOut {
    /// Number of deliveries queued again.
    #[schema(maximum = 10_000)]
    retried: u64,
    /// True if more deliveries may match. Repeat the request to retry them.
    has_more: bool,
}

type RetriedEnvelope = Envelope<RetriedOut>;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/deliveries/retry", tag = "Deliveries",
    operation_id = "retryDeliveries",
    summary = "Retry many deliveries",
    description = "Retries the `failed`, `expired` and `unconfirmed` deliveries that match all \
                   given fields, at most 10000 per request. At least one of `status`, `network`, \
                   `eventId`, `from` and `to` is required. Requires `apps:write` and a live key.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(RetryFields), description = "Filter for the deliveries.",
        example = json!({
        "status": "failed", "network": "network_a", "from": "2026-01-01", "to": "2026-01-02"
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [Code::LiveOnly, Code::AppNotFound]]))),
    responses((status = 200, description = "The number of deliveries queued again.",
        body = inline(RetriedEnvelope),
        example = json!({"data": {"retried": 12, "hasMore": false}})))
)]
pub(crate) async fn retry_many(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let query = body.read(DeliveriesQuery::from_body)?;
    let app = ids.app()?;
    let reader = caller.authorized.read_access();
    let filter = query.into_filter(&state, &reader, app).await?;
    let origin = caller.origin(&state);
    let retried = state
        .store
        .retry_deliveries(&caller.authorized, app, filter, origin)
        .await?;
    Ok(JsonResponse::ok(RetriedOut {
        retried,
        has_more: retried >= u64::from(RETRIES_MAX),
    }))
}
