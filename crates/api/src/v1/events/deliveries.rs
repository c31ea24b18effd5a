//! An event's deliveries, as the event list shows them.

use crate::error::ApiError;
use crate::state::ApiState;
use crate::time_text::rfc3339;
use serde::Serialize;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::event::Event;
use tributary_domain::forwarding::plan::PlannedDelivery;
use tributary_domain::forwarding::{Delivery, DeliveryStatus, SkipReason};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, EventId};
use utoipa::ToSchema;

/// Status of an event that has no delivery to a network.
const SKIPPED: &str = "skipped";

/// The delivery of an event to one network, or the reason why there is none.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "EventDelivery")]
pub(crate) struct EventDeliveryOut {
    /// Delivery id; null if the event was skipped, or only validated.
    #[schema(example = "dlv_01k9z3v7q8e4r9m2x5c6b7n8d6")]
    id: Option<String>,
    #[schema(inline, value_type = crate::choices::NetworkChoice)]
    network: &'static str,
    /// The network's name for the event.
    network_event: Option<String>,
    /// Status of the delivery, or `skipped` if the event is not forwarded to this network.
    status: &'static str,
    /// Reason for the status. Always set for `skipped`, such as `not_mapped`.
    reason: Option<String>,
    attempts_made: u32,
    #[schema(format = DateTime)]
    next_attempt_at: Option<String>,
    #[schema(format = DateTime)]
    settled_at: Option<String>,
}

impl EventDeliveryOut {
    /// Merges an event's deliveries and skip reasons, sorted by network.
    pub(crate) fn all(
        deliveries: Vec<impl Into<Self>>,
        skipped: &[(Network, SkipReason)],
    ) -> Vec<Self> {
        let skipped = skipped.iter().copied().map(Self::from);
        let mut all: Vec<Self> = deliveries
            .into_iter()
            .map(Into::into)
            .chain(skipped)
            .collect();
        all.sort_by_key(|one| one.network);
        all
    }
}

impl From<Delivery> for EventDeliveryOut {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: Some(delivery.id.to_string()),
            network: delivery.network.as_str(),
            network_event: Some(delivery.network_event),
            status: delivery.status.as_str(),
            reason: delivery.reason,
            attempts_made: delivery.attempts_made,
            next_attempt_at: delivery.next_attempt_at.map(rfc3339),
            settled_at: delivery.settled_at.map(rfc3339),
        }
    }
}

impl From<PlannedDelivery> for EventDeliveryOut {
    fn from(planned: PlannedDelivery) -> Self {
        Self {
            id: None,
            network: planned.network.as_str(),
            network_event: Some(planned.network_event),
            status: DeliveryStatus::Pending.as_str(),
            reason: None,
            attempts_made: 0,
            next_attempt_at: Some(rfc3339(planned.due_at)),
            settled_at: None,
        }
    }
}

impl From<(Network, SkipReason)> for EventDeliveryOut {
    fn from((network, skip): (Network, SkipReason)) -> Self {
        Self {
            id: None,
            network: network.as_str(),
            network_event: None,
            status: SKIPPED,
            reason: Some(skip.as_str().to_owned()),
            attempts_made: 0,
            next_attempt_at: None,
            settled_at: None,
        }
    }
}

/// Deliveries of several events, loaded in one query.
#[derive(Debug)]
pub(crate) struct EventDeliveries(BTreeMap<EventId, Vec<Delivery>>);

impl EventDeliveries {
    /// Loads the deliveries. Only live events have deliveries.
    pub(crate) async fn load(
        state: &ApiState,
        app: AppId,
        events: &[Event],
    ) -> Result<Self, ApiError> {
        let live = events
            .iter()
            .filter(|event| event.environment == Environment::Live);
        let ids: Vec<EventId> = live.map(|event| event.id).collect();
        let mut by_event = BTreeMap::new();
        if ids.is_empty() {
            return Ok(Self(by_event));
        }
        for delivery in state.store.deliveries_of(app, ids).await? {
            let its: &mut Vec<Delivery> = by_event.entry(delivery.event).or_default();
            its.push(delivery);
        }
        Ok(Self(by_event))
    }

    /// Removes and returns the deliveries of one event.
    pub(crate) fn take(&mut self, event: EventId) -> Vec<Delivery> {
        self.0.remove(&event).unwrap_or_default()
    }
}

/// Returns example deliveries for the OpenAPI description.
pub(crate) fn examples() -> serde_json::Value {
    serde_json::json!([
        {
            "id": "dlv_01k9z3v7q8e4r9m2x5c6b7n8d6",
            "network": "network_a",
            "networkEvent": "Purchase",
            "status": "delivered",
            "reason": null,
            "attemptsMade": 1,
            "nextAttemptAt": null,
            "settledAt": "2026-01-01T00:00:02.000Z"
        },
        {
            "id": null,
            "network": "network_c",
            "networkEvent": null,
            "status": "skipped",
            "reason": "not_attributed",
            "attemptsMade": 0,
            "nextAttemptAt": null,
            "settledAt": null
        }
    ])
}
