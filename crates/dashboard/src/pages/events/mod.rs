//! `/apps/{app}/events` — the live event log and an event's details.

pub(crate) mod detail;
mod explanation;
pub(crate) mod export;
pub(crate) mod filter;
mod labels;
pub(crate) mod list;

pub(crate) use explanation::{
    Explanation, http_label, reason_explanation, reason_label, skip_explanation,
    skip_explanation_of, skip_label, verdict_label,
};
pub(crate) use labels::{hold_explanation, match_label, source_label, uncounted_explanation};

use crate::failure::Failure;
use crate::network_label::NetworkLabel;
use crate::state::DashboardHandles;
use crate::text;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::event::Event;
use tributary_domain::forwarding::{Delivery, DeliveryStatus};
use tributary_domain::ledger::Revenue;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::timezone::Timezone;

/// An event as a table row.
pub(crate) struct EventTableRow {
    pub(crate) id: String,
    pub(crate) at: String,
    pub(crate) datetime: String,
    pub(crate) name: String,
    pub(crate) source: &'static str,
    pub(crate) device: Option<String>,
    pub(crate) network: NetworkLabel,
    pub(crate) money: Option<EventRevenueView>,
    /// Deliveries: network, and colour for the status.
    pub(crate) deliveries: Vec<(NetworkLabel, &'static str)>,
}

/// An event's revenue, formatted.
pub(crate) struct EventRevenueView {
    pub(crate) amount: String,
    /// The amount in US dollars, and the exchange rate. `None` if it is an amount in US dollars.
    pub(crate) exchanged: Option<String>,
    pub(crate) uncounted: Option<&'static str>,
}

impl EventRevenueView {
    /// Formats an event's revenue; `None` if the event has no amount.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let revenue = event.revenue.as_ref()?;
        let amount = match revenue.currency {
            Some(currency) => text::money(revenue.amount, currency),
            None => revenue.amount.to_string(),
        };
        let uncounted = revenue.uncounted.map(uncounted_explanation);
        Some(Self {
            amount,
            exchanged: exchanged(revenue),
            uncounted: uncounted.or_else(|| event.hold().and_then(hold_explanation)),
        })
    }
}

/// Formats a foreign amount in US dollars: `$8.20 at the exchange rate of 14 Sep 2026`.
fn exchanged(revenue: &Revenue) -> Option<String> {
    let usd = revenue
        .usd
        .filter(|_| revenue.currency != Some(Currency::USD))?;
    let usd = text::usd(usd);
    Some(match revenue.rate_day {
        Some(day) => format!("{usd} at the exchange rate of {}", text::day(day)),
        None => usd,
    })
}

/// Returns the colour for a status.
pub(crate) const fn tone(status: DeliveryStatus) -> &'static str {
    match status {
        DeliveryStatus::Pending => "wait",
        DeliveryStatus::Delivered | DeliveryStatus::Validated => "good",
        DeliveryStatus::Unconfirmed => "odd",
        DeliveryStatus::Failed | DeliveryStatus::Expired => "bad",
        DeliveryStatus::Cancelled => "quiet",
    }
}

impl EventTableRow {
    pub(crate) fn of(event: &Event, deliveries: &[Delivery], zone: &Timezone) -> Self {
        Self {
            id: event.id.to_string(),
            at: text::moment(event.occurred_at, zone),
            datetime: text::rfc3339(event.occurred_at),
            name: event.name.clone(),
            source: source_label(event.source),
            device: event.device.as_ref().map(|key| key.as_str().to_owned()),
            network: event.credit.as_ref().map_or(NetworkLabel::NONE, |credit| {
                NetworkLabel::credited(credit.network)
            }),
            money: EventRevenueView::of(event),
            deliveries: deliveries
                .iter()
                .map(|one| (NetworkLabel::of(one.network), tone(one.status)))
                .collect(),
        }
    }
}

/// Loads the events' deliveries, grouped by event. Only live events have deliveries.
pub(crate) async fn deliveries_of(
    handles: &DashboardHandles,
    app: AppId,
    events: &[Event],
) -> Result<BTreeMap<EventId, Vec<Delivery>>, Failure> {
    let live = events
        .iter()
        .filter(|event| event.environment == Environment::Live);
    let ids: Vec<EventId> = live.map(|event| event.id).collect();
    let mut by_event: BTreeMap<EventId, Vec<Delivery>> = BTreeMap::new();
    if !ids.is_empty() {
        for delivery in handles.store.deliveries_of(app, ids).await? {
            by_event.entry(delivery.event).or_default().push(delivery);
        }
    }
    Ok(by_event)
}

/// Returns events as table rows with their deliveries.
pub(crate) async fn rows(
    handles: &DashboardHandles,
    app: AppId,
    zone: &Timezone,
    events: &[Event],
) -> Result<Vec<EventTableRow>, Failure> {
    let deliveries = deliveries_of(handles, app, events).await?;
    let row = |event: &Event| {
        let its = deliveries.get(&event.id).map_or(&[][..], Vec::as_slice);
        EventTableRow::of(event, its, zone)
    };
    Ok(events.iter().map(row).collect())
}
