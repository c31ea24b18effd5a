//! `POST /api/v1/apps/{appId}/held/decisions` — releases or rejects all matching held installs.

use super::fields::{DecisionsFields, HeldQuery};
use crate::body::{Envelope, JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::InstallsReview;
use tributary_store::HoldReviewCount;
use utoipa::ToSchema;

/// Result of a decision about many installs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "HeldDecided")]
struct DecidedOut {
    /// Number of installs decided.
    #[schema(maximum = 100)]
    decided: u64,
    /// True if more held installs match. Repeat the request to decide about them.
    has_more: bool,
}

type DecidedEnvelope = Envelope<DecidedOut>;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/held/decisions", tag = "Held installs",
    operation_id = "decideManyHeld",
    summary = "Release or reject many held installs",
    description = "Decides about the installs in the state `held` that match all given fields, \
                   newest first, at most 100 per request. At least one of `flag`, `linkId`, `from` \
                   and `to` is required. Affects only the key's environment. Requires \
                   `apps:write`.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(DecisionsFields), description = "The decision and the filter.",
        example = json!({"decision": "reject", "flag": "install_burst", "from": "2026-01-01"})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The number of installs decided.",
        body = inline(DecidedEnvelope),
        example = json!({"data": {"decided": 12, "hasMore": false}})))
)]
pub(crate) async fn decide_many(
    caller: Caller<InstallsReview>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let (decision, query) = body.read_whole(HeldQuery::from_body)?;
    let app = ids.app()?;
    let reader = caller.authorized.read_access();
    let filter = query.into_filter(&state, &reader, app).await?;
    let origin = caller.origin(&state);
    let HoldReviewCount { decided, has_more } = state
        .store
        .review_installs(&caller.authorized, app, filter, decision, origin)
        .await?;
    Ok(JsonResponse::ok(DecidedOut { decided, has_more }))
}
