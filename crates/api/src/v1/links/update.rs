//! `PATCH /api/v1/apps/{appId}/links/{linkId}` — changes a link.

use super::fields::ChangedLink;
use super::shape::{LinkEnvelope, LinkOut, example};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::current_document::CurrentDocument;
use crate::error::{ApiError, Code};
use crate::fields::link::read_change;
use crate::if_match::IfMatch;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;
use tributary_domain::app::App;
use tributary_domain::link::Link;

#[utoipa::path(
    patch, path = "/api/v1/apps/{appId}/links/{linkId}", tag = "Links",
    operation_id = "updateLink", summary = "Change a link",
    description = "Missing fields are unchanged; null resets a field to its default. A list or map \
                   in the request replaces the stored one. You may send back the document that GET \
                   returned: read-only fields are ignored if they have their current value. \
                   Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("linkId" = String, Path, description = "Link id."),
        ("If-Match" = Option<String>, Header, description = "ETag of the version to change."),
    ),
    request_body(content = inline(ChangedLink), description = "Fields to change.",
        example = json!({"active": false})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::LinkNotFound, Code::SlugTaken, Code::VersionConflict
    ]]))),
    responses((status = 200, description = "The link after the change.",
        body = inline(LinkEnvelope), headers(("ETag" = String)),
        example = json!({"data": example()})))
)]
pub(crate) async fn update(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let reader = caller.authorized.read_access();
    let found = async {
        let app = state.store.app(&reader, ids.app()?).await?;
        let link = state.store.link(&reader, app.id, ids.link()?).await?;
        Ok((app, link))
    };
    let shape = |(app, link): (App, Link)| LinkOut::of(link, &app.link_base(&state.base_url));
    let current = CurrentDocument::of(found.await, shape)?;
    let change = body.read_change(&current, read_change)?;
    let app = state.store.app(&reader, ids.app()?).await?;
    let origin = caller.origin(&state);
    let link = state
        .store
        .update_link(
            &caller.authorized,
            app.id,
            ids.link()?,
            change,
            precondition,
            origin,
        )
        .await?;
    let tag = link.tag();
    Ok(JsonResponse::ok(LinkOut::of(link, &app.link_base(&state.base_url))).with_etag(&tag))
}
