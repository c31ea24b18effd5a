//! Rebuilds the evidence and the candidates of a stored install.

use super::{ReplayClick, ReplayGap, StoredInstall};
use crate::access::Environment;
use crate::attribution::ad_services::{AdServices, AdServicesRecord};
use crate::attribution::evidence::{ClickIdSource, DeviceFingerprint, ReferrerTimes};
use crate::attribution::referrer::Referrer;
use crate::attribution::{
    AttributionCandidates, Candidate, ClickLookup, ConsideredCandidate, DECISION_CANDIDATES_MAX,
    Decision, DeliveredClick, Evidence, Flag, INSTALL_BURST_MAX, MatchMethod, MatchType, Rejection,
};
use crate::click::address::AddressClass;
use crate::click::params::Utm;
use crate::device::{AdvertisingId, Device, Platform};
use crate::erasure::is_pseudonym;
use crate::install::Attribution;
use crate::vocabulary::id::ClickId;
use std::collections::{BTreeMap, BTreeSet};

/// Clicks that the store must load to replay an install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayQuery {
    /// Clicks that the decision names.
    pub clicks: BTreeSet<ClickId>,
    /// Advertising id whose clicks were not searched at the install, because a more reliable match
    /// won.
    pub advertising_id: Option<AdvertisingId>,
}

impl ReplayQuery {
    /// Returns the clicks that an install's replay needs.
    pub fn of(device: &Device, attribution: &Attribution) -> Self {
        let decision = &attribution.decision;
        let named = decision.candidates.iter().filter_map(|one| one.click);
        let is_searched = last_step(decision) >= step_of(MatchMethod::AdvertisingId);
        let advertising_id = device.advertising_id.clone();
        Self {
            clicks: named.chain(decision.click).collect(),
            advertising_id: advertising_id.filter(|_| !is_searched),
        }
    }
}

/// Returns the number of a method's step, in the order of [`decide`](crate::attribution::decide).
const fn step_of(method: MatchMethod) -> u8 {
    match method {
        MatchMethod::Referrer | MatchMethod::ClickId => 0,
        MatchMethod::AdServicesTap => 1,
        MatchMethod::ForeignReferrer => 2,
        MatchMethod::AdvertisingId => 3,
        MatchMethod::AdServicesView => 4,
        MatchMethod::Probabilistic => 5,
    }
}

fn winner(decision: &Decision) -> Option<&ConsideredCandidate> {
    let mut candidates = decision.candidates.iter();
    candidates.find(|one| one.rejection.is_none())
}

/// Returns whether the device sent a valid click id of which no candidate is listed.
fn lacks_click(decision: &Decision) -> bool {
    let is_valid = matches!(
        decision.evidence.click_token.as_deref(),
        Some("valid" | "opened_link")
    );
    let is_delivered = |one: &ConsideredCandidate| {
        matches!(one.method, MatchMethod::Referrer | MatchMethod::ClickId)
    };
    is_valid && !decision.candidates.iter().any(is_delivered)
}

/// Returns the last step that was evaluated: that of the winner, or all steps without a winner.
fn last_step(decision: &Decision) -> u8 {
    let winner = winner(decision);
    // A superseded decision may have evaluated more steps than the better one.
    let evaluated = decision.candidates.iter().map(|one| step_of(one.method));
    winner.map_or(step_of(MatchMethod::Probabilistic), |winner| {
        evaluated.fold(step_of(winner.method), u8::max)
    })
}

/// A stored install in the form that is decided.
pub(super) struct RebuiltInstall<'a> {
    pub(super) evidence: Evidence,
    /// Whether the clicks from the device's address are known.
    pub(super) knows_address: bool,
    /// Whether Apple reported an ad whose record is not stored.
    pub(super) lacks_apple_ad: bool,
    /// Whether the device sent the id of a click that is not listed, because it arrived too late.
    pub(super) lacks_click: bool,
    /// Method of the late evidence to leave out.
    leaves_out: Option<MatchMethod>,
    install: &'a StoredInstall,
    clicks: BTreeMap<ClickId, &'a ReplayClick>,
}

impl<'a> RebuiltInstall<'a> {
    /// Rebuilds an install. Fails if its evidence is not stored.
    pub(super) fn new(
        install: &'a StoredInstall,
        environment: Environment,
    ) -> Result<Self, ReplayGap> {
        let decision = &install.attribution.decision;
        let candidates = &decision.candidates;
        let is_credited = decision.match_type != MatchType::Organic;
        let is_removed = decision.evidence.address_class.is_none()
            || is_pseudonym(&install.device.key)
            || (is_credited && candidates.is_empty());
        if is_removed {
            return Err(ReplayGap::EvidenceRemoved);
        }
        let is_address = |one: &ConsideredCandidate| one.method == MatchMethod::Probabilistic;
        if candidates.len() >= DECISION_CANDIDATES_MAX && candidates.iter().any(is_address) {
            return Err(ReplayGap::CandidatesCut);
        }
        let stored = install.clicks.iter();
        let clicks: BTreeMap<_, _> = stored.map(|one| (one.click.id, one)).collect();
        let is_missing = |one: &ConsideredCandidate| {
            let was_stored = one.clicked_at.is_some();
            let is_stored = one.click.is_none_or(|id| clicks.contains_key(&id));
            was_stored && !is_stored
        };
        if candidates.iter().any(is_missing) {
            return Err(ReplayGap::ClickRemoved);
        }
        let (ad_services, lacks_apple_ad) = ad_services(decision);
        Ok(Self {
            evidence: Evidence {
                ad_services,
                ..evidence(install, environment)
            },
            knows_address: last_step(decision) == step_of(MatchMethod::Probabilistic)
                || install.attribution.revision > 1,
            lacks_apple_ad,
            lacks_click: lacks_click(decision),
            leaves_out: None,
            install,
            clicks,
        })
    }

    /// Returns the install without the evidence that replaced its first decision. That decision had
    /// no certain match, so it compared the clicks from the address, and nothing better was known.
    pub(super) fn before_improvement(self) -> Self {
        let winner = winner(&self.install.attribution.decision).map(|one| one.method);
        let mut evidence = self.evidence;
        match winner {
            Some(MatchMethod::AdServicesTap | MatchMethod::AdServicesView) => {
                evidence.ad_services = AdServices::Pending;
            }
            // The Play Store's times arrive with its referrer.
            Some(MatchMethod::Referrer | MatchMethod::ForeignReferrer) => {
                evidence.referrer = None;
                evidence.times = ReferrerTimes::default();
            }
            _ => {}
        }
        Self {
            evidence,
            lacks_apple_ad: false,
            lacks_click: false,
            leaves_out: winner,
            ..self
        }
    }

    /// Returns the candidates. `is_taken` says whether another install has claimed a click.
    pub(super) fn candidates(
        &self,
        is_taken: impl Fn(&ReplayClick) -> bool,
    ) -> AttributionCandidates {
        let candidate = |one: &ReplayClick| Candidate {
            click: one.click.clone(),
            deep_link: None,
            custom_data: BTreeMap::new(),
            is_taken: is_taken(one),
        };
        let decision = &self.install.attribution.decision;
        let found_by = |method: MatchMethod| {
            let listed = decision.candidates.iter();
            // All clicks with an advertising id become known with the id.
            let listed =
                listed.filter(move |one| one.method == method && self.leaves_out != Some(method));
            listed.filter_map(|one| self.clicks.get(&one.click?).map(|found| candidate(found)))
        };
        let delivered = decision
            .candidates
            .iter()
            .filter(|one| self.leaves_out.is_none() || one.rejection.is_some())
            .filter_map(|one| self.delivered(one, candidate));
        let environment = self.evidence.environment;
        let searched = self.install.same_advertising_id.iter();
        let searched = searched.filter(|one| one.click.is_visible_to(environment));
        let searched = searched.map(candidate);
        // The flag says that the limit was reached for the credited link.
        let burst = decision.link.filter(|_| {
            let flags = &decision.flags;
            flags.contains(&Flag::InstallBurst)
        });
        AttributionCandidates {
            delivered: delivered.collect(),
            same_advertising_id: found_by(MatchMethod::AdvertisingId)
                .chain(searched)
                .collect(),
            same_address: found_by(MatchMethod::Probabilistic).collect(),
            installs_from_address: burst
                .map(|link| (link, INSTALL_BURST_MAX))
                .into_iter()
                .collect(),
        }
    }

    fn delivered(
        &self,
        one: &ConsideredCandidate,
        candidate: impl Fn(&ReplayClick) -> Candidate,
    ) -> Option<DeliveredClick> {
        let summary = &self.install.attribution.decision.evidence;
        let source = match one.method {
            MatchMethod::Referrer => ClickIdSource::Referrer,
            MatchMethod::ClickId if summary.click_token.as_deref() == Some("opened_link") => {
                ClickIdSource::AppLink
            }
            MatchMethod::ClickId => ClickIdSource::Client,
            _ => return None,
        };
        let lookup = match (one.rejection, one.click) {
            // The id of another app's click is not stored.
            (Some(Rejection::ForeignClick), _) => {
                ClickLookup::Foreign(ClickId::from_bytes([0; 16]))
            }
            (Some(Rejection::PendingClick), Some(id)) => ClickLookup::Unknown(id),
            (_, None) => ClickLookup::BadToken,
            (_, Some(id)) => ClickLookup::Found(Box::new(candidate(self.clicks.get(&id)?))),
        };
        Some(DeliveredClick { source, lookup })
    }
}

fn evidence(install: &StoredInstall, environment: Environment) -> Evidence {
    let (device, attribution) = (&install.device, &install.attribution);
    let decision = &attribution.decision;
    let class = decision.evidence.address_class.as_deref();
    Evidence {
        platform: device.traits.platform,
        environment,
        first_open_at: device.first_seen_at,
        now: attribution.decided_at,
        referrer: referrer(decision),
        times: decision.times,
        ad_services: AdServices::NoToken,
        fingerprint: DeviceFingerprint {
            address_class: class.and_then(AddressClass::parse),
            os_version: device.traits.os_version.clone(),
            model: device.traits.model.clone(),
            timezone: device.traits.timezone.clone(),
            locale: device.traits.locale.clone(),
            screen: device.traits.screen,
        },
        probabilistic_allowed: device.traits.platform != Platform::Web,
        attestation: decision.evidence.attestation,
    }
}

/// Rebuilds the referrer. Of a third party's ad only the credit is stored, so its tags are
/// placeholders: they make the ad count, and the replay uses the stored credit.
fn referrer(decision: &Decision) -> Option<Referrer> {
    let is_listed = decision
        .candidates
        .iter()
        .any(|one| one.method == MatchMethod::ForeignReferrer);
    let is_evaluated = last_step(decision) >= step_of(MatchMethod::ForeignReferrer);
    Some(match decision.evidence.referrer.as_deref()? {
        "ours" => Referrer::Ours(String::new()),
        "organic" => Referrer::Organic,
        "unavailable" => Referrer::Unavailable,
        // Evaluated without a candidate: it named no ad.
        _ if is_evaluated && !is_listed => Referrer::Other(Box::default()),
        _ => Referrer::Other(Box::new(Utm {
            source: Some("unknown".to_owned()),
            ..Utm::default()
        })),
    })
}

/// Rebuilds Apple's result, and whether Apple reported an ad whose record is not stored.
fn ad_services(decision: &Decision) -> (AdServices, bool) {
    // A record that was rejected for its time is rejected again, whatever else it contained.
    let is_known =
        |one: &&ConsideredCandidate| matches!(one.rejection, None | Some(Rejection::Implausible));
    let record = |method: MatchMethod| {
        let mut listed = decision.candidates.iter().filter(is_known);
        let listed = listed.find(|one| one.method == method)?;
        Some(Box::new(AdServicesRecord {
            at: listed.clicked_at,
            ..AdServicesRecord::default()
        }))
    };
    let result = match decision.evidence.ad_services.as_deref() {
        Some("tap") => record(MatchMethod::AdServicesTap).map(AdServices::Tap),
        Some("view") => record(MatchMethod::AdServicesView).map(AdServices::View),
        Some("pending") => Some(AdServices::Pending),
        Some("not_attributed") => Some(AdServices::NotAttributed),
        Some("invalid") => Some(AdServices::Invalid),
        Some("expired") => Some(AdServices::Expired),
        _ => Some(AdServices::NoToken),
    };
    let is_missing = result.is_none();
    (result.unwrap_or(AdServices::NotAttributed), is_missing)
}
