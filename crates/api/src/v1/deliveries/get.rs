//! `GET /api/v1/apps/{appId}/deliveries/{deliveryId}` — returns a delivery.

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
    get, path = "/api/v1/apps/{appId}/deliveries/{deliveryId}", tag = "Deliveries",
    operation_id = "getDelivery",
    summary = "Get a delivery",
    description = "Returns a delivery with its attempts. Deliveries are live data, so a test key \
                   finds none. Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("deliveryId" = String, Path, description = "Delivery id."),
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
