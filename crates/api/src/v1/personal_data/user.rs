//! `GET /api/v1/apps/{appId}/users/{userId}/data` — exports everything that is stored about a user.

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
    get, path = "/api/v1/apps/{appId}/users/{userId}/data", tag = "Privacy",
    operation_id = "exportUser",
    summary = "Export a user's data",
    description = "Returns everything that is stored about a user of the app as one JSON document, like \
                   the export of a device. Includes the user's only device, or, if several devices \
                   have the user id, those whose claim is signed. `meta.otherDevices` lists the \
                   others, for you and not for the user: they may be a stranger's. Events with \
                   another user's id are left out. Requires `apps:write`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("userId" = String, Path, description = "The app's user id."),
    ),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound, Code::UserNotFound]]))),
    responses((status = 200, description = "The document.",
        body = inline(PersonalDataEnvelope),
        example = json!(example())))
)]
pub(crate) async fn export(
    caller: ExportCaller<PeopleExport>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<Response, ApiError> {
    let (app, user) = (ids.app()?, ids.user()?);
    respond(caller, app, DataSubject::User(user), state).await
}
