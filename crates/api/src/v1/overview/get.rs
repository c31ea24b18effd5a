//! `GET /api/v1/apps/{appId}/overview` — returns an app's key figures at a glance.

use super::load::OverviewLoader;
use super::shape::{OverviewEnvelope, example};
use crate::body::JsonResponse;
use crate::caller::ReportCaller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, QUERY};
use crate::path::PathIds;
use crate::query::QueryString;
use crate::report::range::RangeQuery;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AnalyticsRead;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/overview", tag = "Analytics", operation_id = "getOverview",
    summary = "Get an overview",
    description = "Key figures compared with the previous period of the same length, a daily \
                   series, and the top links, campaigns and networks. If the range is not over, \
                   only the same part of the previous period is compared, without costs. \
                   Requires `analytics:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("from" = Option<String>, Query,
            description = "First day, such as `2026-01-01`. If omitted, the range covers 30 days."),
        ("to" = Option<String>, Query, description = "Last day, inclusive. Default: today."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: the app's time zone."),
    ),
    extensions(("x-errors" = json!([API_KEY, QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The overview.",
        body = inline(OverviewEnvelope), example = json!(example())))
)]
pub(crate) async fn get(
    caller: ReportCaller<AnalyticsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let range = query.read(RangeQuery::read)?;
    let app = ids.app()?;
    let range = range.for_app(&state, &caller.authorized, app).await?;
    let loader = OverviewLoader {
        state: &state,
        caller: &caller.authorized,
        app,
        range: &range,
    };
    Ok(JsonResponse::ok(loader.load().await?))
}
