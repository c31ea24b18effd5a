//! `POST /api/v1/apps/{appId}/integrations/{network}/test` — sends one test event to the network now.

use crate::body::{Envelope, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::probe::TestEventResult;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::AppsWrite;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::integration::{Integration, IntegrationStatus, Network};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use utoipa::ToSchema;

/// What a network made of a test event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "IntegrationTest")]
struct ProbedOut {
    /// Whether the network took it.
    accepted: bool,
    /// The status of its answer; null when none came.
    status: Option<u16>,
    duration_ms: u32,
    /// The network's code, or ours.
    code: Option<String>,
    /// The network's own words, cut and cleaned of secrets.
    #[schema(max_length = 512)]
    answer: Option<String>,
}

impl From<TestEventResult> for ProbedOut {
    fn from(probed: TestEventResult) -> Self {
        Self {
            accepted: probed.accepted,
            status: probed.status,
            duration_ms: probed.duration_ms,
            code: probed.code,
            answer: probed.answer,
        }
    }
}

type ProbedEnvelope = Envelope<ProbedOut>;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/integrations/{network}/test", tag = "Integrations",
    operation_id = "testIntegration", summary = "Send a test event to the network",
    description = "One harmless event, sent now with the integration's own settings and credentials, switched on or \
                   not. 200 says what the network answered, also where it refused. 422 says what is missing: \
                   `network_a` and `network_c` need a `testEventCode`, because without one their test events count. \
                   Needs `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("network" = String, Path, description = "`network_a` … `network_d`."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::NetworkNotFound, Code::ValidationFailed
    ]]))),
    responses((status = 200, description = "What the network made of it.", body = inline(ProbedEnvelope),
        example = json!({"data": {
            "accepted": true, "status": 200, "durationMs": 183, "code": null,
            "answer": "{\"events_received\":1}"
        }})))
)]
pub(crate) async fn test(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let app = ids.app()?;
    let reader = caller.authorized.read_access();
    let found = state.store.integrations(&reader, app).await?;
    let network = ids.network()?;
    let one = found.into_iter().find(|one| one.network == network);
    let one = one.ok_or(Refusal::NetworkNotFound)?;
    if let (IntegrationStatus::NotConfigured, Some(words)) = one.status(&QueueState::default()) {
        let place = if one.credentials.is_empty() {
            "credentials"
        } else {
            "settings"
        };
        return Err(missing(place, words));
    }
    let probed = state.probe.probe(reader.organization(), &one).await;
    let probed = probed.map_err(|words| missing(missing_field(&one), words))?;
    Ok(JsonResponse::ok(ProbedOut::from(probed)))
}

/// Where a complete integration lacks what a test needs.
fn missing_field(integration: &Integration) -> &'static str {
    let needs_code = matches!(integration.network, Network::A | Network::C);
    if needs_code && integration.text("testEventCode").is_none() {
        "settings.testEventCode"
    } else {
        "settings"
    }
}

fn missing(field: &str, words: String) -> ApiError {
    let mut faults = Faults::new();
    faults.add(field, Problem::new(FaultCode::Required, words));
    faults.into()
}
