//! `GET /api/v1/apps` — lists the organization's apps, newest first.

use super::shape::{AppListEnvelope, AppOut, example};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::query::{QueryString, parse_bool};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;
use tributary_domain::vocabulary::page::ListScope;

#[utoipa::path(
    get, path = "/api/v1/apps", tag = "Apps", operation_id = "listApps",
    summary = "List apps",
    description = "Newest first, without archived apps.",
    params(
        ("archived" = Option<bool>, Query, description = "If `true`, archived apps are included."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY]))),
    responses((status = 200, description = "A page of apps.", body = inline(AppListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: Caller<AppsRead>,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (archived, page) = query.read(|parameters| {
        let archived = parameters.optional("archived", parse_bool).unwrap_or(false);
        (archived, PageQuery::read(parameters))
    })?;
    let scope = ListScope {
        list: "apps",
        organization: caller.authorized.organization(),
        filters: archived.to_string(),
    };
    let request = page.open(&state, &scope)?;
    let page = state
        .store
        .apps(&caller.authorized, archived, request)
        .await?;
    let shape = |app| AppOut::of(app, &state);
    Ok(List::of(
        page,
        &state,
        &scope,
        |app| *app.id.as_bytes(),
        shape,
    ))
}
