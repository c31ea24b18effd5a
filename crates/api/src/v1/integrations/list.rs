//! `GET /api/v1/apps/{appId}/integrations` — the four integrations of an app.

use super::shape::{IntegrationListEnvelope, IntegrationOut, example};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::page::List;
use crate::path::PathIds;
use crate::query::Query;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/integrations", tag = "Integrations",
    operation_id = "listIntegrations", summary = "List integrations",
    description = "Always all four networks, in one page.",
    params(("appId" = String, Path, description = "The app's id.")),
    responses((status = 200, description = "The four.", body = inline(IntegrationListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: Caller<AppsRead>,
    ids: PathIds,
    query: Query,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    query.read(|_| ())?;
    let found = state
        .store
        .integrations(&caller.authorized, ids.app()?)
        .await?;
    Ok(List::whole(found.iter().map(IntegrationOut::of).collect()))
}
