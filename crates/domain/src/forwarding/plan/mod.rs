//! Which networks hear of an event, decided while it is accepted.

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
use crate::attribution::{CreditedNetwork, MatchType};
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

/// Names of money from the SDK that a billing provider reports as well.
const REPORTED_BY_BILLING: &[&str] = &["purchase", "subscribe", "start_trial"];

/// Why a network does not hear of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// A test key's.
    Sandbox,
    /// Its device was erased.
    Erased,
    /// A website or a billing provider reports the same event.
    DuplicateOfVerified,
    /// It updates revenue and is no new acquisition.
    ReportingOnly,
    /// The integration is off, or not complete.
    IntegrationDisabled,
    /// It is credited to somebody else.
    NotAttributed,
    /// The integration's map has no row for it.
    NotMapped,
    /// It was there before the integration, or its map, was.
    EnabledLater,
    /// Its install is suspicious, and the app holds such back.
    Fraud,
    /// Its install was matched by likeness.
    Probabilistic,
    /// A billing provider reports the same.
    BillingSource,
    /// The person refused.
    Consent,
    /// Older than the network takes.
    TooOld,
    /// It needs an amount, and its own may not be told.
    AmountNotForwardable,
    /// Nothing at the network stands for it.
    NoConversionAction,
    /// The network needs its click id.
    NoClickId,
    /// The network could not tell whose it is.
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

/// What is known when an event is planned.
#[derive(Debug, Clone, Copy)]
pub struct PlanFacts<'a> {
    /// The event.
    pub event: &'a Event,
    /// The click that it is credited to.
    pub click: Option<&'a Click>,
    /// A network's click id that came without a click of ours.
    pub network_click_id: Option<&'a (String, String)>,
    /// What its device consented to; whoever posts a web event vouches for it.
    pub consent: Consent,
    /// Hashes of the person's address and number.
    pub matching: &'a ContactHashes,
    /// Whether the device said what it runs on.
    pub has_os_version: bool,
    /// Whether the app holds back what this install does.
    pub is_held: bool,
    /// What the app says about money from this source.
    pub policy: MoneyPolicy,
    /// When it is planned.
    pub now: Timestamp,
}

/// A delivery to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedDelivery {
    /// To which network.
    pub network: Network,
    /// What the network calls it.
    pub network_event: String,
    /// The id that the network knows it by.
    pub dedup_id: String,
    /// When it may be sent.
    pub due_at: Timestamp,
    /// When it is too late.
    pub expires_at: Timestamp,
}

/// What is to be sent, and what is not. A network that has nothing to do with the event is in neither.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// To be sent.
    pub planned: Vec<PlannedDelivery>,
    /// Not to be sent.
    pub skipped: Vec<(Network, SkipReason)>,
}

/// Plans an event. `integrations` are those of its app that were ever touched.
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

/// The networks that do not hear of an event that is kept from every network, with the reason.
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

/// What keeps an event from every network.
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
    // Only ours is the install; one that an app sends by that name is in the log.
    let is_no_install = event.name == INSTALL && !event.is_service_install;
    if is_no_install || REPORTING_ONLY.contains(&event.name.as_str()) {
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

/// The row of the map that is in force for an event. `network_d` hears of trials by default only from websites.
fn mapping_row(integration: &Integration, event: &Event) -> Option<MappingRow> {
    let row = integration.enabled_row(&event.name)?;
    let only_from_websites = integration.network == Network::D
        && integration.event_mapping.is_none()
        && event.name == "start_trial";
    (!only_from_websites || event.source == EventSource::Web).then_some(row)
}

/// Whether the network may hear of it at all.
fn check_permission(facts: &PlanFacts<'_>, integration: &Integration) -> Result<(), SkipReason> {
    let event = facts.event;
    if facts.is_held {
        return Err(SkipReason::Fraud);
    }
    let by_likeness = event
        .credit
        .as_ref()
        .is_some_and(|credit| credit.match_type == MatchType::Probabilistic);
    if by_likeness && !integration.flag("forwardProbabilistic") {
        return Err(SkipReason::Probabilistic);
    }
    let from_billing_too = facts.policy == MoneyPolicy::Ignore(UncountedReason::BillingSource)
        && event.source == EventSource::Sdk
        && REPORTED_BY_BILLING.contains(&event.name.as_str());
    if from_billing_too {
        return Err(SkipReason::BillingSource);
    }
    let refused = Sharing::of(facts.consent) == Sharing::Refused;
    if event.source != EventSource::Web && refused {
        return Err(SkipReason::Consent);
    }
    Ok(())
}

/// Whether the network could tell whose it is. Three networks take the hashed id of the device, unless it is a placeholder.
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
            let enough = if website {
                has_agent && has_page(facts.event)
            } else {
                facts.has_os_version && (has_device || has_hash)
            };
            enough.then_some(()).ok_or(SkipReason::InsufficientIdentity)
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
            let enough = is_known && has_page(facts.event);
            enough.then_some(()).ok_or(SkipReason::InsufficientIdentity)
        }
        Network::D => {
            let has_click_id = |click: &Click| click.captured.click_ids.oppref.is_some();
            let by_click = facts.click.is_some_and(has_click_id);
            let has_email = facts.matching.email.is_some();
            let enough = has_device || device.is_some() && (has_email || by_click);
            enough.then_some(()).ok_or(SkipReason::InsufficientIdentity)
        }
    }
}

/// Whether there is a page to name: a website's own, or the link that was tapped.
fn has_page(event: &Event) -> bool {
    let has_link = event
        .credit
        .as_ref()
        .is_some_and(|credit| credit.link.is_some());
    event.source == EventSource::Web || has_link
}

fn has_google_click_id(facts: &PlanFacts<'_>) -> bool {
    let may_have_led = facts.click.is_none_or(|click| {
        conversion_time_with_click(facts.event.conversion_time(), click.clicked_at).is_some()
    });
    let from_click = facts.click.is_some_and(|click| {
        let ids = &click.captured.click_ids;
        ids.gclid.is_some() || ids.gbraid.is_some() || ids.wbraid.is_some()
    });
    let alone = facts
        .network_click_id
        .is_some_and(|(name, _)| matches!(name.as_str(), "gclid" | "gbraid" | "wbraid"));
    may_have_led && (from_click || alone)
}
