//! `POST /api/track/events` — accepts a batch of events from one device.

use super::body::TrackBody;
use super::caller::EnabledSdkCaller;
use super::event_fields::{self, ParsedSdkEvent, RejectedEvent, into_sdk_event};
use crate::body::JsonResponse;
use crate::error::{ApiError, Code};
use crate::fields::{Fields, InputValue, described_body, list_as, text_as};
use crate::openapi::errors::{SDK_BODY, SDK_KEY};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::sdk::{BATCH_EVENTS_MAX, SdkEventOutcome, SdkRequestContext};
use tributary_domain::ledger::sdk_policy;
use tributary_domain::vocabulary::fault::{Fault, FaultCode, Problem};
use utoipa::ToSchema;

/// Outcome of one event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OutcomeOut {
    /// The event id that the SDK sent or that the service created. Null for a rejected event
    /// without a valid id.
    event_id: Option<String>,
    /// `accepted`, `duplicate` or `rejected`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RejectionOut>,
}

/// Reason why an event was rejected.
#[derive(Debug, Serialize, ToSchema)]
struct RejectionOut {
    code: &'static str,
    message: &'static str,
    /// Invalid fields, as paths inside the event.
    details: Vec<DetailOut>,
}

/// An invalid field.
#[derive(Debug, Serialize, ToSchema)]
struct DetailOut {
    field: String,
    code: &'static str,
    message: String,
}

impl OutcomeOut {
    fn of(event_id: String, acceptance: SdkEventOutcome) -> Self {
        let status = match acceptance {
            SdkEventOutcome::Accepted => "accepted",
            SdkEventOutcome::Duplicate => "duplicate",
        };
        Self {
            event_id: Some(event_id),
            status,
            error: None,
        }
    }
}

impl From<RejectedEvent> for OutcomeOut {
    fn from(rejected: RejectedEvent) -> Self {
        let detail = |fault: &Fault| DetailOut {
            field: fault.field.clone(),
            code: fault.code.as_str(),
            message: fault.message.clone(),
        };
        let error = RejectionOut {
            code: Code::ValidationFailed.as_str(),
            message: "Event rejected; other events in the batch are not affected. See details.",
            details: rejected.faults.iter().map(detail).collect(),
        };
        Self {
            event_id: rejected.external_id,
            status: "rejected",
            error: Some(error),
        }
    }
}

/// The response.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the envelope that JsonResponse writes")]
struct OutcomesEnvelope {
    data: Vec<OutcomeOut>,
}

described_body! {
    /// Events from one device.
    BatchFields("EventBatch") = batch
}

#[utoipa::path(
    post, path = "/api/track/events", tag = "SDK", operation_id = "sendEvents",
    summary = "Send a device's events",
    description = "Returns one outcome per event, in order. An invalid event does not affect the \
                   others. Events from a device that was never configured are stored without \
                   attribution. The body may also be sent as `text/plain`, and the key as `?key=`.",
    security(("sdkKey" = [])),
    request_body(content = inline(BatchFields), description = "The events.", example = json!({
        "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "events": [{
            "eventId": "0b7f0b1e-5d0c-4a43-9c39-0c2f4f2f7a11",
            "name": "purchase",
            "timestampMs": 1_767_225_600_000_i64,
            "revenue": 9.99,
            "currency": "EUR",
            "params": {"sku": "coins_100"},
            "consent": {"adUserData": true, "adPersonalization": false}
        }]
    })),
    extensions(("x-errors" = json!([SDK_KEY, SDK_BODY, [Code::SdkDisabled]]))),
    responses((status = 202, description = "Outcome of each event.",
        body = inline(OutcomesEnvelope),
        example = json!({"data": [
            {"eventId": "0b7f0b1e-5d0c-4a43-9c39-0c2f4f2f7a11", "status": "accepted"},
            {"eventId": "e2", "status": "rejected", "error": {
                "code": "validation_failed",
                "message": "Event rejected; other events in the batch are not affected. See details.",
                "details": [{"field": "name", "code": "required", "message": "Required."}]
            }}
        ]})))
)]
pub(crate) async fn events(
    EnabledSdkCaller(caller): EnabledSdkCaller,
    State(state): State<ApiState>,
    body: TrackBody,
) -> Result<impl IntoResponse, ApiError> {
    let (device, events) = body.read(batch)?;
    let received_at = state.runtime.now();
    let random = state.runtime.id_bytes();
    let mut valid = Vec::with_capacity(events.len());
    let read: Vec<Result<String, RejectedEvent>> = events
        .into_iter()
        .zip(0..)
        .map(|(event, index)| {
            let event = into_sdk_event(event?, index, received_at, random);
            let external_id = event.external_id.clone();
            valid.push(event);
            Ok(external_id)
        })
        .collect();
    let context = SdkRequestContext {
        app: caller.app.id,
        environment: caller.environment,
        device,
        received_at,
        country: caller.geo.country.clone(),
        policy: sdk_policy(&caller.app),
        requires_attestation: caller.app.requires_attestation(),
        revenue_events: caller.app.revenue_events.clone(),
    };
    let accepted = if valid.is_empty() {
        Vec::new()
    } else {
        state.store.accept_sdk_events(context, valid).await?
    };
    outcomes(read, accepted).map(JsonResponse::accepted)
}

type ParsedEvents = Vec<Result<ParsedSdkEvent, RejectedEvent>>;

fn batch(fields: &mut Fields<'_>) -> Option<(DeviceKey, ParsedEvents)> {
    let device = fields.required("deviceId", text_as(DeviceKey::parse));
    let events = list_as("a list of events", items).size(1..=BATCH_EVENTS_MAX);
    let events = fields.required("events", events);
    fields.declare_items("events", event_fields::fields);
    Some((device?, events?))
}

fn items(items: Vec<InputValue<'_>>) -> Result<ParsedEvents, Problem> {
    let problem = |code, message: String| Err(Problem::new(code, message));
    match items.len() {
        0 => problem(
            FaultCode::TooShort,
            "Must contain at least one event.".to_owned(),
        ),
        1..=BATCH_EVENTS_MAX => Ok(items.into_iter().map(event_fields::read).collect()),
        _ => {
            let message = format!("Must contain at most {BATCH_EVENTS_MAX} events.");
            problem(FaultCode::TooLong, message)
        }
    }
}

/// Merges the store's results and the rejected events, in the order of the batch. `read` contains
/// the ids of the valid events.
fn outcomes(
    read: Vec<Result<String, RejectedEvent>>,
    accepted: Vec<SdkEventOutcome>,
) -> Result<Vec<OutcomeOut>, ApiError> {
    let mut accepted = accepted.into_iter();
    read.into_iter()
        .map(|read| match read {
            Err(rejected) => Ok(rejected.into()),
            Ok(external_id) => accepted
                .next()
                .map(|acceptance| OutcomeOut::of(external_id, acceptance))
                .ok_or_else(ApiError::internal),
        })
        .collect()
}
