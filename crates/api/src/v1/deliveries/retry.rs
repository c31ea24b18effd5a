//! `POST /api/v1/apps/{appId}/deliveries/{deliveryId}/retry` — queues a delivery again.

use super::shape::{DeliveryEnvelope, DeliveryOut, example};
use crate::body::JsonResponse;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/deliveries/{deliveryId}/retry", tag = "Deliveries",
    operation_id = "retryDelivery", summary = "Retry a delivery",
    description = "Only for `failed`, `expired` and `unconfirmed` deliveries; other deliveries get \
                   409 `delivery_not_retryable`. The delivery becomes `pending` again and keeps \
                   its deduplication id and earlier attempts. Requires `apps:write` and a live \
                   key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("deliveryId" = String, Path, description = "Delivery id."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::DeliveryNotFound, Code::DeliveryNotRetryable
    ]]))),
    responses((status = 200, description = "The pending delivery.", body = inline(DeliveryEnvelope),
        example = json!({"data": example_retried()})))
)]
pub(crate) async fn retry(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (app, origin) = (ids.app()?, caller.origin(&state));
    state
        .store
        .app(&caller.authorized.read_access(), app)
        .await?;
    let retried = state
        .store
        .retry_delivery(&caller.authorized, app, ids.delivery()?, origin)
        .await?;
    Ok(JsonResponse::ok(DeliveryOut::from(retried)))
}

fn example_retried() -> serde_json::Value {
    let mut example = example();
    example["status"] = "pending".into();
    example["reason"] = serde_json::Value::Null;
    example["settledAt"] = serde_json::Value::Null;
    example["nextAttemptAt"] = "2026-01-01T09:00:00.000Z".into();
    example
}
