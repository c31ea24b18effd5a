//! `POST /api/v1/apps/{appId}/notices/preview` — shows what a notice would send.

use super::{NoticeFields, new_notice};
use crate::body::{Envelope, JsonBody, JsonResponse};
use crate::caller::ReportCaller;
use crate::error::{ApiError, Code};
use crate::fields::notice::read;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::AppsWrite;
use tributary_domain::vocabulary::id::NoticeId;
use utoipa::ToSchema;

/// A message exactly as it would be sent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "NoticePreview")]
struct PreviewOut {
    subject: String,
    /// Plain text of an e-mail, or the JSON body that Slack or the webhook would get.
    body: String,
    /// HTML of an e-mail; null for the other channels.
    html: Option<String>,
}

type PreviewEnvelope = Envelope<PreviewOut>;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/notices/preview", tag = "Notices",
    operation_id = "previewNotice", summary = "Preview a notice",
    description = "Returns the message that the notice would send: with the latest complete days, or \
                   with an example if it is about alerts. Stores and sends nothing; `url` is not \
                   needed. Requires `apps:write` and a live key.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(NoticeFields), description = "The notice.", example = json!({
        "name": "Every morning", "channel": "email", "recipients": ["team@example.com"],
        "topic": "daily_summary", "hour": 8
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [Code::LiveOnly, Code::AppNotFound]]))),
    responses((status = 200, description = "The message.", body = inline(PreviewEnvelope),
        example = json!({"data": {
            "subject": "Runner: 120 installs and $1,234.50 net revenue, 11 Jan 2026",
            "body": "Figures of Runner for 11 Jan 2026.",
            "html": "<!doctype html><html lang=\"en\"><body><p>Figures of Runner for 11 Jan 2026.</p></body></html>"
        }})))
)]
pub(crate) async fn preview(
    caller: ReportCaller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let draft = body.read_whole(read)?;
    let reader = caller.authorized.read_access();
    let app = state.store.app(&reader, ids.app()?).await?;
    let id = NoticeId::from_bytes([0; 16]);
    let notice = new_notice(&state, &app, id, draft.without_url());
    let organization = reader.organization();
    let preview = state.notices.preview(organization, &notice).await?;
    Ok(JsonResponse::ok(PreviewOut {
        subject: preview.subject,
        body: preview.body,
        html: preview.html,
    }))
}
