//! `GET /api/v1/apps/{appId}/links` — lists an app's links, newest first.

use super::shape::{LinkListEnvelope, LinkOut, example};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::path::PathIds;
use crate::query::{QueryParameters, QueryString};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;
use tributary_domain::link::{LinkFilter, folder, link_search, tag};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::ListScope;

fn read_filter(parameters: &mut QueryParameters<'_>) -> LinkFilter {
    LinkFilter {
        search: parameters.optional("search", link_search),
        tag: parameters.optional("tag", tag),
        folder: parameters.optional("folder", folder),
    }
}

/// Serializes app and filter for the cursor, which is valid only for the same ones.
fn narrowed_by(app: AppId, filter: &LinkFilter) -> String {
    if filter.is_empty() {
        return app.to_string();
    }
    let LinkFilter {
        search,
        tag,
        folder,
    } = filter;
    serde_json::json!([app.to_string(), search, tag, folder]).to_string()
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/links", tag = "Links", operation_id = "listLinks",
    summary = "List links",
    description = "Newest first. `search`, `tag` and `folder` ignore case.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("search" = Option<String>, Query, max_length = 500,
            description = "Part of the name, slug, campaign id, campaign name, folder or a tag."),
        ("tag" = Option<String>, Query, description = "Filter by tag.", max_length = 40),
        ("folder" = Option<String>, Query, description = "Filter by folder.", max_length = 80),
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
    let (filter, page) =
        query.read(|parameters| (read_filter(parameters), PageQuery::read(parameters)))?;
    let app = state.store.app(&caller.authorized, ids.app()?).await?;
    let scope = ListScope {
        list: "links",
        organization: caller.authorized.organization(),
        filters: narrowed_by(app.id, &filter),
    };
    let request = page.open(&state, &scope)?;
    let page = state
        .store
        .links(&caller.authorized, app.id, filter, request)
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
