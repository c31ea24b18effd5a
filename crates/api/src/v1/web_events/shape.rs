//! JSON form of a validated web event.

use crate::body::Envelope;
use crate::time_text::rfc3339;
use crate::v1::events::shape::{self, EventOut};
use serde::Serialize;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::event::Event;
use tributary_domain::event::web::{PreviewedClick, UncreditedReason, WebEventPreview};
use tributary_domain::integration::Network;
use utoipa::ToSchema;

/// What a web event would cause. Nothing is stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ValidatedWebEvent {
    event_id: String,
    /// Always `valid`. Other outcomes are errors.
    status: &'static str,
    /// True if the same event is stored already. It would be neither recorded nor forwarded again.
    duplicate: bool,
    /// Time of arrival; for a duplicate, that of the stored event.
    #[schema(format = DateTime)]
    received_at: String,
    /// The event as the event log would show it, with amounts, attribution and deliveries. Its `id`
    /// is made up. For a duplicate, this is the stored event without its deliveries; null if the
    /// event was removed after its retention time.
    event: Option<EventOut>,
    /// Whether this would be the first payment of the device.
    first_payment: bool,
    /// Stored events of other sources that report the same, and would stop counting: those of an
    /// SDK under the same `eventId`, and Stripe's of the payment whose id is the `eventId`. They
    /// would get `duplicateOf` and would not be forwarded.
    replaces: Vec<ReplacedEvent>,
    /// The click that the event names; null for a duplicate whose click is not stored any more.
    click: Option<ValidatedClick>,
}

/// A stored event that a validated web event would replace.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplacedEvent {
    /// The event's id in Tributary.
    id: String,
    /// The sender's event id.
    event_id: String,
    /// `sdk` or `billing`.
    source: &'static str,
    name: String,
}

/// The click that a validated web event names.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ValidatedClick {
    /// Signed click id.
    id: String,
    link_id: String,
    #[schema(format = DateTime)]
    clicked_at: String,
    #[schema(inline, value_type = Option<crate::choices::NetworkChoice>)]
    network: Option<&'static str>,
    /// Whether the event would be credited to this click.
    credited: bool,
    /// Reason why it would not: `test_link` (`web-events` refuses the event), `duplicate`, or
    /// `original_transaction` (the event is credited to the click of its payment).
    reason: Option<&'static str>,
}

pub(super) type ValidatedEnvelope = Envelope<ValidatedWebEvent>;

impl ValidatedWebEvent {
    /// Builds the JSON form.
    pub(super) fn of(event_id: String, preview: WebEventPreview, tokens: &ClickTokens) -> Self {
        let is_duplicate = preview.accepted.is_duplicate;
        let planned = (!is_duplicate).then_some(preview.planned);
        let event = preview.event;
        Self {
            event_id,
            status: "valid",
            duplicate: is_duplicate,
            received_at: rfc3339(preview.accepted.received_at),
            first_payment: event.as_ref().is_some_and(|event| event.first_payment),
            event: event.map(|event| EventOut::of_preview(event, planned, tokens)),
            replaces: preview
                .replaced
                .into_iter()
                .map(ReplacedEvent::from)
                .collect(),
            click: preview.click.map(|click| ValidatedClick::of(click, tokens)),
        }
    }
}

impl From<Event> for ReplacedEvent {
    fn from(event: Event) -> Self {
        Self {
            id: event.id.to_string(),
            event_id: event.external_id,
            source: event.source.as_str(),
            name: event.name,
        }
    }
}

impl ValidatedClick {
    fn of(PreviewedClick { click, uncredited }: PreviewedClick, tokens: &ClickTokens) -> Self {
        Self {
            id: tokens.sign(click.app, click.id),
            link_id: click.link.to_string(),
            clicked_at: rfc3339(click.clicked_at),
            network: click.network.map(Network::as_str),
            credited: uncredited.is_none(),
            reason: uncredited.map(UncreditedReason::as_str),
        }
    }
}

/// Returns an example for the OpenAPI description.
pub(super) fn example() -> serde_json::Value {
    serde_json::json!({
        "eventId": "order-1001",
        "status": "valid",
        "duplicate": false,
        "receivedAt": "2026-01-01T00:00:01.000Z",
        "event": shape::example(),
        "firstPayment": true,
        "replaces": [{
            "id": "evt_01k9z3v7q8e4r9m2x5c6b7n8d6",
            "eventId": "evt_1SVqk2LkdIwHu7ixUEgbFdYF",
            "source": "billing",
            "name": "purchase"
        }],
        "click": {
            "id": "clk_030c1g60r30c1g60r30c1g60r354nfv34zghh9c074ps0hgy06",
            "linkId": "lnk_01k9z3v7q8e4r9m2x5c6b7n8d1",
            "clickedAt": "2026-01-01T00:00:00.000Z",
            "network": "network_a",
            "credited": true,
            "reason": null
        }
    })
}
