//! Decides which networks get an event when it is accepted.

#[cfg(test)]
mod consent_histories;
mod device_plan;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

pub use device_plan::{DeviceFacts, Replan, credited_planning_click};

use super::conversion::{Sharing, lacks_forwardable_amount};
use super::dedup::dedup_id;
use super::limits::{conversion_time_with_click, expires_at, sendable_from};
use crate::access::Environment;
use crate::attribution::{CreditedNetwork, HoldState, MatchType};
use crate::click::Click;
use crate::device::{Consent, ContactHashes};
use crate::erasure::is_pseudonym;
use crate::event::name::INSTALL;
use crate::event::{Event, EventSource};
use crate::integration::{
    EventScope, Integration, MappingRow, Network, REPORTING_ONLY, SettingValue,
};
use crate::ledger::{MoneyPolicy, UncountedReason};
use crate::vocabulary::time::Timestamp;

/// SDK events that billing providers report, too.
const REPORTED_BY_BILLING: &[&str] = &["purchase", "subscribe", "start_trial"];

/// Why an event is not forwarded to a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// Test data.
    Sandbox,
    /// The event's device was erased.
    Erased,
    /// A website or a billing provider reports the same event.
    DuplicateOfVerified,
    /// The event only updates revenue and is not a conversion.
    ReportingOnly,
    /// The integration is disabled or incomplete.
    IntegrationDisabled,
    /// The event is not credited to the network.
    NotAttributed,
    /// The event mapping has no enabled row for the event.
    NotMapped,
    /// The event arrived before the integration was enabled or its mapping changed.
    EnabledLater,
    /// The install is flagged and held for a review, or was rejected.
    Fraud,
    /// The device did not prove that it runs the genuine app, and the app requires it.
    Attestation,
    /// The install was matched probabilistically.
    Probabilistic,
    /// A billing provider reports the same payment.
    BillingSource,
    /// The user refused consent.
    Consent,
    /// The event is older than the network accepts.
    TooOld,
    /// The network requires an amount, but the event's amount may not be forwarded.
    AmountNotForwardable,
    /// No conversion action is configured for the event.
    NoConversionAction,
    /// The network's click id is missing.
    NoClickId,
    /// Too few identifiers for the network to match the user.
    InsufficientIdentity,
}

crate::keywords! {
    SkipReason {
        Sandbox => "sandbox",
        Erased => "erased",
        DuplicateOfVerified => "duplicate_of_verified",
        ReportingOnly => "reporting_only",
        IntegrationDisabled => "integration_disabled",
        NotAttributed => "not_attributed",
        NotMapped => "not_mapped",
        EnabledLater => "enabled_later",
        Fraud => "fraud",
        Attestation => "attestation",
        Probabilistic => "probabilistic",
        BillingSource => "billing_source",
        Consent => "consent",
        TooOld => "too_old",
        AmountNotForwardable => "amount_not_forwardable",
        NoConversionAction => "no_conversion_action",
        NoClickId => "no_click_id",
        InsufficientIdentity => "insufficient_identity",
    }
}

/// Facts needed to plan an event's deliveries.
#[derive(Debug, Clone, Copy)]
pub struct PlanFacts<'a> {
    /// The event.
    pub event: &'a Event,
    /// The credited click.
    pub click: Option<&'a Click>,
    /// A network's click id that arrived without a recorded click.
    pub network_click_id: Option<&'a (String, String)>,
    /// The consent that holds for the event. The sender of a web event is responsible for consent.
    pub consent: Consent,
    /// Hashes of the user's email address and phone number.
    pub matching: &'a ContactHashes,
    /// Whether the device reported its OS version.
    pub has_os_version: bool,
    /// Whether revenue from this source counts.
    pub policy: MoneyPolicy,
    /// Time of planning.
    pub now: Timestamp,
    /// Whether the app requires an attestation that the device lacks.
    pub lacks_attestation: bool,
}

/// A planned delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedDelivery {
    /// The destination network.
    pub network: Network,
    /// Event name at the network.
    pub network_event: String,
    /// Deduplication id sent to the network.
    pub dedup_id: String,
    /// When the delivery is due.
    pub due_at: Timestamp,
    /// Time from which the event is too old to send.
    pub expires_at: Timestamp,
}

/// Deliveries and skips of an event. A network that the event does not apply to is in neither list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Deliveries to send.
    pub planned: Vec<PlannedDelivery>,
    /// Skipped networks, with the reason.
    pub skipped: Vec<(Network, SkipReason)>,
}

/// Plans an event's deliveries. `integrations` are the app's configured integrations.
pub fn plan(facts: &PlanFacts<'_>, integrations: &[Integration]) -> Plan {
    let mut plan = Plan::default();
    let credited = match facts.event.credit.as_ref().map(|credit| credit.network) {
        Some(CreditedNetwork::Ad(network)) => Some(network),
        _ => None,
    };
    for network in Network::ALL {
        let integration = integrations.iter().find(|one| one.network == network);
        let active = integration.filter(|one| one.is_active());
        let is_credited = credited == Some(network);
        match active {
            Some(integration) => match plan_delivery(facts, integration, is_credited) {
                Ok(planned) => plan.planned.push(planned),
                Err(skip) => plan.skipped.push((network, skip)),
            },
            None if is_credited => plan
                .skipped
                .push((network, skip_without_integration(facts))),
            None => {}
        }
    }
    plan
}

/// Returns the skips for an event that may not be forwarded to any network.
pub fn skips_for_all_networks(
    event: &Event,
    integrations: &[Integration],
) -> Vec<(Network, SkipReason)> {
    let Err(skip) = check_forwardable(event) else {
        return Vec::new();
    };
    let credited = event.credit.as_ref().map(|credit| credit.network);
    let concerns = |network: &Network| {
        let mut active = integrations.iter().filter(|one| one.is_active());
        credited == Some(CreditedNetwork::Ad(*network)) || active.any(|one| one.network == *network)
    };
    let networks = Network::ALL.into_iter().filter(concerns);
    networks.map(|network| (network, skip)).collect()
}

/// Checks whether an event may be forwarded at all.
fn check_forwardable(event: &Event) -> Result<(), SkipReason> {
    if event.environment != Environment::Live {
        return Err(SkipReason::Sandbox);
    }
    if event.device.as_ref().is_some_and(is_pseudonym) {
        return Err(SkipReason::Erased);
    }
    if event.duplicate_of.is_some() {
        return Err(SkipReason::DuplicateOfVerified);
    }
    // Only the service's own `install` is forwarded; an `install` from an app is only recorded.
    let is_client_install = event.name == INSTALL && !event.is_service_install;
    if is_client_install || REPORTING_ONLY.contains(&event.name.as_str()) {
        return Err(SkipReason::ReportingOnly);
    }
    Ok(())
}

fn skip_without_integration(facts: &PlanFacts<'_>) -> SkipReason {
    check_forwardable(facts.event)
        .err()
        .unwrap_or(SkipReason::IntegrationDisabled)
}

fn plan_delivery(
    facts: &PlanFacts<'_>,
    integration: &Integration,
    is_credited: bool,
) -> Result<PlannedDelivery, SkipReason> {
    let event = facts.event;
    check_forwardable(event)?;
    if integration.scope == EventScope::Attributed && !is_credited {
        return Err(SkipReason::NotAttributed);
    }
    let row = mapping_row(integration, event).ok_or(SkipReason::NotMapped)?;
    if integration
        .active_since()
        .is_some_and(|since| event.received_at < since)
    {
        return Err(SkipReason::EnabledLater);
    }
    check_permission(facts, integration)?;
    let expires_at = expires_at(
        integration,
        event.conversion_time(),
        facts.click.map(|click| click.clicked_at),
    );
    if facts.now >= expires_at {
        return Err(SkipReason::TooOld);
    }
    if lacks_forwardable_amount(event, &row.network_event) {
        return Err(SkipReason::AmountNotForwardable);
    }
    check_identity(facts, integration, &row.network_event)?;
    let own_id = integration.flag("webEventId");
    Ok(PlannedDelivery {
        network: integration.network,
        dedup_id: dedup_id(event, integration.network, &row.network_event, own_id),
        due_at: facts
            .now
            .max(sendable_from(integration.network, event.conversion_time())),
        expires_at,
        network_event: row.network_event,
    })
}

/// Returns the mapping row for an event. By default OpenAI Ads (`network_d`) gets trials from
/// websites only.
fn mapping_row(integration: &Integration, event: &Event) -> Option<MappingRow> {
    let row = integration.enabled_row(&event.name)?;
    let only_from_websites = integration.network == Network::D
        && integration.event_mapping.is_none()
        && event.name == "start_trial";
    (!only_from_websites || event.source == EventSource::Web).then_some(row)
}

/// Checks whether fraud rules, match type, revenue source and consent allow forwarding.
fn check_permission(facts: &PlanFacts<'_>, integration: &Integration) -> Result<(), SkipReason> {
    let event = facts.event;
    // Comes first: a held install may be released, but one without proof is never forwarded.
    if facts.lacks_attestation {
        return Err(SkipReason::Attestation);
    }
    if event.hold().is_some_and(HoldState::withholds) {
        return Err(SkipReason::Fraud);
    }
    let is_probabilistic = event
        .credit
        .as_ref()
        .is_some_and(|credit| credit.match_type == MatchType::Probabilistic);
    if is_probabilistic && !integration.flag("forwardProbabilistic") {
        return Err(SkipReason::Probabilistic);
    }
    let is_reported_by_billing = facts.policy
        == MoneyPolicy::Ignore(UncountedReason::BillingSource)
        && event.source == EventSource::Sdk
        && REPORTED_BY_BILLING.contains(&event.name.as_str());
    if is_reported_by_billing {
        return Err(SkipReason::BillingSource);
    }
    let refused = Sharing::of(facts.consent) == Sharing::Refused;
    if event.source != EventSource::Web && refused {
        return Err(SkipReason::Consent);
    }
    Ok(())
}

/// Checks whether the event has enough identifiers for the network to match the user. All networks
/// except Google Ads (`network_b`) accept the hashed device id, unless the id is a placeholder.
fn check_identity(
    facts: &PlanFacts<'_>,
    integration: &Integration,
    network_event: &str,
) -> Result<(), SkipReason> {
    let device = facts.event.device.as_ref();
    let has_device = device.is_some_and(|device| !device.is_placeholder());
    let has_hash = *facts.matching != ContactHashes::default();
    match integration.network {
        Network::A => {
            let website = integration.text("sdkEventMode") != Some("app")
                || facts.event.source == EventSource::Web;
            let has_agent = facts.click.is_some_and(|click| click.user_agent.is_some());
            let is_enough = if website {
                has_agent && has_page(facts.event)
            } else {
                facts.has_os_version && (has_device || has_hash)
            };
            is_enough
                .then_some(())
                .ok_or(SkipReason::InsufficientIdentity)
        }
        Network::B => {
            let has_action = match integration.settings.get("conversionActions") {
                Some(SettingValue::Map(actions)) => actions.contains_key(network_event),
                _ => false,
            };
            if !has_action {
                return Err(SkipReason::NoConversionAction);
            }
            let ContactHashes {
                email,
                email_google,
                phone: _,
                phone_e164,
            } = facts.matching;
            let has_hash = email.is_some() || email_google.is_some() || phone_e164.is_some();
            let by_hash =
                integration.flag("userDataEnabled") && has_hash && facts.event.name != INSTALL;
            (has_google_click_id(facts) || by_hash)
                .then_some(())
                .ok_or(SkipReason::NoClickId)
        }
        Network::C => {
            let by_click = facts.click.is_some_and(|click| {
                let is_seen = click.address.is_some() && click.user_agent.is_some();
                click.captured.click_ids.ttclid.is_some() || is_seen
            });
            let is_known = has_device || device.is_some() && (has_hash || by_click);
            let is_enough = is_known && has_page(facts.event);
            is_enough
                .then_some(())
                .ok_or(SkipReason::InsufficientIdentity)
        }
        Network::D => {
            let has_click_id = |click: &Click| click.captured.click_ids.oppref.is_some();
            let by_click = facts.click.is_some_and(has_click_id);
            let has_email = facts.matching.email.is_some();
            let is_enough = has_device || device.is_some() && (has_email || by_click);
            is_enough
                .then_some(())
                .ok_or(SkipReason::InsufficientIdentity)
        }
    }
}

/// Returns whether there is a page URL to send: a web event's page, or the link.
fn has_page(event: &Event) -> bool {
    let has_link = event
        .credit
        .as_ref()
        .is_some_and(|credit| credit.link.is_some());
    event.source == EventSource::Web || has_link
}

fn has_google_click_id(facts: &PlanFacts<'_>) -> bool {
    let click_precedes = facts.click.is_none_or(|click| {
        conversion_time_with_click(facts.event.conversion_time(), click.clicked_at).is_some()
    });
    let from_click = facts.click.is_some_and(|click| {
        let ids = &click.captured.click_ids;
        ids.gclid.is_some() || ids.gbraid.is_some() || ids.wbraid.is_some()
    });
    let without_click = facts
        .network_click_id
        .is_some_and(|(name, _)| matches!(name.as_str(), "gclid" | "gbraid" | "wbraid"));
    click_precedes && (from_click || without_click)
}
