//! `/healthz` and `/readyz`.

use crate::body::{Envelope, JsonResponse};
use crate::error::ApiError;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::exchange::{Staleness, staleness};
use tributary_domain::vocabulary::day::Day;
use utoipa::ToSchema;

/// Liveness of the process.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub(crate) struct LivenessOut {
    /// `alive`.
    status: &'static str,
}

/// Readiness of the service.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ready {
    /// `ready`.
    status: &'static str,
    rates: RatesOut,
    /// Number of servers of a distributed database that do not respond. Only the apps on them are
    /// unavailable. 0 if the database is not distributed.
    unreachable_workers: usize,
}

/// Exchange rates in use.
#[derive(Debug, Serialize, ToSchema)]
struct RatesOut {
    /// Day of the latest US dollar rate.
    #[schema(format = Date)]
    day: String,
    /// True when newer rates are overdue. The service keeps using the latest rates.
    stale: bool,
}

impl RatesOut {
    fn on(latest: Day, today: Day) -> Self {
        Self {
            day: latest.to_string(),
            stale: staleness(latest, today) != Staleness::Fresh,
        }
    }
}

/// Reports that the process is running. Does not check the database, because restarting the process
/// would not fix the database.
#[utoipa::path(
    get, path = "/healthz", tag = "Operations", operation_id = "getHealth", security(()),
    summary = "Check liveness",
    responses((status = 200, description = "The process is alive.", body = inline(HealthEnvelope),
        example = json!({"data": {"status": "alive"}})))
)]
pub(crate) async fn alive() -> impl IntoResponse {
    JsonResponse::ok(LivenessOut { status: "alive" })
}

/// Checks that the database can commit.
#[utoipa::path(
    get, path = "/readyz", tag = "Operations", operation_id = "getReadiness", security(()),
    summary = "Check readiness",
    responses((status = 200, description = "The database can commit.", body = inline(ReadyEnvelope),
        example = json!({"data": {"status": "ready", "rates": {"day": "2026-01-02", "stale": false},
            "unreachableWorkers": 0}})))
)]
pub(crate) async fn ready(State(state): State<ApiState>) -> Result<impl IntoResponse, ApiError> {
    let now = state.runtime.now();
    let latest = state.readiness.probe(&*state.store, now).await?;
    Ok(JsonResponse::ok(Ready {
        status: "ready",
        rates: RatesOut::on(latest, Day::of(now)),
        unreachable_workers: state.store.unreachable_workers(),
    }))
}

pub(crate) type HealthEnvelope = Envelope<LivenessOut>;

pub(crate) type ReadyEnvelope = Envelope<Ready>;

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn workers_that_do_not_respond_are_counted() {
        let ready = Ready {
            status: "ready",
            rates: RatesOut::on(Day::from_days(0), Day::from_days(0)),
            unreachable_workers: 2,
        };
        let shown = serde_json::to_value(ready).unwrap();
        assert_eq!(shown["unreachableWorkers"], 2);
    }

    #[rstest]
    #[case::one_week_old("2024-03-25", false)]
    #[case::more_than_one_week_old("2024-03-26", true)]
    fn rates_are_stale_after_a_week(#[case] today: &str, #[case] stale: bool) {
        let day = |text| Day::parse(text).unwrap();
        let shown = RatesOut::on(day("2024-03-18"), day(today));
        assert_eq!((shown.day.as_str(), shown.stale), ("2024-03-18", stale));
    }
}
