//! `GET /api/v1/apps/{appId}/cost-sources` — lists an app's cost sources.

use super::shape::{CostSourceListEnvelope, CostSourceOut, example};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::PageQuery;
use crate::path::PathIds;
use crate::query::QueryString;
use crate::report::{RowPage, row_key};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;
use tributary_domain::cost_source::CostSource;
use tributary_domain::vocabulary::page::ListScope;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/cost-sources", tag = "Analytics",
    operation_id = "listCostSources", summary = "List cost sources",
    description = "Where costs are imported from, in order: Meta (`network_a`), Google Ads \
                   (`network_b`) and TikTok (`network_c`). Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of cost sources.",
        body = inline(CostSourceListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: Caller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let page = query.read(PageQuery::read)?;
    let app = ids.app()?;
    let scope = ListScope {
        list: "cost_sources",
        organization: caller.authorized.organization(),
        filters: app.to_string(),
    };
    let found = state.store.cost_sources(&caller.authorized, app).await?;
    let row = |one: &CostSource| (row_key([one.network.as_str()]), CostSourceOut::from(one));
    let rows = found.iter().map(row).collect();
    Ok(RowPage::of(rows, &page, &state, &scope)?.into_list())
}
