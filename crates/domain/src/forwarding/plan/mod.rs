//! Which networks hear of an event, decided while it is accepted.

mod of_device;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

pub use of_device::{DeviceFacts, Replan, planned_with};

use super::conversion::{Sharing, lacks_money};
use super::dedup::dedup_id;
use super::limits::{expires_at, sendable_from, told_with_click};
use crate::access::Environment;
use crate::attribution::{CreditedNetwork, MatchType};
use crate::click::Click;
use crate::device::{Consent, Matching};
use crate::erasure::is_pseudonym;
use crate::event::name::INSTALL;
use crate::event::{Event, EventSource};
use crate::integration::{
    EventScope, Integration, MappingRow, Network, REPORTING_ONLY, SettingValue,
};
use crate::ledger::{MoneyPolicy, Uncounted};
use crate::vocabulary::time::Timestamp;

/// Names of money from the SDK that a billing provider reports as well.
const REPORTED_BY_BILLING: &[&str] = &["purchase", "subscribe", "start_trial"];

/// Why a network does not hear of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
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
    Skip {
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
    pub matching: &'a Matching,
    /// Whether the device said what it runs on.
    pub is_described: bool,
    /// Whether the app holds back what this install does.
    pub held: bool,
    /// What the app says about money from this source.
    pub policy: MoneyPolicy,
    /// When it is planned.
    pub now: Timestamp,
}

/// A delivery to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
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
    pub planned: Vec<Planned>,
    /// Not to be sent.
    pub skipped: Vec<(Network, Skip)>,
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
            Some(integration) => match delivery(facts, integration, is_credited) {
                Ok(planned) => plan.planned.push(planned),
                Err(skip) => plan.skipped.push((network, skip)),
            },
            None if is_credited => plan.skipped.push((network, without_integration(facts))),
            None => {}
        }
    }
    plan
}

/// The networks that do not hear of an event that is kept from every network, with the reason.
pub fn withheld(event: &Event, integrations: &[Integration]) -> Vec<(Network, Skip)> {
    let Err(skip) = from_every_network(event) else {
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
fn from_every_network(event: &Event) -> Result<(), Skip> {
    if event.environment != Environment::Live {
        return Err(Skip::Sandbox);
    }
    if event.device.as_ref().is_some_and(is_pseudonym) {
        return Err(Skip::Erased);
    }
    if event.duplicate_of.is_some() {
        return Err(Skip::DuplicateOfVerified);
    }
    // Only ours is the install; one that an app sends by that name is in the log.
    let is_no_install = event.name == INSTALL && !event.own;
    if is_no_install || REPORTING_ONLY.contains(&event.name.as_str()) {
        return Err(Skip::ReportingOnly);
    }
    Ok(())
}

fn without_integration(facts: &PlanFacts<'_>) -> Skip {
    from_every_network(facts.event)
        .err()
        .unwrap_or(Skip::IntegrationDisabled)
}

fn delivery(
    facts: &PlanFacts<'_>,
    integration: &Integration,
    is_credited: bool,
) -> Result<Planned, Skip> {
    let event = facts.event;
    from_every_network(event)?;
    if integration.scope == EventScope::Attributed && !is_credited {
        return Err(Skip::NotAttributed);
    }
    let row = mapped(integration, event).ok_or(Skip::NotMapped)?;
    if integration
        .active_since()
        .is_some_and(|since| event.received_at < since)
    {
        return Err(Skip::EnabledLater);
    }
    may_be_told(facts, integration)?;
    let expires_at = expires_at(
        integration,
        event.told_at(),
        facts.click.map(|click| click.clicked_at),
    );
    if facts.now >= expires_at {
        return Err(Skip::TooOld);
    }
    if lacks_money(event, &row.network_event) {
        return Err(Skip::AmountNotForwardable);
    }
    is_known(facts, integration, &row.network_event)?;
    let own_id = integration.flag("webEventId");
    Ok(Planned {
        network: integration.network,
        dedup_id: dedup_id(event, integration.network, &row.network_event, own_id),
        due_at: facts
            .now
            .max(sendable_from(integration.network, event.told_at())),
        expires_at,
        network_event: row.network_event,
    })
}

/// The row of the map that is in force for an event. `network_d` hears of trials by default only from websites.
fn mapped(integration: &Integration, event: &Event) -> Option<MappingRow> {
    let row = integration.row(&event.name)?;
    let only_from_websites = integration.network == Network::D
        && integration.event_mapping.is_none()
        && event.name == "start_trial";
    (!only_from_websites || event.source == EventSource::Web).then_some(row)
}

/// Whether the network may hear of it at all.
fn may_be_told(facts: &PlanFacts<'_>, integration: &Integration) -> Result<(), Skip> {
    let event = facts.event;
    if facts.held {
        return Err(Skip::Fraud);
    }
    let by_likeness = event
        .credit
        .as_ref()
        .is_some_and(|credit| credit.match_type == MatchType::Probabilistic);
    if by_likeness && !integration.flag("forwardProbabilistic") {
        return Err(Skip::Probabilistic);
    }
    let from_billing_too = facts.policy == MoneyPolicy::Ignore(Uncounted::BillingSource)
        && event.source == EventSource::Sdk
        && REPORTED_BY_BILLING.contains(&event.name.as_str());
    if from_billing_too {
        return Err(Skip::BillingSource);
    }
    let refused = Sharing::of(facts.consent) == Sharing::Refused;
    if event.source != EventSource::Web && refused {
        return Err(Skip::Consent);
    }
    Ok(())
}

/// Whether the network could tell whose it is. Three networks take the hashed id of the device, unless it is a placeholder.
fn is_known(
    facts: &PlanFacts<'_>,
    integration: &Integration,
    network_event: &str,
) -> Result<(), Skip> {
    let device = facts.event.device.as_ref();
    let has_device = device.is_some_and(|device| !device.is_placeholder());
    let has_hash = *facts.matching != Matching::default();
    match integration.network {
        Network::A => {
            let website = integration.text("sdkEventMode") != Some("app")
                || facts.event.source == EventSource::Web;
            let has_agent = facts.click.is_some_and(|click| click.user_agent.is_some());
            let enough = if website {
                has_agent && has_page(facts.event)
            } else {
                facts.is_described && (has_device || has_hash)
            };
            enough.then_some(()).ok_or(Skip::InsufficientIdentity)
        }
        Network::B => {
            let has_action = match integration.settings.get("conversionActions") {
                Some(SettingValue::Map(actions)) => actions.contains_key(network_event),
                _ => false,
            };
            if !has_action {
                return Err(Skip::NoConversionAction);
            }
            let Matching {
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
                .ok_or(Skip::NoClickId)
        }
        Network::C => {
            let by_click = facts.click.is_some_and(|click| {
                let is_seen = click.address.is_some() && click.user_agent.is_some();
                click.captured.click_ids.ttclid.is_some() || is_seen
            });
            let is_known = has_device || device.is_some() && (has_hash || by_click);
            let enough = is_known && has_page(facts.event);
            enough.then_some(()).ok_or(Skip::InsufficientIdentity)
        }
        Network::D => {
            let has_click_id = |click: &Click| click.captured.click_ids.oppref.is_some();
            let by_click = facts.click.is_some_and(has_click_id);
            let has_email = facts.matching.email.is_some();
            let enough = has_device || device.is_some() && (has_email || by_click);
            enough.then_some(()).ok_or(Skip::InsufficientIdentity)
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
    let may_have_led = facts
        .click
        .is_none_or(|click| told_with_click(facts.event.told_at(), click.clicked_at).is_some());
    let from_click = facts.click.is_some_and(|click| {
        let ids = &click.captured.click_ids;
        ids.gclid.is_some() || ids.gbraid.is_some() || ids.wbraid.is_some()
    });
    let alone = facts
        .network_click_id
        .is_some_and(|(name, _)| matches!(name.as_str(), "gclid" | "gbraid" | "wbraid"));
    may_have_led && (from_click || alone)
}
