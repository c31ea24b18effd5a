//! `POST /api/v1/apps/{appId}/notices` — creates a notice.

use super::shape::{NoticeEnvelope, NoticeOut, example};
use super::{NoticeFields, new_notice, seal};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::fields::notice::read;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;
use tributary_domain::vocabulary::id::NoticeId;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/notices", tag = "Notices", operation_id = "createNotice",
    summary = "Create a notice",
    description = "A notice sends a summary every day or week, or a message when a metric crosses a \
                   limit, an integration pauses or traffic is unusual. Days and hours are those of \
                   the app's time zone. Requires `apps:write` and a live key.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(NoticeFields), description = "The notice.", example = json!({
        "name": "Spend is too high",
        "channel": "email",
        "recipients": ["team@example.com"],
        "topic": "threshold",
        "metric": "cost",
        "condition": "over",
        "value": 500,
        "window": "day"
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::TooManyNotices
    ]]))),
    responses((status = 201, description = "The notice.", body = inline(NoticeEnvelope),
        headers(("Location" = String, description = "Path of the notice."), ("ETag" = String)),
        example = json!({"data": example()})))
)]
pub(crate) async fn create(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let draft = body.read_whole(read)?;
    let reader = caller.authorized.read_access();
    let app = state.store.app(&reader, ids.app()?).await?;
    let id = NoticeId::new(state.runtime.now(), state.runtime.random_bytes());
    let settings = seal(&state, &caller.authorized, (&app, id), draft, None)?;
    let notice = new_notice(&state, &app, id, settings);
    let origin = caller.origin(&state);
    let notice = state
        .store
        .create_notice(&caller.authorized, notice, origin)
        .await?;
    let location = format!("/api/v1/apps/{}/notices/{}", app.id, notice.id);
    Ok(JsonResponse::created(NoticeOut::of(&notice), &location).with_etag(&notice.tag()))
}
