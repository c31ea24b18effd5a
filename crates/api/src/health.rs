//! `/healthz` and `/readyz`.

use crate::body::{Answer, Envelope};
use crate::error::ApiError;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use std::time::{Duration, Instant};
use tributary_domain::exchange::{Staleness, euro_in_dollars, latest_day, staleness};
use tributary_domain::vocabulary::day::Day;
use utoipa::ToSchema;

/// How the process does.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
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
    Answer::ok(Health { status: "alive" })
}

/// How long a commit that worked speaks for the next one.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Asks the database to commit, once at a time and at most once a second: whoever asks often, from wherever,
/// must not become a load of their own. A failure is not remembered. The day of the latest rates is read along.
#[derive(Debug, Default)]
pub struct Readiness(tokio::sync::Mutex<Option<(Instant, Day)>>);

impl Readiness {
    async fn probe(&self, state: &ApiState) -> Result<Day, ApiError> {
        let mut worked = self.0.lock().await;
        if let Some((at, rates)) = *worked
            && at.elapsed() < PROBE_INTERVAL
        {
            return Ok(rates);
        }
        *worked = None;
        state.store.commit_probe(state.source.now()).await?;
        // The rate between dollar and euro is enough: each file of the ECB has all its currencies of a day and is stored
        // as a whole, and every rate against the euro needs this one.
        let mut imported = None;
        for currency in euro_in_dollars() {
            imported = imported.max(state.store.latest_rate_day(currency).await?);
        }
        let rates = latest_day(imported);
        *worked = Some((Instant::now(), rates));
        Ok(rates)
    }
}

/// The service can commit: it asks the database to.
#[utoipa::path(
    get, path = "/readyz", tag = "Operations", operation_id = "getReadiness", security(()),
    summary = "Can the service commit?",
    responses((status = 200, description = "It can.", body = inline(ReadyEnvelope),
        example = json!({"data": {"status": "ready", "rates": {"day": "2026-01-02", "stale": false}}})))
)]
pub(crate) async fn ready(State(state): State<ApiState>) -> Result<impl IntoResponse, ApiError> {
    let latest = state.readiness.probe(&state).await?;
    Ok(Answer::ok(Ready {
        status: "ready",
        rates: RatesOut::on(latest, Day::of(state.source.now())),
    }))
}

pub(crate) type HealthEnvelope = Envelope<Health>;

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
