//! `GET /apps/{app}/events/{event}` — an event with its revenue, credit and deliveries.

use super::{
    EventRevenueView, Explanation, http_label, match_label, reason_explanation, reason_label,
    skip_explanation_of, skip_label, source_label, tone, verdict_label,
};
use crate::access::LogContext;
use crate::failure::Failure;
use crate::network_label::NetworkLabel;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use crate::value_names::link_names;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::borrow::Cow;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::device::{Consent, DeviceKey, Tracking};
use tributary_domain::erasure::is_pseudonym;
use tributary_domain::event::{Credit, Event, EventFilter};
use tributary_domain::forwarding::{Delivery, DeliveryAttempt};
use tributary_domain::link::Campaign;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::page::{Limit, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_store::StoreError;
use tributary_store::records::original_transaction;

#[derive(Template)]
#[template(path = "event.html")]
struct EventPage {
    shell: Shell,
    event: Event,
    at: String,
    received: String,
    source: &'static str,
    money: Option<EventRevenueView>,
    credit: Option<CreditView>,
    /// Why the install of the device is attributed as it is.
    reason: Option<String>,
    params: Option<String>,
    original_transaction: Option<String>,
    /// The user's consent when the event was tracked.
    consent: Option<String>,
    deliveries: Vec<DeliveryCard>,
    skipped: Vec<SkippedNetworks>,
}

/// Networks that the event was not sent to for one reason.
struct SkippedNetworks {
    networks: Vec<NetworkLabel>,
    code: &'static str,
    label: &'static str,
    explanation: Explanation,
}

impl SkippedNetworks {
    fn all(event: &Event) -> Vec<Self> {
        let credit = event.credit.as_ref().map(|credit| credit.network);
        let mut all: Vec<Self> = Vec::new();
        for (network, skip) in &event.skipped {
            let network = NetworkLabel::of(*network);
            match all.iter_mut().find(|one| one.code == skip.as_str()) {
                Some(same) => same.networks.push(network),
                None => all.push(Self {
                    networks: vec![network],
                    code: skip.as_str(),
                    label: skip_label(*skip),
                    explanation: skip_explanation_of(*skip, credit),
                }),
            }
        }
        all
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.networks.iter().map(|one| one.name).collect();
        names.join(", ")
    }

    /// Returns the label and the URL of the setting.
    fn setting(&self, shell: &Shell) -> Option<(&'static str, String)> {
        match self.networks.as_slice() {
            [network] => self.explanation.setting(shell, network),
            _ => self.explanation.setting_of_all(shell),
        }
    }
}

impl EventPage {
    fn is_erased(&self) -> bool {
        self.event.device.as_ref().is_some_and(is_pseudonym)
    }
}

struct CreditView {
    network: NetworkLabel,
    how: &'static str,
    /// Id and name of the link.
    link: Option<(String, String)>,
    click: Option<String>,
    campaign: Vec<(&'static str, String)>,
}

/// A delivery with its attempts.
pub(crate) struct DeliveryCard {
    pub(crate) id: String,
    pub(crate) event_id: String,
    pub(crate) network: NetworkLabel,
    pub(crate) network_event: String,
    pub(crate) status: &'static str,
    pub(crate) tone: &'static str,
    pub(crate) reason: Option<String>,
    pub(crate) explanation: Explanation,
    pub(crate) dedup_id: String,
    pub(crate) next: Option<String>,
    pub(crate) attempts_made: u32,
    pub(crate) attempts: Vec<AttemptRow>,
    pub(crate) can_be_retried: bool,
}

pub(crate) struct AttemptRow {
    pub(crate) at: String,
    pub(crate) status: String,
    pub(crate) duration_ms: u32,
    pub(crate) verdict: &'static str,
    pub(crate) answer: String,
}

impl AttemptRow {
    fn of(attempt: DeliveryAttempt, zone: &Timezone) -> Self {
        Self {
            at: text::moment(attempt.at, zone),
            status: http_label(attempt.status),
            duration_ms: attempt.duration_ms,
            verdict: verdict_label(attempt.verdict),
            answer: attempt.answer.unwrap_or_default(),
        }
    }
}

impl DeliveryCard {
    /// Returns a short label for the reason.
    pub(crate) fn reason_label(&self) -> Option<&str> {
        self.reason.as_deref().map(reason_label)
    }

    pub(crate) fn of(delivery: Delivery, zone: &Timezone, now: Timestamp) -> Self {
        Self {
            id: delivery.id.to_string(),
            event_id: delivery.event.to_string(),
            network: NetworkLabel::of(delivery.network),
            network_event: delivery.network_event,
            status: delivery.status.as_str(),
            tone: tone(delivery.status),
            explanation: reason_explanation(delivery.status, delivery.reason.as_deref()),
            reason: delivery.reason,
            dedup_id: delivery.dedup_id,
            next: delivery
                .next_attempt_at
                .filter(|at| *at > now)
                .map(|at| text::moment(at, zone)),
            attempts_made: delivery.attempts_made,
            can_be_retried: delivery.status.can_be_retried(),
            attempts: delivery
                .attempts
                .into_iter()
                .map(|attempt| AttemptRow::of(attempt, zone))
                .collect(),
        }
    }
}

fn consent_label(consent: Consent) -> String {
    let answer = |answer: Option<bool>| match answer {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not asked",
    };
    let tracking = consent.tracking.map_or("unknown", Tracking::as_str);
    format!(
        "ad data: {}, personalised ads: {}, tracking: {tracking}",
        answer(consent.ad_user_data),
        answer(consent.ad_personalization),
    )
}

fn campaign(campaign: Campaign) -> Vec<(&'static str, String)> {
    let named = |label, name: Option<String>, id: Option<String>| {
        let text = match (name, id) {
            (Some(name), Some(id)) => format!("{name} ({id})"),
            (one, other) => one.or(other)?,
        };
        Some((label, text))
    };
    [
        named("Campaign", campaign.name, campaign.id),
        named("Ad set", campaign.adset_name, campaign.adset_id),
        named("Ad", campaign.ad_name, campaign.ad_id),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl CreditView {
    async fn load(
        credit: Credit,
        app: AppId,
        handles: &DashboardHandles,
        caller: &Authorized<AnalyticsRead>,
    ) -> Result<Self, Failure> {
        let link = credit.link.map(|link| link.to_string());
        let names = link_names(handles, caller, app, link.iter()).await?;
        let name = |id: String| {
            let name = names.get(&id).cloned();
            (id, name.unwrap_or_else(|| "deleted link".to_owned()))
        };
        Ok(Self {
            network: NetworkLabel::credited(credit.network),
            how: match_label(credit.match_type),
            link: link.map(name),
            click: credit
                .click
                .map(|click| handles.click_tokens.sign(app, click)),
            campaign: campaign(credit.campaign),
        })
    }
}

/// Returns a request for a page that ends with this event.
fn up_to(event: EventId) -> PageRequest {
    let next = u128::from_be_bytes(*event.as_bytes()).saturating_add(1);
    PageRequest {
        limit: Limit::parse("1").unwrap_or(Limit::DEFAULT),
        before: Some(next.to_be_bytes()),
    }
}

/// Returns the explanation of a device's attribution; `None` for a device that is not stored.
async fn attribution_reason(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    device: DeviceKey,
) -> Result<Option<String>, Failure> {
    match handles.store.device(caller, app, device).await {
        Ok(story) => Ok(story.state.attribution.map(|one| one.decision.reason)),
        Err(StoreError::Refused(Refusal::DeviceNotFound)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: LogContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let id = EventId::parse(context.path_parameter("event")).map_err(|_| Failure::NotFound)?;
    let found = handles
        .store
        .events(
            &context.authorized,
            app.id,
            EventFilter::default(),
            up_to(id),
        )
        .await?;
    let event = found
        .items
        .into_iter()
        .next()
        .filter(|event| event.id == id);
    let event = event.ok_or(Failure::NotFound)?;
    let mut deliveries =
        super::deliveries_of(&handles, app.id, std::slice::from_ref(&event)).await?;
    let deliveries = deliveries.remove(&id).unwrap_or_default();
    let now = handles.runtime.now();
    let credit = match event.credit.clone() {
        Some(credit) => {
            let caller = &context.authorized;
            Some(CreditView::load(credit, app.id, &handles, caller).await?)
        }
        None => None,
    };
    let shell = context.shell(Section::Events);
    let reason = match event.device.clone().filter(|_| shell.sees_apps) {
        Some(device) => attribution_reason(&handles, &context.authorized, app.id, device).await?,
        None => None,
    };
    let page = EventPage {
        reason,
        shell,
        at: text::moment(event.occurred_at, &app.timezone),
        received: text::moment(event.received_at, &app.timezone),
        source: source_label(event.source),
        money: EventRevenueView::of(&event),
        credit,
        params: event.params.as_deref().map(indented),
        original_transaction: original_transaction(&event).map(Cow::into_owned),
        consent: event.consent.map(consent_label),
        deliveries: deliveries
            .into_iter()
            .map(|one| DeliveryCard::of(one, &app.timezone, now))
            .collect(),
        skipped: SkippedNetworks::all(&event),
        event,
    };
    Ok(context.page(&page))
}

/// Formats JSON over several lines. Other text is returned unchanged.
fn indented(json: &str) -> String {
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(json);
    let written = parsed.and_then(|value| serde_json::to_string_pretty(&value));
    written.unwrap_or_else(|_| json.to_owned())
}
