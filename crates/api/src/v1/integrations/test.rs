//! `POST /api/v1/apps/{appId}/integrations/{network}/test` — sends a test event to the network.

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

/// A network's response to a test event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "IntegrationTest")]
struct ProbedOut {
    /// True if the network accepted the event.
    accepted: bool,
    /// HTTP status of the response; null if there was no response.
    status: Option<u16>,
    duration_ms: u32,
    /// Error code from the network or from Tributary.
    code: Option<String>,
    /// The network's response body, shortened and without secrets.
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
    description = "Sends one test event with the integration's settings and credentials, even if \
                   the integration is disabled. A 200 response contains the network's response, \
                   including a rejection. A 422 response lists what is missing: Meta (`network_a`) \
                   and TikTok (`network_c`) need a `testEventCode`, which marks the event as a \
                   test. Meta still counts the event. Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = String, Path, description = "`network_a` (Meta), `network_b` (Google Ads), \
            `network_c` (TikTok) or `network_d` (OpenAI Ads)."),
    ),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::NetworkNotFound, Code::ValidationFailed
    ]]))),
    responses((status = 200, description = "The network's response.", body = inline(ProbedEnvelope),
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
    if let (IntegrationStatus::NotConfigured, Some(message)) = one.status(&QueueState::default()) {
        let field = if one.credentials.is_empty() {
            "credentials"
        } else {
            "settings"
        };
        return Err(missing(field, message));
    }
    let probed = state.probe.probe(reader.organization(), &one).await;
    let probed = probed.map_err(|message| missing(missing_field(&one), message))?;
    Ok(JsonResponse::ok(ProbedOut::from(probed)))
}

/// Returns the field that is missing for a test, although the integration is configured.
fn missing_field(integration: &Integration) -> &'static str {
    let needs_code = matches!(integration.network, Network::A | Network::C);
    if needs_code && integration.text("testEventCode").is_none() {
        "settings.testEventCode"
    } else {
        "settings"
    }
}

fn missing(field: &str, message: String) -> ApiError {
    let mut faults = Faults::new();
    faults.add(field, Problem::new(FaultCode::Required, message));
    faults.into()
}
