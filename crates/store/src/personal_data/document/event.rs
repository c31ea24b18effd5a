//! JSON form of an event with its deliveries.

use super::device::PersonConsentOut;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::attribution::HoldState;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::{DeviceKey, Platform, UserKey};
use tributary_domain::event::{Credit, Event};
use tributary_domain::forwarding::{Delivery, DeliveryAttempt};
use tributary_domain::ledger::{Revenue, UncountedReason};
use tributary_domain::link::Campaign;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

/// An event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PersonEventOut {
    id: String,
    /// Id assigned by the sender.
    event_id: String,
    source: &'static str,
    name: String,
    original_name: Option<String>,
    happened_at: String,
    received_at: String,
    device_id: Option<String>,
    user_id: Option<String>,
    platform: Option<&'static str>,
    country: Option<String>,
    revenue: Option<RevenueOut>,
    credit: Option<CreditOut>,
    is_first_payment: bool,
    is_install: bool,
    duplicate_of: Option<String>,
    same_as: Option<String>,
    consent: Option<PersonConsentOut>,
    /// Parameters as they were sent.
    params: Option<Box<RawValue>>,
    source_url: Option<String>,
    parent_event_id: Option<String>,
    email_sha256: Option<String>,
    deliveries: Vec<DeliveryOut>,
    not_sent: Vec<NotSentOut>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RevenueOut {
    amount: Option<Box<RawValue>>,
    currency: Option<String>,
    usd: Option<Box<RawValue>>,
    rate: Option<String>,
    rate_date: Option<String>,
    rate_source: Option<String>,
    not_counted_because: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreditOut {
    network: &'static str,
    match_type: &'static str,
    link_id: Option<String>,
    click_id: Option<String>,
    campaign: CampaignOut,
    hold: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CampaignOut {
    id: Option<String>,
    name: Option<String>,
    adset_id: Option<String>,
    adset_name: Option<String>,
    ad_id: Option<String>,
    ad_name: Option<String>,
}

/// A delivery to an ad network.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryOut {
    id: String,
    network: &'static str,
    network_event: String,
    dedup_id: String,
    status: &'static str,
    reason: Option<String>,
    planned_at: String,
    settled_at: Option<String>,
    next_attempt_at: Option<String>,
    attempts_made: u32,
    attempts: Vec<AttemptOut>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AttemptOut {
    at: String,
    status: Option<u16>,
    duration_ms: u32,
    verdict: &'static str,
    answer: Option<String>,
    refusal: Option<String>,
}

/// A network that does not get the event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NotSentOut {
    network: &'static str,
    reason: &'static str,
}

/// Writes an amount as a JSON number, digit by digit.
fn number(amount: Amount) -> Option<Box<RawValue>> {
    RawValue::from_string(amount.to_string()).ok()
}

impl PersonEventOut {
    pub(super) fn of(event: Event, deliveries: Vec<Delivery>, tokens: &ClickTokens) -> Self {
        // Every field is named, so a new one does not compile until it is shown.
        let Event {
            id,
            external_id,
            app,
            environment: _,
            source,
            name,
            original_name,
            occurred_at,
            received_at,
            device,
            user,
            platform,
            country,
            revenue,
            credit,
            params,
            first_payment,
            is_service_install,
            duplicate_of,
            dedup_root,
            consent,
            skipped,
            website,
        } = event;
        let (source_url, parent, email_sha256) = website
            .map(|website| (website.source_url, website.parent, website.email_sha256))
            .unwrap_or_default();
        Self {
            id: id.to_string(),
            event_id: external_id,
            source: source.as_str(),
            name,
            original_name,
            happened_at: occurred_at.rfc3339(),
            received_at: received_at.rfc3339(),
            // The spelling that was sent.
            device_id: device.map(|device: DeviceKey| device.spelling().to_owned()),
            user_id: user.map(UserKey::into_string),
            platform: platform.map(Platform::as_str),
            country,
            revenue: revenue.map(RevenueOut::from),
            credit: credit.map(|credit| CreditOut::of(credit, app, tokens)),
            is_first_payment: first_payment,
            is_install: is_service_install,
            duplicate_of: duplicate_of.map(|id| id.to_string()),
            same_as: dedup_root.map(|id| id.to_string()),
            consent: consent.map(PersonConsentOut::from),
            params: params.and_then(|text| RawValue::from_string(text).ok()),
            source_url: Some(source_url).filter(|url| !url.is_empty()),
            parent_event_id: parent,
            email_sha256,
            deliveries: deliveries.into_iter().map(DeliveryOut::from).collect(),
            not_sent: skipped
                .into_iter()
                .map(|(network, reason)| NotSentOut {
                    network: network.as_str(),
                    reason: reason.as_str(),
                })
                .collect(),
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
            rate: revenue.rate,
            rate_date: revenue.rate_day.map(|day| day.to_string()),
            rate_source: revenue.rate_source,
            not_counted_because: revenue.uncounted.map(UncountedReason::as_str),
        }
    }
}

impl CreditOut {
    fn of(credit: Credit, app: AppId, tokens: &ClickTokens) -> Self {
        Self {
            network: credit.network.as_str(),
            match_type: credit.match_type.as_str(),
            link_id: credit.link.map(|link| link.to_string()),
            click_id: credit.click.map(|click| tokens.sign(app, click)),
            campaign: credit.campaign.into(),
            hold: credit.hold.map(HoldState::as_str),
        }
    }
}

impl From<Campaign> for CampaignOut {
    fn from(campaign: Campaign) -> Self {
        Self {
            id: campaign.id,
            name: campaign.name,
            adset_id: campaign.adset_id,
            adset_name: campaign.adset_name,
            ad_id: campaign.ad_id,
            ad_name: campaign.ad_name,
        }
    }
}

impl From<Delivery> for DeliveryOut {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id.to_string(),
            network: delivery.network.as_str(),
            network_event: delivery.network_event,
            dedup_id: delivery.dedup_id,
            status: delivery.status.as_str(),
            reason: delivery.reason,
            planned_at: delivery.planned_at.rfc3339(),
            settled_at: delivery.settled_at.map(Timestamp::rfc3339),
            next_attempt_at: delivery.next_attempt_at.map(Timestamp::rfc3339),
            attempts_made: delivery.attempts_made,
            attempts: delivery.attempts.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<DeliveryAttempt> for AttemptOut {
    fn from(attempt: DeliveryAttempt) -> Self {
        Self {
            at: attempt.at.rfc3339(),
            status: attempt.status,
            duration_ms: attempt.duration_ms,
            verdict: attempt.verdict.as_str(),
            answer: attempt.answer,
            refusal: attempt.refusal,
        }
    }
}
