//! `GET /api/v1/apps/{appId}/costs` — lists ad costs, newest day first.

use super::shape::{CostListEnvelope, CostOut, example};
use crate::caller::{Caller, ReportCaller};
use crate::days::DayFilter;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::path::PathIds;
use crate::query::{QueryParameters, QueryString};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::json;
use tributary_domain::access::AppsRead;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::report::cost::{CostFilter, parse_paid_network};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::ListScope;
use tributary_domain::vocabulary::text::reject_nul;

fn read(parameters: &mut QueryParameters<'_>) -> (CostFilter, PageQuery) {
    let days = DayFilter::read(parameters);
    let campaign = |text: &str| reject_nul(text).map(|()| text.to_owned());
    let filter = CostFilter {
        from: days.from,
        to: days.to,
        network: parameters.optional("network", parse_paid_network),
        campaign: parameters.optional("campaign", campaign),
    };
    (filter, PageQuery::read(parameters))
}

fn scope(caller: &Caller<AppsRead>, app: AppId, filter: &CostFilter) -> ListScope {
    let narrowed_by = json!([
        app.to_string(),
        filter.from.map(|day| day.to_string()),
        filter.to.map(|day| day.to_string()),
        filter.network.map(CreditedNetwork::as_str),
        filter.campaign
    ]);
    ListScope {
        list: "costs",
        organization: caller.authorized.organization(),
        filters: narrowed_by.to_string(),
    }
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/costs", tag = "Analytics", operation_id = "listCosts",
    summary = "List costs",
    description = "Stored ad costs, newest day first. Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = Option<String>, Query, description = "Filter by network."),
        ("campaign" = Option<String>, Query, description = "Filter by campaign id."),
        ("from" = Option<String>, Query, description = "First day, such as `2026-01-01`."),
        ("to" = Option<String>, Query, description = "Last day, inclusive."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of costs.", body = inline(CostListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: ReportCaller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (filter, page) = query.read(read)?;
    let app = ids.app()?;
    let scope = scope(&caller, app, &filter);
    let request = page.open(&state, &scope)?;
    let page = state
        .store
        .costs(&caller.authorized, app, filter, request)
        .await?;
    Ok(List::of(
        page,
        &state,
        &scope,
        |stored| *stored.cost.key().as_bytes(),
        CostOut::from,
    ))
}
