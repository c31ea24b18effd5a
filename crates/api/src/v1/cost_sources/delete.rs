//! `DELETE /api/v1/apps/{appId}/cost-sources/{network}` — removes a cost source.

use super::reporting_network;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::if_match::IfMatch;
use crate::openapi::errors::{API_KEY, QUERY};
use crate::path::PathIds;
use crate::query::{QueryString, parse_bool};
use crate::state::ApiState;
use axum::extract::State;
use axum::http::StatusCode;
use tributary_domain::access::AppsWrite;

#[utoipa::path(
    delete, path = "/api/v1/apps/{appId}/cost-sources/{network}", tag = "Analytics",
    operation_id = "deleteCostSource", summary = "Remove a cost source",
    description = "Removes the settings and credentials. The imported costs stay, unless \
                   `removeCosts` is true; without them, manual costs of the same days count again. \
                   Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = String, Path, description = "`network_a` (Meta), `network_b` (Google Ads) or \
            `network_c` (TikTok)."),
        ("If-Match" = Option<String>, Header, description = "ETag of the version to remove."),
        ("removeCosts" = Option<bool>, Query,
            description = "Whether to remove the imported costs as well. Default: false."),
    ),
    extensions(("x-errors" = json!([API_KEY, QUERY, [
        Code::LiveOnly, Code::AppNotFound, Code::NetworkNotFound, Code::VersionConflict
    ]]))),
    responses((status = 204, description = "The cost source is removed."))
)]
pub(crate) async fn delete(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<StatusCode, ApiError> {
    let (app, network) = (ids.app()?, reporting_network(&ids)?);
    let with_costs = query.read(|query| query.optional("removeCosts", parse_bool))?;
    let with_costs = with_costs.unwrap_or_default();
    let origin = caller.origin(&state);
    state
        .store
        .remove_cost_source(
            &caller.authorized,
            app,
            network,
            with_costs,
            precondition,
            origin,
        )
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
