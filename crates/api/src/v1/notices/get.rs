//! `GET /api/v1/apps/{appId}/notices/{noticeId}` — returns a notice.

use super::shape::{NoticeEnvelope, NoticeOut, example};
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
    get, path = "/api/v1/apps/{appId}/notices/{noticeId}", tag = "Notices",
    operation_id = "getNotice", summary = "Get a notice",
    params(
        ("appId" = String, Path, description = "App id."),
        ("noticeId" = String, Path, description = "Notice id."),
    ),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound, Code::NoticeNotFound]]))),
    responses((status = 200, description = "The notice.", body = inline(NoticeEnvelope),
        headers(("ETag" = String)), example = json!({"data": example()})))
)]
pub(crate) async fn get(
    caller: Caller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let app = state.store.app(&caller.authorized, ids.app()?).await?;
    let notice = state
        .store
        .notice(&caller.authorized, app.id, ids.notice()?)
        .await?;
    Ok(JsonResponse::ok(NoticeOut::of(&notice)).with_etag(&notice.tag()))
}
