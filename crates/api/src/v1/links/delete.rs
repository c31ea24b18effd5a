//! `DELETE /api/v1/apps/{appId}/links/{linkId}` — archives a link.

use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::if_match::IfMatch;
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::http::StatusCode;
use tributary_domain::access::AppsWrite;

#[utoipa::path(
    delete, path = "/api/v1/apps/{appId}/links/{linkId}", tag = "Links",
    operation_id = "deleteLink", summary = "Delete a link",
    description = "Archives the link: it returns 404 from now on, its history remains, and its \
                   slugs cannot be reused. Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("linkId" = String, Path, description = "Link id."),
        ("If-Match" = Option<String>, Header, description = "ETag of the version to delete."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::LinkNotFound, Code::VersionConflict
    ]]))),
    responses((status = 204, description = "The link is archived."))
)]
pub(crate) async fn delete(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
) -> Result<StatusCode, ApiError> {
    let (app, origin) = (ids.app()?, caller.origin(&state));
    state
        .store
        .app(&caller.authorized.read_access(), app)
        .await?;
    state
        .store
        .delete_link(&caller.authorized, app, ids.link()?, precondition, origin)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
