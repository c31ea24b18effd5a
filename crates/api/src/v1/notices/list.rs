//! `GET /api/v1/apps/{appId}/notices` — lists an app's notices.

use super::shape::{AllNotices, NoticeOut, NoticesEnvelope, example};
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
    get, path = "/api/v1/apps/{appId}/notices", tag = "Notices", operation_id = "listNotices",
    summary = "List notices",
    description = "All notices of the app, oldest first. An app has at most 50.",
    params(("appId" = String, Path, description = "App id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The notices.", body = inline(NoticesEnvelope),
        example = json!({"data": [example()]})))
)]
pub(crate) async fn list(
    caller: Caller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let notices = state.store.notices(&caller.authorized, ids.app()?).await?;
    let shaped = notices.iter().map(NoticeOut::of).collect();
    Ok(JsonResponse::ok(AllNotices(shaped)))
}
