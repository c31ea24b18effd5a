//! `GET /api/v1/apps/{appId}/links/{linkId}` — returns a link.

use super::shape::{LinkEnvelope, LinkOut, example};
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
    get, path = "/api/v1/apps/{appId}/links/{linkId}", tag = "Links", operation_id = "getLink",
    summary = "Get a link",
    params(
        ("appId" = String, Path, description = "App id."),
        ("linkId" = String, Path, description = "Link id."),
    ),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound, Code::LinkNotFound]]))),
    responses((status = 200, description = "The link.", body = inline(LinkEnvelope),
        headers(("ETag" = String)), example = json!({"data": example()})))
)]
pub(crate) async fn get(
    caller: Caller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let app = state.store.app(&caller.authorized, ids.app()?).await?;
    let link = state
        .store
        .link(&caller.authorized, app.id, ids.link()?)
        .await?;
    let tag = link.tag();
    Ok(JsonResponse::ok(LinkOut::of(link, &app.link_base(&state.base_url))).with_etag(&tag))
}
