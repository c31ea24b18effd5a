//! `POST /api/v1/apps/{appId}/links` — creates a tracking link.

use super::fields::NewLink;
use super::shape::{LinkEnvelope, LinkOut, example};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::fields::link::read_new;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;
use tributary_domain::link::{Link, LinkCreation, Slug};
use tributary_domain::vocabulary::id::LinkId;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/links", tag = "Links", operation_id = "createLink",
    summary = "Create a link",
    description = "Only `name` is required. Requires `apps:write` and a live key.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(NewLink), description = "The link.", example = json!({
        "name": "Spring – social",
        "slug": "spring-social",
        "network": "network_a",
        "fallbackUrl": "https://example.com/",
        "deepLink": "runner://offer/42",
        "customData": {"invite": "abc"},
        "tags": ["influencer", "q4"],
        "folder": "Spring 2026"
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::SlugTaken
    ]]))),
    responses((status = 201, description = "The link.", body = inline(LinkEnvelope),
        headers(("Location" = String, description = "Path of the link."), ("ETag" = String)),
        example = json!({"data": example()})))
)]
pub(crate) async fn create(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let (name, slug, change) = body.read_whole(read_new)?;
    let at = state.runtime.now();
    let birth = LinkCreation {
        id: LinkId::new(at, state.runtime.random_bytes()),
        app: ids.app()?,
        at,
    };
    let slug = slug.unwrap_or_else(|| Slug::random(state.runtime.random_bytes()));
    let mut link = Link::new(&birth, name, slug);
    link.apply(change);
    link.check()?;
    let app = state
        .store
        .app(&caller.authorized.read_access(), birth.app)
        .await?;
    let origin = caller.origin(&state);
    let link = state
        .store
        .create_link(&caller.authorized, link, origin)
        .await?;
    let location = format!("/api/v1/apps/{}/links/{}", link.app, link.id);
    let tag = link.tag();
    let shape = LinkOut::of(link, &app.link_base(&state.base_url));
    Ok(JsonResponse::created(shape, &location).with_etag(&tag))
}
