//! `GET /api/v1/apps/{appId}/held` — lists held installs, newest first.

use super::fields::HeldQuery;
use super::shape::{HeldListEnvelope, HeldOut, example};
use crate::caller::{Caller, ReportCaller};
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::path::PathIds;
use crate::query::QueryString;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::resource::HeldRead;
use tributary_domain::attribution::{Flag, HoldFilter};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::ListScope;
use tributary_domain::vocabulary::time::Timestamp;

/// Serializes app and filters for the cursor, which is valid only for the same ones.
fn narrowed_by(caller: &Caller<HeldRead>, app: AppId, filter: &HoldFilter) -> String {
    serde_json::json!([
        app.to_string(),
        caller.authorized.environment().as_str(),
        filter.state.as_str(),
        filter.flag.map(Flag::as_str),
        filter.link.map(|link| link.to_string()),
        filter.from.map(Timestamp::as_millis),
        filter.until.map(Timestamp::as_millis)
    ])
    .to_string()
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/held", tag = "Held installs", operation_id = "listHeld",
    summary = "List held installs",
    description = "Flagged installs in the key's environment, newest first by first open. With \
                   `attribution.fraud: \"hold\"`, a flagged install and its events neither count \
                   in `installs` and `revenue` nor are forwarded until the install is released. \
                   Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("state" = inline(Option<crate::choices::HoldStateChoice>), Query,
            description = "Filter by state. Default: `held`."),
        ("flag" = inline(Option<crate::choices::FlagChoice>), Query,
            description = "Filter by flag."),
        ("linkId" = Option<String>, Query, description = "Filter by credited link id."),
        ("from" = Option<String>, Query,
            description = "First day, by first open, such as `2026-01-01`."),
        ("to" = Option<String>, Query, description = "Last day, inclusive."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: the app's time zone."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of held installs.",
        body = inline(HeldListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: ReportCaller<HeldRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (filters, page) = query.read(|parameters| {
        (
            HeldQuery::from_query(parameters),
            PageQuery::read(parameters),
        )
    })?;
    let app = ids.app()?;
    let filter = filters.into_filter(&state, &caller.authorized, app).await?;
    let scope = ListScope {
        list: "held",
        organization: caller.authorized.organization(),
        filters: narrowed_by(&caller, app, &filter),
    };
    let request = page.open(&state, &scope)?;
    let page = state
        .store
        .held_installs(&caller.authorized, app, filter, request)
        .await?;
    Ok(List::of(
        page,
        &state,
        &scope,
        |held| *held.attribution.id.as_bytes(),
        HeldOut::from,
    ))
}
