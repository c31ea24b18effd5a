//! `POST /api/v1/apps/{appId}/links/bulk` — creates many links, all or none.

use super::fields::BulkLinks;
use super::shape::{CreatedLinks, LinkOut, LinksEnvelope, example};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::fields::link::read_bulk;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;
use tributary_domain::link::{check_bulk_size, new_links};

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/links/bulk", tag = "Links", operation_id = "createLinks",
    summary = "Create many links",
    description = "Creates up to 500 links: all of them, or none if one is invalid. Each error \
                   names its link, such as `links[3].slug`. Requires `apps:write` and a live key.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(BulkLinks), description = "The links.", example = json!({
        "links": [
            {"name": "Spring – social", "network": "network_a", "tags": ["influencer"]},
            {"name": "Spring – search", "network": "network_b", "folder": "Spring 2026"}
        ]
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [Code::LiveOnly, Code::AppNotFound]]))),
    responses((status = 201, description = "The links, in the order of the request.",
        body = inline(LinksEnvelope),
        headers(("Location" = String, description = "Path of the list of links.")),
        example = json!({"data": [example()]})))
)]
pub(crate) async fn create(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let drafts = body.read_whole(read_bulk)?;
    check_bulk_size(drafts.len())?;
    let reader = caller.authorized.read_access();
    let app = state.store.app(&reader, ids.app()?).await?;
    let random = || state.runtime.random_bytes();
    let links = new_links(app.id, state.runtime.now(), drafts, random)?;
    let links = links.into_iter().map(|link| (link, caller.origin(&state)));
    let links = state
        .store
        .create_links(&caller.authorized, app.id, links.collect())
        .await?;
    let base = app.link_base(&state.base_url);
    let shapes = links
        .into_iter()
        .map(|link| LinkOut::of(link, &base))
        .collect();
    let location = format!("/api/v1/apps/{}/links", app.id);
    Ok(JsonResponse::created(CreatedLinks(shapes), &location))
}
