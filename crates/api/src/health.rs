//! `/healthz` and `/readyz`.

use crate::body::Answer;
use crate::error::ApiError;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use std::time::{Duration, Instant};
use utoipa::ToSchema;

/// How the service does.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `alive` or `ready`.
    status: &'static str,
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
/// must not become a load of their own. A failure is not remembered.
#[derive(Debug, Default)]
pub struct Readiness(tokio::sync::Mutex<Option<Instant>>);

impl Readiness {
    async fn probe(&self, state: &ApiState) -> Result<(), ApiError> {
        let mut worked_at = self.0.lock().await;
        if worked_at.is_some_and(|at| at.elapsed() < PROBE_INTERVAL) {
            return Ok(());
        }
        *worked_at = None;
        state.store.commit_probe(state.source.now()).await?;
        *worked_at = Some(Instant::now());
        Ok(())
    }
}

/// The service can commit: it asks the database to.
#[utoipa::path(
    get, path = "/readyz", tag = "Operations", operation_id = "getReadiness", security(()),
    summary = "Can the service commit?",
    responses((status = 200, description = "It can.", body = inline(HealthEnvelope),
        example = json!({"data": {"status": "ready"}})))
)]
pub(crate) async fn ready(State(state): State<ApiState>) -> Result<impl IntoResponse, ApiError> {
    state.readiness.probe(&state).await?;
    Ok(Answer::ok(Health { status: "ready" }))
}

/// The envelope of an answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the envelope that Answer writes")]
pub(crate) struct HealthEnvelope {
    data: Health,
}
