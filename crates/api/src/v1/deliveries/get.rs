//! `GET /api/v1/apps/{appId}/deliveries/{deliveryId}` — one delivery.

use super::shape::{DeliveryEnvelope, DeliveryOut, example};
use crate::body::JsonResponse;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/deliveries/{deliveryId}", tag = "Deliveries", operation_id = "getDelivery",
    summary = "Read a delivery",
    description = "With its attempts. A test key finds none. Needs `apps:read`.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("deliveryId" = String, Path, description = "The delivery's id."),
    ),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound, Code::DeliveryNotFound]]))),
    responses((status = 200, description = "The delivery.", body = inline(DeliveryEnvelope),
        example = json!({"data": example()})))
)]
pub(crate) async fn get(
    caller: Caller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let app = state.store.app(&caller.authorized, ids.app()?).await?;
    let found = state
        .store
        .delivery(&caller.authorized, app.id, ids.delivery()?)
        .await?;
    Ok(JsonResponse::ok(DeliveryOut::from(found)))
}
