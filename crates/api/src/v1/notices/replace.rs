//! `PUT /api/v1/apps/{appId}/notices/{noticeId}` — replaces a notice.

use super::shape::{NoticeEnvelope, NoticeOut, example};
use super::{NoticeFields, seal};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::fields::notice::read;
use crate::if_match::IfMatch;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;

#[utoipa::path(
    put, path = "/api/v1/apps/{appId}/notices/{noticeId}", tag = "Notices",
    operation_id = "replaceNotice", summary = "Replace a notice",
    description = "Replaces all fields. Without `url`, a notice with the same channel keeps its URL. \
                   If the topic changes, days that are over are not reported again. Requires \
                   `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("noticeId" = String, Path, description = "Notice id."),
        ("If-Match" = Option<String>, Header, description = "ETag of the version to replace."),
    ),
    request_body(content = inline(NoticeFields), description = "The notice.", example = json!({
        "name": "Every Monday",
        "channel": "email",
        "recipients": ["team@example.com"],
        "topic": "weekly_summary",
        "weekday": "monday",
        "hour": 8
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::NoticeNotFound, Code::VersionConflict
    ]]))),
    responses((status = 200, description = "The notice after the change.",
        body = inline(NoticeEnvelope), headers(("ETag" = String)),
        example = json!({"data": example()})))
)]
pub(crate) async fn replace(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let draft = body.read_whole(read)?;
    let reader = caller.authorized.read_access();
    let app = state.store.app(&reader, ids.app()?).await?;
    let stored = state.store.notice(&reader, app.id, ids.notice()?).await?;
    let channel = Some(&stored.settings.channel);
    let settings = seal(
        &state,
        &caller.authorized,
        (&app, stored.id),
        draft,
        channel,
    )?;
    let (of, origin) = ((app.id, stored.id), caller.origin(&state));
    let notice = state
        .store
        .replace_notice(&caller.authorized, of, settings, precondition, origin)
        .await?;
    Ok(JsonResponse::ok(NoticeOut::of(&notice)).with_etag(&notice.tag()))
}
