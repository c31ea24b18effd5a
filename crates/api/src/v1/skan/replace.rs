//! `PUT /api/v1/apps/{appId}/skan` — replaces the configuration.

use super::fields::{SkanDocument, read_document};
use super::shape::{SkanEnvelope, answer, example};
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::if_match::IfMatch;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;

#[utoipa::path(
    put, path = "/api/v1/apps/{appId}/skan", tag = "Conversion value",
    operation_id = "replaceSkan", summary = "Replace the conversion-value configuration",
    description = "A change that affects what values mean creates a new version; saving the same \
                   document again does not. Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("If-Match" = Option<String>, Header,
            description = "ETag or version to replace."),
    ),
    request_body(content = inline(SkanDocument), description = "The complete document.",
        example = json!({
        "enabled": true,
        "currency": "USD",
        "acceptTestSignals": false,
        "windows": [
            {
                "index": 0, "enabled": true, "lockOn": {"fineValue": 63},
                "values": [
                    {
                        "name": "Paid 50 or more", "fineValue": 63, "coarseValue": "high", "lock": true,
                        "conditions": [{"event": "purchase", "minCount": 1, "minRevenue": 50.00}]
                    },
                    {
                        "name": "Paid", "fineValue": 40, "coarseValue": "high",
                        "conditions": [{"event": "purchase", "minCount": 1}]
                    },
                    {
                        "name": "Install", "fineValue": 0, "coarseValue": "low",
                        "conditions": [{"event": "install", "minCount": 1}]
                    }
                ]
            },
            {
                "index": 1, "enabled": true,
                "values": [{
                    "name": "Paid", "coarseValue": "high",
                    "conditions": [{"event": "purchase", "minCount": 1}]
                }]
            }
        ]
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::VersionConflict
    ]]))),
    responses((status = 200, description = "The configuration.", body = inline(SkanEnvelope),
        headers(("ETag" = String)), example = json!(example())))
)]
pub(crate) async fn replace(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let document = body.read_whole(read_document)?;
    let (app, origin) = (ids.app()?, caller.origin(&state));
    let store = &state.store;
    let after = store
        .put_skan(&caller.authorized, app, document, precondition, origin)
        .await?;
    Ok(answer(&after))
}
