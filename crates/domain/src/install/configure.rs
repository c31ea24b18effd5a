//! `configure`: a device says what it is and what brought it here.

use super::device_state::{Attribution, DeviceState};
use crate::access::Environment;
use crate::app::AttributionRules;
use crate::attribution::ad_services::AdServices;
use crate::attribution::evidence::{ClickIdSource, DeviceFingerprint, ReferrerTimes};
use crate::attribution::referrer::Referrer;
use crate::attribution::{
    AttributionCandidates, Candidate, ClickLookup, DeliveredClick, Evidence, MatchMethod,
    MatchState, Rejection, decide, improves,
};
use crate::billing::DeviceUpdate;
use crate::click::Click;
use crate::click::address::AddressClass;
use crate::device::{AdvertisingId, Consent, Device, DeviceKey, Identity, Platform, Traits};
use crate::event::{Event, EventSource, name};
use crate::ledger::MoneyPolicy;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, AttributionId, ClickId, EventId, LinkId};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// The click id that a device delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimedClick {
    /// Its tag is wrong, or it is none at all.
    BadToken,
    /// Ours, but of another app.
    Foreign(ClickId),
    /// Ours, of this app.
    Authentic(ClickId),
}

/// A click id, and how it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClickClaim {
    /// The click.
    pub click: ClaimedClick,
    /// How it reached the device.
    pub source: ClickIdSource,
}

/// A call of `configure`, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigureCommand {
    /// For which app.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// How the app attributes.
    pub rules: AttributionRules,
    /// What the app says about its SDK's money.
    pub policy: MoneyPolicy,
    /// When it arrived.
    pub at: Timestamp,
    /// Which device.
    pub device: DeviceKey,
    /// What it is.
    pub traits: Traits,
    /// The app's own id of the person.
    pub identity: Identity,
    /// The advertising id.
    pub advertising_id: Option<AdvertisingId>,
    /// Apple's id of the vendor.
    pub idfv: Option<String>,
    /// What the person consented to.
    pub consent: Consent,
    /// Where the call came from, as two letters.
    pub country: Option<String>,
    /// The click ids that it delivered, at most one each way.
    pub claims: Vec<ClickClaim>,
    /// What the Play Store handed over; nothing when the SDK sent none.
    pub referrer: Option<Referrer>,
    /// When, by the store's account.
    pub times: ReferrerTimes,
    /// To be redeemed at Apple's.
    pub ad_services_token: Option<String>,
    /// Of what kind the address is.
    pub address_class: AddressClass,
    /// The address as it is compared today; nothing where it must not be.
    pub address_hash: Option<Digest>,
    /// The address as clicks within the longest window of likeness have it.
    pub address_hashes: Vec<Digest>,
    /// The advertising id as clicks have it; nothing where it must not be compared.
    pub advertising_hash: Option<Digest>,
    /// The tap on an app link that opened the app without passing our doors. It is recorded with the call.
    pub app_link_click: Option<Click>,
    /// For the decision.
    pub attribution_id: AttributionId,
    /// For the install.
    pub install_id: EventId,
}

/// What the store has to find for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateQuery {
    /// These clicks of the app.
    pub clicks: Vec<ClickId>,
    /// Clicks with this advertising id.
    pub advertising_hash: Option<Digest>,
    /// Clicks from these addresses, not before [`Self::clicks_from`], and installs from them.
    pub address_hashes: Vec<Digest>,
    /// The longest window of likeness begins here.
    pub clicks_from: Timestamp,
}

/// The longest window of likeness. What the app asks for is judged later, so that a click that is too old by
/// the app's rule can be shown with that reason.
const PROBABILISTIC_WINDOW_MAX: Duration = Duration::from_hours(24);

/// What the store has to find before [`configure`] can decide. Likeness is looked for at the first call only.
pub fn candidate_query(command: &ConfigureCommand, known: &DeviceState) -> CandidateQuery {
    let clicks: Vec<ClickId> = claimed_clicks(command, known)
        .into_iter()
        .filter_map(|claim| match claim.click {
            ClaimedClick::Authentic(click) => Some(click),
            ClaimedClick::BadToken | ClaimedClick::Foreign(_) => None,
        })
        .collect();
    let is_web = command.traits.platform == Platform::Web;
    let first = known.attribution.is_none();
    let begin = command.at.as_millis() - millis(PROBABILISTIC_WINDOW_MAX);
    CandidateQuery {
        clicks,
        advertising_hash: command.advertising_hash.filter(|_| !is_web),
        address_hashes: if first && !is_web {
            command.address_hashes.clone()
        } else {
            Vec::new()
        },
        clicks_from: Timestamp::from_millis(begin),
    }
}

/// Every click that the device shows: what it delivers now, the link that opened it, and what a standing
/// decision still waits for.
fn claimed_clicks(command: &ConfigureCommand, known: &DeviceState) -> Vec<ClickClaim> {
    let opened = command.app_link_click.as_ref().map(|click| ClickClaim {
        click: ClaimedClick::Authentic(click.id),
        source: ClickIdSource::AppLink,
    });
    let pending = known.attribution.as_ref().and_then(pending_click);
    let mut shown = command.claims.clone();
    shown.extend(opened);
    shown.extend(pending.filter(|pending| !command.claims.contains(pending)));
    shown
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The click that a decision still waits for, and how it came.
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

/// What the store found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CandidateClicks {
    /// The clicks that were looked for, as far as they are stored.
    pub clicks: Vec<Candidate>,
    /// Clicks with the advertising id, newest first, at most [`ADVERTISING_CANDIDATES_MAX`].
    pub same_advertising_id: Vec<Candidate>,
    /// Clicks from the address, newest first, at most
    /// [`ADDRESS_CANDIDATES_MAX`](crate::attribution::ADDRESS_CANDIDATES_MAX) and one more.
    pub same_address: Vec<Candidate>,
    /// Other installs from the address in the hour before, by link.
    pub installs_from_address: Vec<(LinkId, u32)>,
}

/// Clicks with one advertising id that are looked at.
pub const ADVERTISING_CANDIDATES_MAX: usize = 20;

impl CandidateClicks {
    /// Leaves out clicks of the other environment.
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
    known: &DeviceState,
    found: CandidateClicks,
) -> AttributionCandidates {
    let found = found.in_environment(command.environment);
    let named = |claim: ClickClaim| {
        let named = match claim.click {
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
            lookup: named,
        }
    };
    AttributionCandidates {
        delivered: claimed_clicks(command, known)
            .into_iter()
            .map(named)
            .collect(),
        same_advertising_id: found.same_advertising_id,
        same_address: found.same_address,
        installs_from_address: found.installs_from_address,
    }
}

/// What a call changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigureDecision {
    /// The device, as it is now.
    pub device: Device,
    /// The person, as far as known now.
    pub identity: Identity,
    /// Whether this was the first call of the device.
    pub is_first_open: bool,
    /// The decision that stands now.
    pub attribution: Attribution,
    /// Whether it was made or replaced by this call: then the device's events so far are credited anew. It is
    /// written in any case, since its story may have grown.
    pub is_new_decision: bool,
    /// The install to record.
    pub install: Option<Event>,
    /// The click that this install now has to itself.
    pub taken_click: Option<ClickId>,
    /// The click that the decision names without having it to itself.
    pub referenced_click: Option<ClickId>,
    /// The click that it had before, free again.
    pub released_click: Option<ClickId>,
    /// Whether the token is to be redeemed.
    pub redeems_token: bool,
}

impl ConfigureDecision {
    /// What the device shows to those who look for it. Events take their platform and country from the device, so they
    /// are described again when those change.
    pub fn changed_identifiers(&self, known: &DeviceState) -> DeviceUpdate {
        let described = |device: &Device| (device.traits.platform, device.country.clone());
        let before = known.device.as_ref();
        let advertising = before.and_then(|device| device.advertising_id.as_ref());
        let now = self.device.advertising_id.clone();
        DeviceUpdate {
            user: self.identity.new_user(&known.identity),
            advertising: now.filter(|id| advertising != Some(id)),
            is_changed: before.map(described) != Some(described(&self.device)),
        }
    }

    /// What is known of the device from now on.
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
    /// What it may show, before it is known what the device went by.
    pub fn possible_identifiers(&self) -> DeviceUpdate {
        DeviceUpdate {
            user: self.identity.user.clone(),
            advertising: self.advertising_id.clone(),
            is_changed: true,
        }
    }

    /// Whether a click is another install's. A test device may match any click, and uses none up.
    pub fn is_taken_by_other(&self, taken_by: Option<&str>) -> bool {
        self.environment == Environment::Live
            && taken_by.is_some_and(|device| device != self.device.as_str())
    }
}

/// What a call of `configure` comes to.
pub fn configure(
    command: &ConfigureCommand,
    known: &DeviceState,
    found: CandidateClicks,
) -> ConfigureDecision {
    let facts = facts(command, known, found);
    let first_open = known.device.is_none();
    let first_open_at = known
        .device
        .as_ref()
        .map_or(command.at, |device| device.first_seen_at);
    let fresh = decide(
        &evidence(command, known, first_open_at),
        &facts,
        &command.rules,
    );
    let (attribution, decided) = match &known.attribution {
        None => {
            let first = Attribution::first(command.attribution_id, fresh, command.at);
            (first, true)
        }
        Some(standing) => {
            let better = improves(
                &standing.summary(first_open_at),
                &fresh,
                command.rules.click_window_hours,
                command.at,
            );
            if better {
                (standing.replaced_by(fresh, command.at), true)
            } else {
                (standing.with_late_evidence(&fresh), false)
            }
        }
    };
    let device = device(command, known.device.as_ref());
    let makes_install = first_open && command.traits.platform != Platform::Web;
    let install = makes_install.then(|| install(command, &device, known, &attribution));
    let takes_clicks =
        command.environment == Environment::Live && command.traits.platform != Platform::Web;
    let before = known
        .attribution
        .as_ref()
        .and_then(|standing| standing.decision.click);
    let (take, release) = match attribution.decision.click {
        now if takes_clicks && decided && now != before => (now, before),
        _ => (None, None),
    };
    let keep = attribution.decision.click;
    let keep = keep.filter(|_| decided && take.is_none());
    let apple_was_asked = known
        .attribution
        .as_ref()
        .is_some_and(Attribution::has_ad_services_result);
    ConfigureDecision {
        redeems_token: has_token(command) && !apple_was_asked,
        identity: known.identity.clone().updated(command.identity.clone()),
        device,
        is_first_open: first_open,
        attribution,
        is_new_decision: decided,
        install,
        taken_click: take,
        referenced_click: keep,
        released_click: release,
    }
}

fn has_token(command: &ConfigureCommand) -> bool {
    command.ad_services_token.is_some() && command.traits.platform == Platform::Ios
}

fn evidence(command: &ConfigureCommand, known: &DeviceState, first_open_at: Timestamp) -> Evidence {
    // A device shows the store's times once; what it left out now was said before.
    let before = known
        .attribution
        .as_ref()
        .map(|standing| standing.decision.times);
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
        probabilistic_allowed: known.attribution.is_none()
            && command.traits.platform != Platform::Web,
    }
}

/// What is known of the device now. What a call leaves out stays as it was.
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
        // An id that is no longer sent was taken back.
        advertising_id: command.advertising_id.clone(),
        idfv: command.idfv.clone().or_else(|| before.idfv.clone()),
        consent: before.consent.updated(command.consent),
        country: before.country.clone().or_else(|| command.country.clone()),
        first_seen_at: before.first_seen_at,
        last_seen_at: before.last_seen_at.max(command.at),
    }
}

fn install(
    command: &ConfigureCommand,
    device: &Device,
    known: &DeviceState,
    attribution: &Attribution,
) -> Event {
    let identity = known.identity.clone().updated(command.identity.clone());
    Event {
        id: command.install_id,
        external_id: command.install_id.to_string(),
        app: command.app,
        environment: command.environment,
        source: EventSource::Sdk,
        name: name::INSTALL.to_owned(),
        original_name: None,
        occurred_at: command.at,
        received_at: command.at,
        device: Some(device.key.clone()),
        user: identity.user,
        platform: Some(device.traits.platform),
        country: device.country.clone(),
        revenue: None,
        credit: Some(attribution.credit()),
        params: None,
        first_payment: false,
        is_service_install: true,
        duplicate_of: None,
        dedup_root: None,
        skipped: Vec::new(),
        website: None,
    }
}
