//! `GET /api/v1/apps/{appId}/integrations` — lists an app's four integrations.

use super::health::HealthByNetwork;
use super::shape::{IntegrationListEnvelope, IntegrationOut, example};
use crate::caller::ReportCaller;
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
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::page::ListScope;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/integrations", tag = "Integrations",
    operation_id = "listIntegrations", summary = "List integrations",
    description = "All four networks, in order: Meta (`network_a`), Google Ads (`network_b`), \
                   TikTok (`network_c`) and OpenAI Ads (`network_d`).",
    params(
        ("appId" = String, Path, description = "App id."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of integrations.",
        body = inline(IntegrationListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: ReportCaller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let page = query.read(PageQuery::read)?;
    let app = ids.app()?;
    let scope = ListScope {
        list: "integrations",
        organization: caller.authorized.organization(),
        filters: app.to_string(),
    };
    let found = state.store.integrations(&caller.authorized, app).await?;
    let health = HealthByNetwork::load(&state, &caller.authorized, app).await?;
    let row = |one: &Integration| {
        let key = row_key([one.network.as_str()]);
        (key, IntegrationOut::of(one, health.of(one)))
    };
    let rows = found.iter().map(row).collect();
    Ok(RowPage::of(rows, &page, &state, &scope)?.into_list())
}
