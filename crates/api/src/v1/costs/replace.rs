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
    /// Number of rows of a CSV file that were skipped because they contain totals.
    skipped: usize,
}

type StoredEnvelope = Envelope<StoredOut>;

#[utoipa::path(
    put, path = "/api/v1/apps/{appId}/costs", tag = "Analytics", operation_id = "putCosts",
    summary = "Store ad costs",
    description = "Each cost replaces the stored cost for the same day, network and campaign; an \
                   amount of 0 removes it. Other costs are unchanged. Either all costs are stored \
                   or none. CSV (`text/csv`) has the columns `day`, `network`, `campaign`, \
                   `amount` and `currency` in any order, or is an export of Meta Ads Manager, \
                   Google Ads or TikTok Ads Manager by day: its columns are recognised by their \
                   headers, rows of the same day and campaign are added up, and rows with totals \
                   are skipped. Amounts in CSV may be written as `1,212.50` or `1.212,50`; an \
                   ambiguous `1,212` is rejected unless other amounts in the file show the decimal \
                   mark. Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = Option<String>, Query,
            description = "CSV only. Network of all rows, for exports that do not show it."),
        ("currency" = Option<String>, Query,
            description = "CSV only. Currency of all rows, for exports that do not show it."),
        ("dayColumn" = Option<String>, Query, description = "CSV only. Header of the day."),
        ("campaignColumn" = Option<String>, Query,
            description = "CSV only. Header of the campaign; empty for costs without a campaign."),
        ("amountColumn" = Option<String>, Query, description = "CSV only. Header of the amount."),
        ("currencyColumn" = Option<String>, Query,
            description = "CSV only. Header of the currency."),
    ),
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
        example = json!({"data": {"stored": 1, "skipped": 0}})))
)]
pub(crate) async fn replace(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
    CostsBody(table): CostsBody,
) -> Result<impl IntoResponse, ApiError> {
    let app = ids.app()?;
    let origin = caller.origin(&state);
    let stored = state
        .store
        .put_costs(&caller.authorized, app, table.costs, origin)
        .await?;
    Ok(JsonResponse::ok(StoredOut {
        stored,
        skipped: table.skipped,
    }))
}
