//! `GET /api/v1/apps/{appId}/links` — lists an app's links, newest first.

use super::shape::{LinkListEnvelope, LinkOut, example};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::path::PathIds;
use crate::query::QueryString;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;
use tributary_domain::vocabulary::page::ListScope;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/links", tag = "Links", operation_id = "listLinks",
    summary = "List links",
    params(
        ("appId" = String, Path, description = "App id."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of links.", body = inline(LinkListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: Caller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let page = query.read(PageQuery::read)?;
    let app = state.store.app(&caller.authorized, ids.app()?).await?;
    let scope = ListScope {
        list: "links",
        organization: caller.authorized.organization(),
        filters: app.id.to_string(),
    };
    let request = page.open(&state, &scope)?;
    let page = state
        .store
        .links(&caller.authorized, app.id, request)
        .await?;
    let base = app.link_base(&state.base_url);
    let shape = |link| LinkOut::of(link, &base);
    Ok(List::of(
        page,
        &state,
        &scope,
        |link| *link.id.as_bytes(),
        shape,
    ))
}
