//! JSON form of a device, its attribution and its user links.

use crate::personal_data::PersonDevice;
use crate::records::DeviceRow;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::access::Actor;
use tributary_domain::attribution::InstallHold;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::{
    AdvertisingId, Consent, Device, DeviceKey, Screen, Tracking, UserKey,
};
use tributary_domain::install::Attribution;
use tributary_domain::personal_data::{UserLink, own_candidates};
use tributary_domain::report::cohort::CohortDevice;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// A device.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PersonDeviceOut<'a> {
    device_id: &'a str,
    /// Spelling in the app's first call, if it differs.
    spelling: Option<&'a str>,
    user_id: Option<&'a str>,
    hashes: ContactHashesOut<'a>,
    hash_changes: u32,
    identity_flags: Vec<&'static str>,
    first_payment_event_id: Option<String>,
    properties: Option<PropertiesOut<'a>>,
    ip_address_hash: Option<String>,
    active_at: Option<String>,
    attribution: Option<AttributionOut>,
    ad_services_token: Option<AdServicesTokenOut>,
    has_erase_token: bool,
    cohort: Option<CohortOut>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContactHashesOut<'a> {
    email: Option<&'a str>,
    email_google: Option<&'a str>,
    phone: Option<&'a str>,
    #[serde(rename = "phoneE164")]
    phone_e164: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PropertiesOut<'a> {
    platform: &'static str,
    os_version: Option<&'a str>,
    model: Option<&'a str>,
    manufacturer: Option<&'a str>,
    app_version: Option<&'a str>,
    bundle_id: Option<&'a str>,
    locale: Option<&'a str>,
    timezone: Option<&'a str>,
    screen: Option<ScreenOut>,
    sdk_version: Option<&'a str>,
    country: Option<&'a str>,
    advertising_id: Option<&'a str>,
    idfv: Option<&'a str>,
    consent: PersonConsentOut,
    first_seen_at: String,
    last_seen_at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScreenOut {
    width: u32,
    height: u32,
    scale_percent: u32,
}

/// Consent; null means that the person was not asked.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PersonConsentOut {
    ad_user_data: Option<bool>,
    ad_personalization: Option<bool>,
    tracking: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AttributionOut {
    attribution_id: String,
    revision: u32,
    decided_at: String,
    network: &'static str,
    match_type: &'static str,
    click_id: Option<String>,
    link_id: Option<String>,
    reason: String,
    hold: Option<HoldOut>,
    /// Candidate clicks of other people, which are left out.
    other_candidates: usize,
    /// The decision as it is stored, with its evidence, settings and candidates.
    decision: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HoldOut {
    state: &'static str,
    held_at: String,
    decided_at: Option<String>,
    decided_by: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdServicesTokenOut {
    received_at: String,
    attempts: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CohortOut {
    installed_at: String,
    network: &'static str,
    link_id: Option<String>,
    campaign_id: String,
    country: String,
    /// Days since the install on which the device was active.
    active_days: Vec<u8>,
}

/// A link between a device and a user.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserLinkOut<'a> {
    user_id: &'a str,
    device_id: &'a str,
    first_linked_at: String,
    linked_at: String,
    is_used: bool,
    is_signed: bool,
    ip_address_hash: Option<String>,
}

fn digest(digest: Digest) -> String {
    hex(digest.as_bytes())
}

impl<'a> PersonDeviceOut<'a> {
    pub(super) fn of(one: &'a PersonDevice, app: AppId, tokens: &ClickTokens) -> Self {
        let (state, details) = (&one.state, &one.details);
        let device = state.device.as_ref();
        let identity = &state.identity;
        let hashes = &identity.contact_hashes;
        let attribution = device.zip(state.attribution.as_ref());
        Self {
            device_id: one.key.as_str(),
            spelling: device.and_then(|device| device.key.other_spelling()),
            user_id: identity.user.as_ref().map(UserKey::as_str),
            hashes: ContactHashesOut {
                email: hashes.email.as_deref(),
                email_google: hashes.email_google.as_deref(),
                phone: hashes.phone.as_deref(),
                phone_e164: hashes.phone_e164.as_deref(),
            },
            hash_changes: identity.matching_changes,
            identity_flags: identity.flags.iter().map(|flag| flag.as_str()).collect(),
            first_payment_event_id: state.first_payment.map(|id| id.to_string()),
            properties: device.map(PropertiesOut::from),
            ip_address_hash: details.address_hash.map(digest),
            active_at: details.active_at.map(Timestamp::rfc3339),
            attribution: attribution
                .map(|(device, attribution)| AttributionOut::of(device, attribution, app, tokens)),
            ad_services_token: details
                .ad_services_token
                .map(|(at, attempts)| AdServicesTokenOut {
                    received_at: at.rfc3339(),
                    attempts,
                }),
            has_erase_token: details.has_erase_token,
            cohort: details.cohort.as_ref().map(CohortOut::from),
        }
    }
}

impl<'a> From<&'a Device> for PropertiesOut<'a> {
    fn from(device: &'a Device) -> Self {
        let traits = &device.traits;
        Self {
            platform: traits.platform.as_str(),
            os_version: traits.os_version.as_deref(),
            model: traits.model.as_deref(),
            manufacturer: traits.manufacturer.as_deref(),
            app_version: traits.app_version.as_deref(),
            bundle_id: traits.bundle_id.as_deref(),
            locale: traits.locale.as_deref(),
            timezone: traits.timezone.as_deref(),
            screen: traits.screen.map(ScreenOut::from),
            sdk_version: traits.sdk_version.as_deref(),
            country: device.country.as_deref(),
            advertising_id: device.advertising_id.as_ref().map(AdvertisingId::as_str),
            idfv: device.idfv.as_deref(),
            consent: device.consent.into(),
            first_seen_at: device.first_seen_at.rfc3339(),
            last_seen_at: device.last_seen_at.rfc3339(),
        }
    }
}

impl From<Screen> for ScreenOut {
    fn from(screen: Screen) -> Self {
        let (height, width, scale_percent) = screen.parts();
        Self {
            width,
            height,
            scale_percent,
        }
    }
}

impl From<Consent> for PersonConsentOut {
    fn from(consent: Consent) -> Self {
        Self {
            ad_user_data: consent.ad_user_data,
            ad_personalization: consent.ad_personalization,
            tracking: consent.tracking.map(Tracking::as_str),
        }
    }
}

impl AttributionOut {
    fn of(device: &Device, attribution: &Attribution, app: AppId, tokens: &ClickTokens) -> Self {
        let decision = &attribution.decision;
        let candidates: Vec<_> = own_candidates(decision).cloned().collect();
        let other_candidates = decision.candidates.len() - candidates.len();
        let mut own = attribution.clone();
        own.decision.candidates = candidates;
        let stored = DeviceRow::write(device, &own).decision;
        Self {
            attribution_id: attribution.id.to_string(),
            revision: attribution.revision,
            decided_at: attribution.decided_at.rfc3339(),
            network: decision.network.as_str(),
            match_type: decision.match_type.as_str(),
            click_id: decision.click.map(|click| tokens.sign(app, click)),
            link_id: decision.link.map(|link| link.to_string()),
            reason: decision.reason.clone(),
            hold: attribution.hold.as_ref().map(HoldOut::from),
            other_candidates,
            decision: RawValue::from_string(stored).ok(),
        }
    }
}

impl From<&InstallHold> for HoldOut {
    fn from(hold: &InstallHold) -> Self {
        let review = hold.review.as_ref();
        Self {
            state: hold.state.as_str(),
            held_at: hold.held_at.rfc3339(),
            decided_at: review.map(|review| review.decided_at.rfc3339()),
            // Who decided is another person's data.
            decided_by: review.map(|review| match review.decided_by {
                Actor::Key(_) => "key",
                Actor::User(_) => "member",
                Actor::Operator | Actor::DeviceUser | Actor::Service => "operator",
            }),
        }
    }
}

impl From<&CohortDevice> for CohortOut {
    fn from(cohort: &CohortDevice) -> Self {
        Self {
            installed_at: cohort.installed_at.rfc3339(),
            network: cohort.credit.network,
            link_id: cohort.credit.link.map(|link| link.to_string()),
            campaign_id: cohort.credit.campaign.clone(),
            country: cohort.country.clone(),
            active_days: cohort.ages.iter().collect(),
        }
    }
}

impl<'a> From<&'a UserLink> for UserLinkOut<'a> {
    fn from(link: &'a UserLink) -> Self {
        Self {
            user_id: link.user.as_str(),
            device_id: DeviceKey::as_str(&link.device),
            first_linked_at: link.first_linked_at.rfc3339(),
            linked_at: link.linked_at.rfc3339(),
            is_used: link.is_used,
            is_signed: link.is_signed,
            ip_address_hash: link.address_hash.map(digest),
        }
    }
}
