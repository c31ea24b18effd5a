//! `GET /api/v1/apps/{appId}/devices/{deviceId}/data` — exports everything that is stored about a device.

use super::shape::{PersonalDataEnvelope, example};
use super::stream::respond;
use crate::caller::ExportCaller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::PeopleExport;
use tributary_domain::personal_data::DataSubject;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/devices/{deviceId}/data", tag = "Privacy",
    operation_id = "exportDevice",
    summary = "Export a device's data",
    description = "Returns everything that is stored about a device and its user as one JSON document, \
                   which explains each section: the device with its consent and attribution, user \
                   ids, clicks, subscriptions, and events with their deliveries. Covers the same data \
                   as erasing the device: users whom another device has are left out. The document is \
                   streamed; if the connection breaks, it is incomplete. Each export is audited. \
                   Affects only the key's environment. Requires `apps:write`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("deviceId" = String, Path, description = "Device id that the SDK sends as `deviceId`."),
    ),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound, Code::DeviceNotFound]]))),
    responses((status = 200, description = "The document.",
        body = inline(PersonalDataEnvelope),
        example = json!(example())))
)]
pub(crate) async fn export(
    caller: ExportCaller<PeopleExport>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<Response, ApiError> {
    let (app, device) = (ids.app()?, ids.device()?);
    respond(caller, app, DataSubject::Device(device), state).await
}
