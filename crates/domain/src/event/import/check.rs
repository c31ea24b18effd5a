//! Rules for one exported event, before it is compared with stored data.

use super::ImportedEvent;
use crate::access::Environment;
use crate::billing::FUTURE_SKEW_MAX;
use crate::event::web::WebEventKind;
use crate::event::{Event, EventSource, name};
use crate::ledger::{COUNTABLE_USD_MAX, Revenue, UncountedReason};
use crate::link::{CAMPAIGN_ID_CHARS_MAX, Campaign};
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::money::Amount;

/// Checks the fields of an exported event against each other.
pub fn check(imported: &ImportedEvent, faults: &mut Faults) {
    let event = &imported.event;
    let mut fault =
        |field: &str, code, message: &str| faults.add(field, Problem::new(code, message));
    if event.id.at() != event.occurred_at {
        let message = "Must contain the event's time, which must equal `timestampMs`.";
        fault("id", FaultCode::InvalidFormat, message);
    }
    if event.is_service_install {
        if event.name != name::INSTALL || event.source != EventSource::Sdk {
            let message = "Only SDK events named `install` are installs.";
            fault("install", FaultCode::NotAllowed, message);
        }
        let required = "Required for an install.";
        if event.device.is_none() {
            fault("deviceId", FaultCode::Required, required);
        }
        if event.platform.is_none() {
            fault("platform", FaultCode::Required, required);
        }
        if event.credit.is_none() {
            fault("attribution", FaultCode::Required, required);
        }
    }
    if event.source == EventSource::Web && event.environment != Environment::Live {
        let message = "Web events are always `live`.";
        fault("environment", FaultCode::NotAllowed, message);
    }
    if event.source == EventSource::Web && event.duplicate_of.is_some() {
        let message = "Web events are never duplicates.";
        fault("duplicateOf", FaultCode::NotAllowed, message);
    }
    if let Some(revenue) = &event.revenue {
        let is_duplicate = event.duplicate_of.is_some();
        let says_duplicate = revenue.uncounted == Some(UncountedReason::DuplicateOfVerified);
        if is_duplicate != says_duplicate {
            let message = "Must be `duplicate_of_verified` if and only if `duplicateOf` is set.";
            fault("revenue.reason", FaultCode::NotAllowed, message);
        }
        if revenue.uncounted.is_none() && revenue.usd.is_none() {
            let message = "Required if the revenue counts.";
            fault("revenue.usd", FaultCode::Required, message);
        }
        if revenue.uncounted.is_none() {
            check_counted(event, revenue, faults);
        }
    }
    if event.occurred_at > event.received_at.plus(FUTURE_SKEW_MAX) {
        let message = "Must be at most 48 hours after `receivedAt`.";
        let problem = Problem::new(FaultCode::OutOfRange, message);
        faults.add("timestampMs", problem);
    }
    if let Some(credit) = &event.credit {
        check_campaign(&credit.campaign, faults);
    }
}

/// Checks an amount that counts. Only a refund is negative.
fn check_counted(event: &Event, revenue: &Revenue, faults: &mut Faults) {
    let is_refund = event.name == WebEventKind::Refund.as_str();
    let sign = if is_refund { -1 } else { 1 };
    let mut check = |field: &str, amount: Amount| {
        if amount.micros().signum() == -sign {
            let message = "Must be negative if a refund counts, and positive if a payment counts.";
            faults.add(field, Problem::new(FaultCode::OutOfRange, message));
        } else if field == USD && amount > COUNTABLE_USD_MAX {
            let message = "Must be at most 2000 if the revenue counts.";
            faults.add(field, Problem::new(FaultCode::OutOfRange, message));
        }
    };
    check("revenue.amount", revenue.amount);
    if let Some(usd) = revenue.usd {
        check(USD, usd);
    }
}

/// Field with the amount in dollars.
const USD: &str = "revenue.usd";

fn check_campaign(campaign: &Campaign, faults: &mut Faults) {
    for (field, text) in [
        ("id", &campaign.id),
        ("name", &campaign.name),
        ("adsetId", &campaign.adset_id),
        ("adsetName", &campaign.adset_name),
        ("adId", &campaign.ad_id),
        ("adName", &campaign.ad_name),
    ] {
        if let Some(text) = text
            && text.chars().count() > CAMPAIGN_ID_CHARS_MAX
        {
            let message = format!("Must have at most {CAMPAIGN_ID_CHARS_MAX} characters.");
            let problem = Problem::new(FaultCode::TooLong, message);
            faults.add(format!("attribution.campaign.{field}"), problem);
        }
    }
}
