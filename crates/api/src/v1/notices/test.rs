//! `POST /api/v1/apps/{appId}/notices/{noticeId}/test` — sends a notice's message now.

use crate::body::{Envelope, JsonResponse};
use crate::caller::ReportCaller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::AppsWrite;
use utoipa::ToSchema;

/// Result of a test.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "NoticeTest")]
struct TestedOut {
    /// Whether the channel accepted the message.
    accepted: bool,
    /// Why it did not; null if it did.
    error: Option<String>,
}

type TestedEnvelope = Envelope<TestedOut>;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/notices/{noticeId}/test", tag = "Notices",
    operation_id = "testNotice", summary = "Send a test",
    description = "Sends the preview's message now, marked as a test, even if the notice is not \
                   active. At most 20 tests per app and hour. Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("noticeId" = String, Path, description = "Notice id."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::NoticeNotFound
    ]]))),
    responses((status = 200, description = "Whether the message was accepted.",
        body = inline(TestedEnvelope),
        example = json!({"data": {"accepted": true, "error": null}})))
)]
pub(crate) async fn test(
    caller: ReportCaller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let reader = caller.authorized.read_access();
    let app = state.store.app(&reader, ids.app()?).await?;
    let notice = state.store.notice(&reader, app.id, ids.notice()?).await?;
    let organization = reader.organization();
    let sent = state.notices.send_test(organization, &notice).await?;
    Ok(JsonResponse::ok(TestedOut {
        accepted: sent.is_ok(),
        error: sent.err(),
    }))
}
