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

/// How the process does.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LivenessOut {
    /// `alive`.
    status: &'static str,
}

/// How the service does.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ready {
    /// `ready`.
    status: &'static str,
    rates: RatesOut,
}

/// The exchange rates that money is counted by.
#[derive(Debug, Serialize, ToSchema)]
struct RatesOut {
    /// The day of the dollar's latest rate.
    #[schema(format = Date)]
    day: String,
    /// Whether newer ones should have come by now. The service works on with those that it has.
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

/// The process is alive. Says nothing of the database: restarting would not mend that.
#[utoipa::path(
    get, path = "/healthz", tag = "Operations", operation_id = "getHealth", security(()),
    summary = "Is the process alive?",
    responses((status = 200, description = "It is.", body = inline(HealthEnvelope),
        example = json!({"data": {"status": "alive"}})))
)]
pub(crate) async fn alive() -> impl IntoResponse {
    JsonResponse::ok(LivenessOut { status: "alive" })
}

/// The service can commit: it asks the database to.
#[utoipa::path(
    get, path = "/readyz", tag = "Operations", operation_id = "getReadiness", security(()),
    summary = "Can the service commit?",
    responses((status = 200, description = "It can.", body = inline(ReadyEnvelope),
        example = json!({"data": {"status": "ready", "rates": {"day": "2026-01-02", "stale": false}}})))
)]
pub(crate) async fn ready(State(state): State<ApiState>) -> Result<impl IntoResponse, ApiError> {
    let now = state.runtime.now();
    let latest = state.readiness.probe(&*state.store, now).await?;
    Ok(JsonResponse::ok(Ready {
        status: "ready",
        rates: RatesOut::on(latest, Day::of(now)),
    }))
}

pub(crate) type HealthEnvelope = Envelope<LivenessOut>;

pub(crate) type ReadyEnvelope = Envelope<Ready>;

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::of_this_week("2024-03-25", false)]
    #[case::of_long_ago("2024-03-26", true)]
    fn rates_are_stale_after_a_week(#[case] today: &str, #[case] stale: bool) {
        let day = |text| Day::parse(text).unwrap();
        let shown = RatesOut::on(day("2024-03-18"), day(today));
        assert_eq!((shown.day.as_str(), shown.stale), ("2024-03-18", stale));
    }
}
