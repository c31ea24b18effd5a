//! `DELETE /api/v1/apps/{appId}/devices/{deviceId}` — erases a device's personal data.

use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::http::StatusCode;
use tributary_domain::access::PeopleErase;
use tributary_domain::erasure::pseudonym;

#[utoipa::path(
    delete, path = "/api/v1/apps/{appId}/devices/{deviceId}", tag = "Privacy",
    operation_id = "eraseDevice",
    summary = "Erase a device",
    description = "Permanently removes identifiers, hashes, addresses, user agents and event \
                   parameters, and cancels pending deliveries. Report figures do not change: the \
                   device's events continue under a random pseudonym (`erased-…`). If the app is \
                   still installed, it appears as a new device. Affects only the key's \
                   environment. Requires `apps:write`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("deviceId" = String, Path, description = "Device id that the SDK sends as `deviceId`."),
    ),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound, Code::DeviceNotFound]]))),
    responses((status = 204, description = "The device is erased."))
)]
pub(crate) async fn delete(
    caller: Caller<PeopleErase>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<StatusCode, ApiError> {
    let (app, device) = (ids.app()?, ids.device()?);
    let (name, origin) = (
        pseudonym(state.runtime.random_bytes()),
        caller.origin(&state),
    );
    state
        .store
        .erase_device(&caller.authorized, app, device, name, origin)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
