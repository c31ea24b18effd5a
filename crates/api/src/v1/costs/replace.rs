//! `PUT /api/v1/apps/{appId}/costs` — stores ad costs.

use super::fields::{CostsBody, CostsFields};
use crate::body::{Envelope, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::AppsWrite;
use utoipa::ToSchema;

/// Result of storing costs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "CostsStored")]
struct StoredOut {
    /// Number of stored costs.
    #[schema(maximum = 5_000)]
    stored: u64,
}

type StoredEnvelope = Envelope<StoredOut>;

#[utoipa::path(
    put, path = "/api/v1/apps/{appId}/costs", tag = "Analytics", operation_id = "putCosts",
    summary = "Store ad costs",
    description = "Each cost replaces the stored cost for the same day, network and campaign; an \
                   amount of 0 removes it. Other costs are unchanged. Either all costs are stored \
                   or none. CSV (`text/csv`) has the columns `day`, `network`, `campaign`, \
                   `amount` and `currency` in any order. Requires `apps:write` and a live key.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(description = "Costs as JSON, or as CSV with a header row.", content(
        (inline(CostsFields) = "application/json", example = json!({
            "costs": [
                {"day": "2026-01-01", "network": "network_a", "campaign": "120210", "amount": 80, "currency": "EUR"}
            ]
        })),
        (String = "text/csv", example = json!(
            "day,network,campaign,amount,currency\r\n2026-01-01,network_a,120210,80,EUR\r\n"
        )),
    )),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [Code::LiveOnly, Code::AppNotFound]]))),
    responses((status = 200, description = "The number of stored costs.",
        body = inline(StoredEnvelope),
        example = json!({"data": {"stored": 1}})))
)]
pub(crate) async fn replace(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    CostsBody(costs): CostsBody,
) -> Result<impl IntoResponse, ApiError> {
    let app = ids.app()?;
    let origin = caller.origin(&state);
    let stored = state
        .store
        .put_costs(&caller.authorized, app, costs, origin)
        .await?;
    Ok(JsonResponse::ok(StoredOut { stored }))
}
