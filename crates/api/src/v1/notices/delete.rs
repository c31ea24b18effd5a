//! `DELETE /api/v1/apps/{appId}/notices/{noticeId}` — deletes a notice.

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
    delete, path = "/api/v1/apps/{appId}/notices/{noticeId}", tag = "Notices",
    operation_id = "deleteNotice", summary = "Delete a notice",
    description = "Messages that wait to be sent are dropped. Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("noticeId" = String, Path, description = "Notice id."),
        ("If-Match" = Option<String>, Header, description = "ETag of the version to delete."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::NoticeNotFound, Code::VersionConflict
    ]]))),
    responses((status = 204, description = "The notice is deleted."))
)]
pub(crate) async fn delete(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
) -> Result<StatusCode, ApiError> {
    let (app, origin) = (ids.app()?, caller.origin(&state));
    let reader = caller.authorized.read_access();
    state.store.app(&reader, app).await?;
    state
        .store
        .delete_notice(&caller.authorized, app, ids.notice()?, precondition, origin)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
