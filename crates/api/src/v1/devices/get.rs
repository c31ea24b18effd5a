//! `GET /api/v1/apps/{appId}/devices/{deviceId}` — explains a device's attribution.

use super::shape::{DeviceReportContext, StoryEnvelope, StoryOut, example};
use crate::body::JsonResponse;
use crate::caller::ReportCaller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use crate::v1::events::deliveries::EventDeliveries;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::resource::DevicesRead;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/devices/{deviceId}", tag = "Analytics",
    operation_id = "getDevice",
    summary = "Explain a device's attribution",
    description = "Returns the device in the key's environment: its attribution with the reason, \
                   all clicks that were considered with their score and rejection reason, and its \
                   latest events. Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("deviceId" = String, Path, description = "Device id that the SDK sends as `deviceId`."),
    ),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound, Code::DeviceNotFound]]))),
    responses((status = 200, description = "The device and its history.",
        body = inline(StoryEnvelope),
        example = json!({"data": example()})))
)]
pub(crate) async fn get(
    caller: ReportCaller<DevicesRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (app, device) = (ids.app()?, ids.device()?);
    let caller = caller.authorized.analytics_access();
    let story = state.store.device(&caller, app, device.clone()).await?;
    let context = DeviceReportContext {
        app,
        environment: caller.environment(),
        device,
        tokens: &state.click_tokens,
        now: state.runtime.now(),
    };
    let deliveries = EventDeliveries::load(&state, app, &story.events).await?;
    Ok(JsonResponse::ok(StoryOut::of(story, deliveries, &context)))
}
