//! `GET /api/v1/apps/{appId}/billing` — returns statistics about billing notifications.

use crate::body::{Envelope, JsonResponse};
use crate::caller::ReportCaller;
use crate::decimal::number;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::access::AppsRead;
use tributary_domain::app::{App, BillingProvider};
use tributary_domain::report::range::days_before;
use tributary_domain::report::share;
use tributary_domain::vocabulary::day::Day;
use tributary_store::BillingFigures;
use utoipa::ToSchema;

/// Number of days that the statistics cover.
const DAYS: i32 = 30;

/// Statistics about an app's billing notifications.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BillingFiguresOut {
    /// Number of days that the statistics cover, including today.
    days: i32,
    providers: Vec<ProviderOut>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProviderOut {
    /// `revenuecat`, `superwall`, `appstore`, `stripe`, `adapty` or `qonversion`.
    provider: &'static str,
    /// True if a secret is set. For the App Store, true once the first notification has arrived.
    configured: bool,
    /// URL that the provider must send notifications to.
    url: String,
    /// Connected providers that report the same payments, so that these count twice. While there is
    /// one for `appstore`, Apple's notifications are rejected. Connect one provider per store.
    overlaps_with: Vec<&'static str>,
    /// Number of stored notifications.
    notifications: i64,
    /// Number of notifications that became events.
    events: i64,
    /// Number of events matched to a device.
    matched: i64,
    /// Number of events without a device. The usual cause is that the app does not send
    /// `tributaryId` to the provider.
    unmatched: i64,
    /// `matched` divided by `events`; null if there are no events.
    #[schema(value_type = Option<f64>)]
    join_rate: Option<Box<RawValue>>,
    /// Number of requests that failed authentication. They count as live, because their environment
    /// is unknown.
    unauthorized: i64,
    /// Number of notifications that reused an id with different content.
    id_reuse: i64,
}

/// Returns the names of the connected providers that report the same payments.
pub(crate) fn overlapping_sources(app: &App, provider: BillingProvider) -> Vec<&'static str> {
    let others = app.overlapping_sources(provider).into_iter();
    others.map(BillingProvider::as_str).collect()
}

type BillingEnvelope = Envelope<BillingFiguresOut>;

impl ProviderOut {
    fn of(app: &App, base_url: &str, provider: BillingProvider, all: &[BillingFigures]) -> Self {
        let figures = all.iter().find(|one| one.provider == provider);
        let count = |of: fn(&BillingFigures) -> i64| figures.map_or(0, of);
        let (events, matched) = (count(|it| it.events), count(|it| it.matched));
        Self {
            provider: provider.as_str(),
            configured: app.has_provider(provider),
            url: format!("{base_url}/api/webhook/{}/{}", provider.as_str(), app.id),
            overlaps_with: overlapping_sources(app, provider),
            notifications: count(|it| it.notifications),
            events,
            matched,
            unmatched: events - matched,
            join_rate: share(matched, events).and_then(number),
            unauthorized: count(|it| it.unauthorized),
            id_reuse: count(|it| it.reused),
        }
    }
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/billing", tag = "Billing", operation_id = "getBilling",
    summary = "Get billing statistics",
    description = "Statistics for the last 30 days in the key's environment. Events without a \
                   device are neither attributed nor forwarded. If `unmatched` is high, make the \
                   app send its `tributaryId` to the provider. Requires `apps:read`.",
    params(("appId" = String, Path, description = "App id.")),
    extensions(("x-errors" = json!([API_KEY, [Code::AppNotFound]]))),
    responses((status = 200, description = "All providers.", body = inline(BillingEnvelope),
        example = json!({"data": {"days": 30, "providers": [{
            "provider": "revenuecat", "configured": true,
            "url": "https://t.example.com/api/webhook/revenuecat/app_01k9z3v7q8e4r9m2x5c6b7n8d0",
            "overlapsWith": [],
            "notifications": 1200, "events": 1000, "matched": 980, "unmatched": 20, "joinRate": 0.98,
            "unauthorized": 0, "idReuse": 0
        }]}})))
)]
pub(crate) async fn get(
    caller: ReportCaller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let app = state.store.app(&caller.authorized, ids.app()?).await?;
    let today = Day::of(state.runtime.now());
    let (reader, days) = (
        caller.authorized.analytics_access(),
        days_before(today, DAYS - 1)..=today,
    );
    let mut figures = state.store.billing_figures(&reader, app.id, days).await?;
    figures.retain(|one| one.environment == caller.authorized.environment());
    let providers = BillingProvider::ALL.iter();
    let providers = providers.map(|one| ProviderOut::of(&app, &state.base_url, *one, &figures));
    Ok(JsonResponse::ok(BillingFiguresOut {
        days: DAYS,
        providers: providers.collect(),
    }))
}
