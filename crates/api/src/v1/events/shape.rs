//! JSON form of an event.

use super::deliveries::EventDeliveryOut;
use crate::campaign::CampaignOut;
use crate::consent::ConsentOut;
use crate::decimal::number;
use crate::page::List;
use crate::time_text::rfc3339;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use tributary_domain::attribution::HoldState;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::event::{Credit, Event};
use tributary_domain::forwarding::Delivery;
use tributary_domain::forwarding::plan::PlannedDelivery;
use tributary_domain::ledger::Revenue;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_store::records::original_transaction;
use utoipa::ToSchema;

/// An event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Event")]
pub(crate) struct EventOut {
    /// The event's id in Tributary.
    #[schema(example = "evt_01k9z3v7q8e4r9m2x5c6b7n8d5")]
    id: String,
    /// The sender's event id; the same as `id` if none was sent.
    event_id: String,
    name: String,
    /// `sdk`, `billing` or `web`.
    source: &'static str,
    /// `live` or `test`.
    environment: &'static str,
    /// Time of the event, in milliseconds since 1970.
    timestamp_ms: i64,
    #[schema(format = DateTime)]
    received_at: String,
    device_id: Option<String>,
    /// True if `deviceId` is a placeholder that identifies no device, such as all zeros. Otherwise
    /// omitted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    device_id_placeholder: bool,
    user_id: Option<String>,
    revenue: Option<RevenueOut>,
    /// Web events: `eventId` of the payment that a renewal or refund refers to. Billing events: the
    /// store's id for the subscription's first transaction, if the provider sends it. Null after
    /// the device is erased.
    original_transaction_id: Option<String>,
    /// Web events: URL of the page. Null after the device is erased.
    source_url: Option<String>,
    /// Set if this event is a duplicate: id of the verified event for the same transaction. A
    /// duplicate does not count and is not forwarded.
    duplicate_of: Option<String>,
    /// The network, link and campaign that the event is credited to; null if the device was never
    /// configured.
    attribution: Option<CreditOut>,
    /// The user's consent when the event was tracked; omitted if the sender reports none with its
    /// events. The stricter of this and the device's consent holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    consent: Option<ConsentOut>,
    /// Deliveries by network, or the reasons why the event was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<EventDeliveryOut>)]
    deliveries: Option<Vec<EventDeliveryOut>>,
    /// Parameters as they were sent.
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    params: Option<Box<RawValue>>,
}

/// An event's revenue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RevenueOut {
    /// Amount as it was sent.
    #[schema(value_type = f64)]
    amount: Option<Box<RawValue>>,
    currency: Option<String>,
    /// Amount in US dollars at the rate for the event's day; null if there is no rate.
    #[schema(value_type = Option<f64>)]
    usd: Option<Box<RawValue>>,
    /// Day of the exchange rate.
    #[schema(format = Date)]
    rate_date: Option<String>,
    counted: bool,
    /// Reason why the revenue does not count: `unconvertible`, `negative`, `over_limit`, `zero`,
    /// `sdk_ignored`, `billing_source`, `payment_not_counted`, `duplicate_of_verified`.
    reason: Option<&'static str>,
}

/// The network, link and campaign that an event is credited to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreditOut {
    network: &'static str,
    match_type: &'static str,
    link_id: Option<String>,
    click_id: Option<String>,
    campaign: CampaignOut,
    /// `held` or `rejected` if the event does not count and is not forwarded, because its install is
    /// flagged; `released` if it was; null if the install was never held.
    hold: Option<&'static str>,
}

impl EventOut {
    /// Builds the JSON form. Click ids are signed.
    pub(crate) fn of(event: Event, deliveries: Vec<Delivery>, tokens: &ClickTokens) -> Self {
        let deliveries = EventDeliveryOut::all(deliveries, &event.skipped);
        Self {
            deliveries: Some(deliveries),
            ..Self::without_deliveries(event, |app, click| tokens.sign(app, click))
        }
    }

    /// Builds the JSON form of an event that is only validated. `planned` are the deliveries that it
    /// would cause, if it were recorded.
    pub(crate) fn of_preview(
        event: Event,
        planned: Option<Vec<PlannedDelivery>>,
        tokens: &ClickTokens,
    ) -> Self {
        let deliveries = planned.map(|planned| EventDeliveryOut::all(planned, &event.skipped));
        Self {
            deliveries,
            ..Self::without_deliveries(event, |app, click| tokens.sign(app, click))
        }
    }

    /// Builds the JSON form for exports. `click_text` signs click ids.
    pub(crate) fn without_deliveries(
        event: Event,
        click_text: impl FnOnce(AppId, ClickId) -> String,
    ) -> Self {
        let app = event.app;
        let original_transaction_id = original_transaction(&event).map(Cow::into_owned);
        let source_url = event.website.map(|website| website.source_url);
        Self {
            original_transaction_id,
            source_url: source_url.filter(|url| !url.is_empty()),
            id: event.id.to_string(),
            event_id: event.external_id,
            name: event.name,
            source: event.source.as_str(),
            environment: event.environment.as_str(),
            timestamp_ms: event.occurred_at.as_millis(),
            received_at: rfc3339(event.received_at),
            device_id_placeholder: event.device.as_ref().is_some_and(DeviceKey::is_placeholder),
            device_id: event.device.map(DeviceKey::into_string),
            user_id: event.user.map(UserKey::into_string),
            revenue: event.revenue.map(RevenueOut::from),
            duplicate_of: event.duplicate_of.map(|id| id.to_string()),
            attribution: event
                .credit
                .map(|credit| CreditOut::of(credit, app, click_text)),
            consent: event.consent.map(ConsentOut::from),
            deliveries: None,
            params: event
                .params
                .and_then(|text| RawValue::from_string(text).ok()),
        }
    }
}

impl From<Revenue> for RevenueOut {
    fn from(revenue: Revenue) -> Self {
        Self {
            amount: number(revenue.amount),
            currency: revenue
                .currency
                .map(|currency| currency.as_str().to_owned()),
            usd: revenue.usd.and_then(number),
            rate_date: revenue.rate_day.map(|day| day.to_string()),
            counted: revenue.uncounted.is_none(),
            reason: revenue
                .uncounted
                .map(tributary_domain::ledger::UncountedReason::as_str),
        }
    }
}

impl CreditOut {
    fn of(credit: Credit, app: AppId, click_text: impl FnOnce(AppId, ClickId) -> String) -> Self {
        Self {
            network: credit.network.as_str(),
            match_type: credit.match_type.as_str(),
            link_id: credit.link.map(|link| link.to_string()),
            click_id: credit.click.map(|click| click_text(app, click)),
            campaign: credit.campaign.into(),
            hold: credit.hold.map(HoldState::as_str),
        }
    }
}

pub(super) type EventListEnvelope = List<EventOut, EventPageMeta>;

/// Metadata about a page of events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventPageMeta {
    /// True if more events may exist.
    pub(super) has_more: bool,
    /// Cursor for the next page; null on the last page.
    pub(super) cursor: Option<String>,
    /// True if the search by `source`, `network` or `linkId` stopped after 20000 events, before the
    /// page was full. The next page continues from there.
    pub(super) stopped_early: bool,
}

/// Returns an example event for the OpenAPI description.
pub(crate) fn example() -> serde_json::Value {
    serde_json::json!({
        "id": "evt_01k9z3v7q8e4r9m2x5c6b7n8d5",
        "eventId": "0b7f0b1e-5d0c-4a43-9c39-0c2f4f2f7a11",
        "name": "purchase",
        "source": "sdk",
        "environment": "live",
        "timestampMs": 1_767_225_600_000_i64,
        "receivedAt": "2026-01-01T00:00:01.000Z",
        "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "userId": "user-42",
        "revenue": {
            "amount": 9.99, "currency": "EUR", "usd": 11.73825, "rateDate": "2025-12-31",
            "counted": true, "reason": null
        },
        "originalTransactionId": null,
        "sourceUrl": null,
        "duplicateOf": null,
        "attribution": {
            "network": "network_a",
            "matchType": "click_id",
            "linkId": "lnk_01k9z3v7q8e4r9m2x5c6b7n8d1",
            "clickId": "clk_030c1g60r30c1g60r30c1g60r354nfv34zghh9c074ps0hgy06",
            "campaign": {
                "id": "238", "name": "Spring", "adsetId": null, "adsetName": null, "adId": null, "adName": null
            },
            "hold": null
        },
        "deliveries": super::deliveries::examples(),
        "params": {"sku": "coins_100"}
    })
}
