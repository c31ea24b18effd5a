//! `DELETE /api/v1/apps/{appId}/test-data` — wipes an app's test data.

use crate::body::{Envelope, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::TestDataWipe;
use tributary_store::{WIPE_REQUEST_TIME_MAX, WipeReport, run_wipe};
use utoipa::ToSchema;

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "TestDataWiped")]
struct WipedOut {
    /// True if everything was removed. Otherwise, repeat the request to continue.
    complete: bool,
    /// Number of removed clicks that test keys reported.
    clicks: u64,
    /// Number of removed devices.
    devices: u64,
    /// Number of removed events, including installs.
    events: u64,
    /// Number of removed billing notifications.
    billing_notifications: u64,
    /// Number of removed rows of figures.
    figures: u64,
}

impl From<WipeReport> for WipedOut {
    fn from(report: WipeReport) -> Self {
        let removed = report.removed;
        Self {
            complete: report.is_complete,
            clicks: removed.clicks,
            devices: removed.devices,
            events: removed.events,
            billing_notifications: removed.notifications,
            figures: removed.figures,
        }
    }
}

type WipedEnvelope = Envelope<WipedOut>;

#[utoipa::path(
    delete, path = "/api/v1/apps/{appId}/test-data", tag = "Apps",
    operation_id = "wipeTestData",
    summary = "Wipe an app's test data",
    description = "Permanently removes everything that test keys, and billing providers in their test \
                   environments, have recorded: clicks, devices, events, subscriptions and figures. \
                   Live data, links, keys and settings stay. Event ids are accepted again \
                   afterwards. Data that arrives during the wipe may stay. If `complete` is false, \
                   repeat the request to continue. Requires `apps:write`; a test key may do it, too.",
    params(("appId" = String, Path, description = "App id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The numbers of removed rows.",
        body = inline(WipedEnvelope),
        example = json!({"data": {
            "complete": true, "clicks": 2, "devices": 3, "events": 41, "billingNotifications": 0,
            "figures": 96
        }})))
)]
pub(crate) async fn delete(
    caller: Caller<TestDataWipe>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (app, origin) = (ids.app()?, caller.origin(&state));
    let (store, caller) = (state.store.as_ref(), &caller.authorized);
    let report = run_wipe(store, caller, app, origin, WIPE_REQUEST_TIME_MAX).await?;
    Ok(JsonResponse::ok(WipedOut::from(report)))
}
