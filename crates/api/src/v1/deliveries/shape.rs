//! JSON form of a delivery.

use crate::body::Envelope;
use crate::page::List;
use crate::time_text::rfc3339;
use serde::Serialize;
use tributary_domain::event::Event;
use tributary_domain::forwarding::DeliveryAttempt;
use tributary_store::DeliveryWithEvent;
use utoipa::ToSchema;

/// The delivery of one event to one network.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Delivery")]
pub(super) struct DeliveryOut {
    #[schema(example = "dlv_01k9z3v7q8e4r9m2x5c6b7n8d6")]
    id: String,
    /// The sender's event id; null if the event was deleted.
    event_id: Option<String>,
    /// The delivered event; null if it was deleted.
    event: Option<DeliveredEventOut>,
    #[schema(inline, value_type = crate::choices::NetworkChoice)]
    network: &'static str,
    /// The network's name for the event.
    network_event: String,
    /// Id that the network uses for deduplication. It is the same in every attempt, so that the
    /// network counts the event only once.
    dedup_id: String,
    #[schema(inline, value_type = crate::choices::DeliveryStatusChoice)]
    status: &'static str,
    /// Reason for the status: a code from the network or from Tributary.
    reason: Option<String>,
    #[schema(format = DateTime)]
    planned_at: String,
    /// Time at which the delivery reached its final status.
    #[schema(format = DateTime)]
    settled_at: Option<String>,
    /// Time of the next attempt, unless the integration is paused.
    #[schema(format = DateTime)]
    next_attempt_at: Option<String>,
    attempts_made: u32,
    /// Attempts, oldest first. At most 20 are included: the first one and the most recent others.
    #[schema(max_items = 20)]
    attempts: Vec<AttemptOut>,
}

/// The event of a delivery.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeliveredEventOut {
    /// The event's id in Tributary.
    id: String,
    /// The sender's event id.
    event_id: String,
    name: String,
}

/// One attempt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AttemptOut {
    /// Time at which the request was sent.
    #[schema(format = DateTime)]
    at: String,
    /// HTTP status of the response; null if there was no response.
    status: Option<u16>,
    duration_ms: u32,
    /// `delivered`, `retry`, `terminal_event`, `pause_integration` or `unknown`.
    verdict: &'static str,
    /// The network's response body, shortened and without secrets.
    #[schema(max_length = 512)]
    answer: Option<String>,
}

impl From<DeliveryWithEvent> for DeliveryOut {
    fn from(found: DeliveryWithEvent) -> Self {
        let delivery = found.delivery;
        Self {
            id: delivery.id.to_string(),
            event_id: found.event.as_ref().map(|event| event.external_id.clone()),
            event: found.event.map(DeliveredEventOut::from),
            network: delivery.network.as_str(),
            network_event: delivery.network_event,
            dedup_id: delivery.dedup_id,
            status: delivery.status.as_str(),
            reason: delivery.reason,
            planned_at: rfc3339(delivery.planned_at),
            settled_at: delivery.settled_at.map(rfc3339),
            next_attempt_at: delivery.next_attempt_at.map(rfc3339),
            attempts_made: delivery.attempts_made,
            attempts: delivery
                .attempts
                .into_iter()
                .map(AttemptOut::from)
                .collect(),
        }
    }
}

impl From<Event> for DeliveredEventOut {
    fn from(event: Event) -> Self {
        Self {
            id: event.id.to_string(),
            event_id: event.external_id,
            name: event.name,
        }
    }
}

impl From<DeliveryAttempt> for AttemptOut {
    fn from(attempt: DeliveryAttempt) -> Self {
        Self {
            at: rfc3339(attempt.at),
            status: attempt.status,
            duration_ms: attempt.duration_ms,
            verdict: attempt.verdict.as_str(),
            answer: attempt.answer,
        }
    }
}

pub(super) type DeliveryEnvelope = Envelope<DeliveryOut>;

pub(super) type DeliveryListEnvelope = List<DeliveryOut>;

/// Returns an example delivery for the OpenAPI description.
pub(super) fn example() -> serde_json::Value {
    serde_json::json!({
        "id": "dlv_01k9z3v7q8e4r9m2x5c6b7n8d6",
        "eventId": "order-1001",
        "event": {
            "id": "evt_01k9z3v7q8e4r9m2x5c6b7n8d5",
            "eventId": "order-1001",
            "name": "purchase"
        },
        "network": "network_a",
        "networkEvent": "Purchase",
        "dedupId": "5f1c7e0b9a3d4c2e8f60718293a4b5c6",
        "status": "failed",
        "reason": "2804003",
        "plannedAt": "2026-01-01T00:00:01.000Z",
        "settledAt": "2026-01-01T00:00:02.000Z",
        "nextAttemptAt": null,
        "attemptsMade": 1,
        "attempts": [{
            "at": "2026-01-01T00:00:01.820Z",
            "status": 400,
            "durationMs": 180,
            "verdict": "terminal_event",
            "answer": "Event Timestamp Too Old"
        }]
    })
}
