//! Handles `configure`: registers a device and attributes its install.

use super::attestation::{Novelty, attribution_after, outcome_after};
use super::device_state::{Attribution, DeviceState};
use super::install_event::install;
use crate::access::Environment;
use crate::app::AttributionRules;
use crate::attestation::PresentedOutcome;
use crate::attribution::ad_services::AdServices;
use crate::attribution::evidence::{ClickIdSource, DeviceFingerprint, ReferrerTimes};
use crate::attribution::referrer::Referrer;
use crate::attribution::{
    AttributionCandidates, Candidate, ClickLookup, DeliveredClick, Evidence, MatchMethod,
    MatchState, Rejection, decide,
};
use crate::billing::DeviceUpdate;
use crate::click::Click;
use crate::click::address::AddressClass;
use crate::device::{
    AdvertisingId, ClaimDecision, ClaimFacts, Consent, Device, DeviceKey, Identity, IdentityClaim,
    Platform, Traits, UserClaim, claim,
};
use crate::event::Event;
use crate::forwarding::Sharing;
use crate::ledger::MoneyPolicy;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, AttributionId, ClickId, EventId, LinkId};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// A click id that a device sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimedClick {
    /// The signature is wrong or the text is not a click id.
    BadToken,
    /// A valid click id that belongs to another app.
    Foreign(ClickId),
    /// A valid click id that belongs to this app.
    Authentic(ClickId),
}

/// A click id and how the device got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClickClaim {
    /// The click.
    pub click: ClaimedClick,
    /// How the device got the click id.
    pub source: ClickIdSource,
}

/// A validated `configure` call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigureCommand {
    /// App id.
    pub app: AppId,
    /// Live or test environment.
    pub environment: Environment,
    /// The app's attribution rules.
    pub rules: AttributionRules,
    /// Whether revenue from the app's SDK counts.
    pub policy: MoneyPolicy,
    /// Time of arrival.
    pub at: Timestamp,
    /// The device.
    pub device: DeviceKey,
    /// Traits of the device.
    pub traits: Traits,
    /// The user, as identified by the app.
    pub identity: IdentityClaim,
    /// The advertising id.
    pub advertising_id: Option<AdvertisingId>,
    /// Apple's identifier for vendors.
    pub idfv: Option<String>,
    /// The user's consent.
    pub consent: Consent,
    /// Proof of the token with which the user can erase the device, if the SDK sent one.
    pub erase_proof: Option<Digest>,
    /// Two-letter code of the country of the caller's IP address.
    pub country: Option<String>,
    /// Click ids that the device sent, at most one per source.
    pub claims: Vec<ClickClaim>,
    /// The Play Store's install referrer, if the SDK sent one.
    pub referrer: Option<Referrer>,
    /// Click and install times reported by the Play Store.
    pub times: ReferrerTimes,
    /// Apple's AdServices token, to be redeemed.
    pub ad_services_token: Option<String>,
    /// Attestation of the call.
    pub attestation: PresentedOutcome,
    /// Class of the IP address.
    pub address_class: AddressClass,
    /// Today's hash of the IP address; `None` if the address must not be compared.
    pub address_hash: Option<Digest>,
    /// Hashes of the IP address as stored with clicks in the longest probabilistic window.
    pub address_hashes: Vec<Digest>,
    /// Hash of the advertising id as stored with clicks; `None` if the id must not be compared.
    pub advertising_hash: Option<Digest>,
    /// Click on an app link that opened the app directly, without a redirect. The click is recorded
    /// together with the call.
    pub app_link_click: Option<Click>,
    /// Id for a new attribution.
    pub attribution_id: AttributionId,
    /// Id for the install event.
    pub install_id: EventId,
}

/// Clicks that the store must load for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateQuery {
    /// The app's clicks with these ids.
    pub clicks: Vec<ClickId>,
    /// Clicks with this advertising id hash.
    pub advertising_hash: Option<Digest>,
    /// Hashes of the device's address. The store loads clicks from this address since
    /// [`Self::clicks_from`] and counts other installs from it.
    pub address_hashes: Vec<Digest>,
    /// Start of the longest probabilistic window.
    pub clicks_from: Timestamp,
}

impl CandidateQuery {
    /// Returns whether no click has to be loaded.
    pub const fn is_empty(&self) -> bool {
        self.clicks.is_empty() && self.advertising_hash.is_none() && self.address_hashes.is_empty()
    }
}

/// The longest probabilistic window. The app's own window is applied later, so that a click outside
/// that window is listed with this reason.
const PROBABILISTIC_WINDOW_MAX: Duration = Duration::from_hours(24);

/// Returns which clicks the store must load for [`configure`]. Probabilistic candidates are loaded
/// for the first call only.
pub fn candidate_query(command: &ConfigureCommand, state: &DeviceState) -> CandidateQuery {
    let clicks: Vec<ClickId> = claimed_clicks(command, state)
        .into_iter()
        .filter_map(|claim| match claim.click {
            ClaimedClick::Authentic(click) => Some(click),
            ClaimedClick::BadToken | ClaimedClick::Foreign(_) => None,
        })
        .collect();
    let is_web = command.traits.platform == Platform::Web;
    let is_first = state.attribution.is_none();
    let begin = command.at.as_millis() - millis(PROBABILISTIC_WINDOW_MAX);
    CandidateQuery {
        clicks,
        advertising_hash: command.advertising_hash.filter(|_| !is_web),
        address_hashes: if is_first && !is_web {
            command.address_hashes.clone()
        } else {
            Vec::new()
        },
        clicks_from: Timestamp::from_millis(begin),
    }
}

/// Returns every click that the device claims: the clicks that it sends now, the app link that
/// opened the app, and the click that an earlier decision is waiting for.
fn claimed_clicks(command: &ConfigureCommand, state: &DeviceState) -> Vec<ClickClaim> {
    let app_link = command.app_link_click.as_ref().map(|click| ClickClaim {
        click: ClaimedClick::Authentic(click.id),
        source: ClickIdSource::AppLink,
    });
    let pending = state.attribution.as_ref().and_then(pending_click);
    let mut claims = command.claims.clone();
    claims.extend(app_link);
    claims.extend(pending.filter(|pending| !command.claims.contains(pending)));
    claims
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the click that a decision is waiting for, and how the device got its id.
fn pending_click(attribution: &Attribution) -> Option<ClickClaim> {
    let decision = &attribution.decision;
    if decision.state != MatchState::PendingClick {
        return None;
    }
    let waiting = decision
        .candidates
        .iter()
        .find(|candidate| candidate.rejection == Some(Rejection::PendingClick))?;
    Some(ClickClaim {
        click: ClaimedClick::Authentic(waiting.click?),
        source: match waiting.method {
            MatchMethod::Referrer => ClickIdSource::Referrer,
            _ => ClickIdSource::Client,
        },
    })
}

/// Clicks that the store found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CandidateClicks {
    /// The claimed clicks that are stored.
    pub clicks: Vec<Candidate>,
    /// Clicks with the advertising id, newest first, at most [`ADVERTISING_CANDIDATES_MAX`].
    pub same_advertising_id: Vec<Candidate>,
    /// Clicks from the address, newest first, at most one more than
    /// [`ADDRESS_CANDIDATES_MAX`](crate::attribution::ADDRESS_CANDIDATES_MAX).
    pub same_address: Vec<Candidate>,
    /// Other installs from the address in the last hour, by link.
    pub installs_from_address: Vec<(LinkId, u32)>,
}

/// Maximum number of candidate clicks with the device's advertising id.
pub const ADVERTISING_CANDIDATES_MAX: usize = 20;

impl CandidateClicks {
    /// Returns all clicks.
    pub(super) fn all(&self) -> impl Iterator<Item = &Candidate> {
        let by_id = self.clicks.iter().chain(&self.same_advertising_id);
        by_id.chain(&self.same_address)
    }

    /// Removes clicks from the other environment.
    fn in_environment(mut self, environment: Environment) -> Self {
        let candidates = [
            &mut self.clicks,
            &mut self.same_advertising_id,
            &mut self.same_address,
        ];
        for clicks in candidates {
            clicks.retain(|one| one.click.is_visible_to(environment));
        }
        self
    }
}

fn facts(
    command: &ConfigureCommand,
    state: &DeviceState,
    found: CandidateClicks,
) -> AttributionCandidates {
    let found = found.in_environment(command.environment);
    let deliver = |claim: ClickClaim| {
        let lookup = match claim.click {
            ClaimedClick::BadToken => ClickLookup::BadToken,
            ClaimedClick::Foreign(click) => ClickLookup::Foreign(click),
            ClaimedClick::Authentic(id) => {
                let stored = found.clicks.iter().find(|one| one.click.id == id);
                stored.map_or(ClickLookup::Unknown(id), |one| {
                    ClickLookup::Found(Box::new(one.clone()))
                })
            }
        };
        DeliveredClick {
            source: claim.source,
            lookup,
        }
    };
    AttributionCandidates {
        delivered: claimed_clicks(command, state)
            .into_iter()
            .map(deliver)
            .collect(),
        same_advertising_id: found.same_advertising_id,
        same_address: found.same_address,
        installs_from_address: found.installs_from_address,
    }
}

/// Changes made by a `configure` call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigureDecision {
    /// The updated device.
    pub device: Device,
    /// The updated user identity.
    pub identity: Identity,
    /// The claim of a user to record.
    pub user_claim: Option<UserClaim>,
    /// Whether this is the device's first call.
    pub is_first_open: bool,
    /// The current decision.
    pub attribution: Attribution,
    /// Whether this call made or replaced the decision, or changed its attestation, so that the
    /// device's events must be credited and planned again. The attribution is stored in any case,
    /// because its candidates may have changed.
    pub is_new_decision: bool,
    /// The install to record.
    pub install: Option<Event>,
    /// Click to reserve for this install.
    pub taken_click: Option<ClickId>,
    /// Click that the decision refers to without reserving it.
    pub referenced_click: Option<ClickId>,
    /// Previously reserved click to release.
    pub released_click: Option<ClickId>,
    /// Whether to redeem the AdServices token.
    pub redeems_token: bool,
}

impl ConfigureDecision {
    /// Returns the changes to the device that matter for billing. Billing events copy the device's
    /// platform and country, so these events are updated when either changes. If the install
    /// becomes flagged, another device may have the better claim.
    pub fn changed_identifiers(&self, state: &DeviceState) -> DeviceUpdate {
        let described = |device: &Device| (device.traits.platform, device.country.clone());
        let before = state.device.as_ref();
        let was_flagged = state
            .attribution
            .as_ref()
            .is_some_and(Attribution::is_flagged);
        let advertising = before.and_then(|device| device.advertising_id.as_ref());
        let now = self.device.advertising_id.clone();
        DeviceUpdate {
            user: self.user_claim.as_ref().map(|claim| claim.user.clone()),
            advertising: now.filter(|id| advertising != Some(id)),
            is_changed: before.map(described) != Some(described(&self.device))
                || was_flagged != self.attribution.is_flagged(),
        }
    }

    /// Returns whether the call withdraws the consent to send the device's events to networks, so
    /// that their pending deliveries are cancelled.
    pub fn withdraws_consent(&self, before: &DeviceState) -> bool {
        let refuses = |device: &Device| Sharing::of(device.consent) == Sharing::Refused;
        refuses(&self.device) && !before.device.as_ref().is_some_and(refuses)
    }

    /// Returns the device's state after the call.
    pub fn device_state(&self, before: &DeviceState) -> DeviceState {
        DeviceState {
            device: Some(self.device.clone()),
            identity: self.identity.clone(),
            attribution: Some(self.attribution.clone()),
            first_payment: before.first_payment,
        }
    }
}

impl ConfigureCommand {
    /// Returns the largest update that this call can cause, for use before the stored state is
    /// known.
    pub fn possible_identifiers(&self) -> DeviceUpdate {
        DeviceUpdate {
            user: self.identity.user.clone(),
            advertising: self.advertising_id.clone(),
            is_changed: true,
        }
    }

    /// Returns whether another install has reserved the click, given the device that reserved it.
    /// Always false for test devices, which may match any click without reserving it.
    pub fn is_taken_by_other(&self, taken_by: Option<&str>) -> bool {
        self.environment == Environment::Live
            && taken_by.is_some_and(|device| device != self.device.as_str())
    }
}

/// Returns the changes that a `configure` call makes. `claims` are the device's earlier claims of
/// users.
pub fn configure(
    command: &ConfigureCommand,
    state: &DeviceState,
    found: CandidateClicks,
    claims: &ClaimFacts,
) -> ConfigureDecision {
    let facts = facts(command, state, found);
    let ClaimDecision {
        identity,
        user_claim,
    } = claim(&state.identity, &command.identity, claims);
    let is_first_open = state.device.is_none();
    let first_open_at = state
        .device
        .as_ref()
        .map_or(command.at, |device| device.first_seen_at);
    let new_decision = decide(
        &evidence(command, state, first_open_at),
        &facts,
        &command.rules,
    );
    let (attribution, novelty) = attribution_after(command, state, new_decision, first_open_at);
    let is_new_decision = novelty == Novelty::Decision;
    let device = device(command, state.device.as_ref());
    let records_install = is_first_open && command.traits.platform != Platform::Web;
    let install = records_install.then(|| install(command, &device, &identity, &attribution));
    let reserves_clicks =
        command.environment == Environment::Live && command.traits.platform != Platform::Web;
    let before = state
        .attribution
        .as_ref()
        .and_then(|current| current.decision.click);
    let (taken_click, released_click) = match attribution.decision.click {
        now if reserves_clicks && is_new_decision && now != before => (now, before),
        _ => (None, None),
    };
    let referenced_click = attribution.decision.click;
    let referenced_click = referenced_click.filter(|_| is_new_decision && taken_click.is_none());
    let has_ad_services_result = state
        .attribution
        .as_ref()
        .is_some_and(Attribution::has_ad_services_result);
    ConfigureDecision {
        redeems_token: has_token(command) && !has_ad_services_result,
        identity,
        user_claim,
        device,
        is_first_open,
        attribution,
        is_new_decision: novelty != Novelty::Nothing,
        install,
        taken_click,
        referenced_click,
        released_click,
    }
}

fn has_token(command: &ConfigureCommand) -> bool {
    command.ad_services_token.is_some() && command.traits.platform == Platform::Ios
}

fn evidence(command: &ConfigureCommand, state: &DeviceState, first_open_at: Timestamp) -> Evidence {
    // The device reports the Play Store's times once, so later calls reuse the stored ones.
    let before = state
        .attribution
        .as_ref()
        .map(|current| current.decision.times);
    let times = match before {
        Some(before) if command.times == ReferrerTimes::default() => before,
        _ => command.times,
    };
    Evidence {
        platform: command.traits.platform,
        environment: command.environment,
        first_open_at,
        now: command.at,
        referrer: command.referrer.clone(),
        times,
        ad_services: if has_token(command) {
            AdServices::Pending
        } else {
            AdServices::NoToken
        },
        fingerprint: DeviceFingerprint {
            address_class: Some(command.address_class),
            os_version: command.traits.os_version.clone(),
            model: command.traits.model.clone(),
            timezone: command.traits.timezone.clone(),
            locale: command.traits.locale.clone(),
            screen: command.traits.screen,
        },
        probabilistic_allowed: state.attribution.is_none()
            && command.traits.platform != Platform::Web,
        attestation: outcome_after(command, state),
    }
}

/// Returns the updated device. Fields that the call leaves out stay unchanged, except the
/// advertising id.
fn device(command: &ConfigureCommand, before: Option<&Device>) -> Device {
    let Some(before) = before else {
        return Device {
            key: command.device.clone(),
            traits: command.traits.clone(),
            advertising_id: command.advertising_id.clone(),
            idfv: command.idfv.clone(),
            consent: command.consent,
            country: command.country.clone(),
            first_seen_at: command.at,
            last_seen_at: command.at,
        };
    };
    Device {
        key: before.key.clone(),
        traits: before.traits.clone().updated(command.traits.clone()),
        // A missing advertising id means that permission was withdrawn.
        advertising_id: command.advertising_id.clone(),
        idfv: command.idfv.clone().or_else(|| before.idfv.clone()),
        consent: before.consent.updated(command.consent),
        country: before.country.clone().or_else(|| command.country.clone()),
        first_seen_at: before.first_seen_at,
        last_seen_at: before.last_seen_at.max(command.at),
    }
}
