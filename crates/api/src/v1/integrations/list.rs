//! `GET /api/v1/apps/{appId}/integrations` — the four integrations of an app.

use super::health::Healths;
use super::shape::{IntegrationListEnvelope, IntegrationOut, example};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::page::{List, PageQuery};
use crate::path::PathIds;
use crate::query::Query;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;
use tributary_domain::vocabulary::page::ListScope;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/integrations", tag = "Integrations",
    operation_id = "listIntegrations", summary = "List integrations",
    description = "Always all four networks, in one page.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("limit" = Option<i64>, Query, description = "Taken, as by every list; the four are one page.",
            minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "Never given out by this list."),
    ),
    responses((status = 200, description = "The four.", body = inline(IntegrationListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: Caller<AppsRead>,
    ids: PathIds,
    query: Query,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let asked = query.read(PageQuery::read)?;
    let app = ids.app()?;
    let scope = ListScope {
        list: "integrations",
        organization: caller.authorized.organization(),
        narrowed_by: app.to_string(),
    };
    // The four make one page whatever the limit, so no cursor was ever given out for this list.
    asked.open(&state, &scope)?;
    let found = state.store.integrations(&caller.authorized, app).await?;
    let health = Healths::load(&state, &caller.authorized, app).await?;
    let shape = |one| IntegrationOut::of(one, health.of(one));
    Ok(List::whole(found.iter().map(shape).collect()))
}
