//! `GET /api/v1/apps/{appId}/overview` — how an app does, at a glance.

use super::load::OverviewLoader;
use super::shape::{OverviewEnvelope, example};
use crate::body::JsonResponse;
use crate::caller::Caller;
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
    summary = "Read an overview",
    description = "The key figures of some days, each beside what it was in as many days before; a series by day; the links, \
                   campaigns and networks that brought the most. Needs `analytics:read`.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("from" = Option<String>, Query, description = "The first day, such as `2026-01-01`; 30 days when absent."),
        ("to" = Option<String>, Query, description = "The last day, inclusive; today when absent."),
        ("timezone" = Option<String>, Query, description = "In which zone the days begin; the app's when absent."),
    ),
    extensions(("x-errors" = json!([API_KEY, QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The overview.", body = inline(OverviewEnvelope), example = json!(example())))
)]
pub(crate) async fn get(
    caller: Caller<AnalyticsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let asked = query.read(RangeQuery::read)?;
    let app = ids.app()?;
    let range = asked.for_app(&state, &caller.authorized, app).await?;
    let gathering = OverviewLoader {
        state: &state,
        caller: &caller.authorized,
        app,
        range: &range,
    };
    Ok(JsonResponse::ok(gathering.load().await?))
}
