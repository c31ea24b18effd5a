//! `/healthz` and `/readyz`.

use crate::body::Answer;
use crate::error::ApiError;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
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

/// The service can commit: it asks the database to, at this moment.
#[utoipa::path(
    get, path = "/readyz", tag = "Operations", operation_id = "getReadiness", security(()),
    summary = "Can the service commit?",
    responses((status = 200, description = "It can.", body = inline(HealthEnvelope),
        example = json!({"data": {"status": "ready"}})))
)]
pub(crate) async fn ready(State(state): State<ApiState>) -> Result<impl IntoResponse, ApiError> {
    state.store.commit_probe(state.source.now()).await?;
    Ok(Answer::ok(Health { status: "ready" }))
}

/// The envelope of an answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the envelope that Answer writes")]
pub(crate) struct HealthEnvelope {
    data: Health,
}
