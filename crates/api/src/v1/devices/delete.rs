//! `DELETE /api/v1/apps/{appId}/devices/{deviceId}` — erases a person.

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
    delete, path = "/api/v1/apps/{appId}/devices/{deviceId}", tag = "Privacy", operation_id = "eraseDevice",
    summary = "Erase a device and its person",
    description = "Identifiers, hashes, addresses, user agents and whatever the app said in parameters go for good; what \
                   waits to be sent is cancelled; every sum stays what it is. The device's events go on under a random \
                   pseudonym (`erased-…`). An app that is still installed shows up as a new device. In the key's \
                   environment, test keys included. Needs `apps:write`.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("deviceId" = String, Path, description = "The id that the SDK sends as `deviceId`."),
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
