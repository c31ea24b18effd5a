//! A device's story as the interface shows it. Ids and hashes of people stay inside: what is shown of them is
//! which ones are known.

use super::explained::ExplainedOut;
use crate::body::Envelope;
use crate::decimal::hundredths;
use crate::time_text::rfc3339;
use crate::v1::events::deliveries::EventDeliveries;
use crate::v1::events::shape::EventOut;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::access::Environment;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::{Consent, ContactHashes, Device, DeviceKey, Screen, Tracking};
use tributary_domain::event::Event;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::DeviceDetails;
use utoipa::ToSchema;

/// Everything that is known of a device.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "DeviceStory")]
pub(super) struct StoryOut {
    device_id: String,
    /// `live` or `test`.
    environment: &'static str,
    /// The app's own id of the person.
    user_id: Option<String>,
    /// Which hashes of the person are known.
    matching: MatchingOut,
    /// Null when it was never configured.
    device: Option<DeviceOut>,
    attribution: Option<ExplainedOut>,
    /// The latest ones, newest first.
    events: Vec<EventOut>,
    /// Whether there are older ones; `GET …/events?deviceId=` lists them all.
    has_more_events: bool,
}

/// What a device said about itself.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeviceOut {
    #[schema(inline, value_type = crate::track::PlatformChoice)]
    platform: &'static str,
    os_version: Option<String>,
    model: Option<String>,
    manufacturer: Option<String>,
    app_version: Option<String>,
    bundle_id: Option<String>,
    locale: Option<String>,
    timezone: Option<String>,
    screen: Option<ScreenOut>,
    sdk_version: Option<String>,
    /// Two letters, where its first call came from.
    country: Option<String>,
    /// Whether an advertising id is known; the id itself is not shown.
    has_advertising_id: bool,
    consent: ConsentOut,
    #[schema(format = DateTime)]
    first_seen_at: String,
    /// Give or take an hour.
    #[schema(format = DateTime)]
    last_seen_at: String,
}

/// In points, the longer side as the height.
#[derive(Debug, Serialize, ToSchema)]
struct ScreenOut {
    width: u32,
    height: u32,
    #[schema(value_type = f64)]
    scale: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConsentOut {
    ad_user_data: Option<bool>,
    ad_personalization: Option<bool>,
    tracking: Option<&'static str>,
}

/// Which hashes are known; the hashes themselves are not shown.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MatchingOut {
    email: bool,
    email_google: bool,
    phone: bool,
    #[serde(rename = "phoneE164")]
    phone_e164: bool,
}

/// Whose story, and when it is told.
#[derive(Debug)]
pub(super) struct StoryContext<'a> {
    pub(super) app: AppId,
    pub(super) environment: Environment,
    pub(super) device: DeviceKey,
    pub(super) tokens: &'a ClickTokens,
    pub(super) now: Timestamp,
}

impl StoryOut {
    pub(super) fn of(
        story: DeviceDetails,
        mut deliveries: EventDeliveries,
        teller: &StoryContext<'_>,
    ) -> Self {
        let known = story.state;
        let (app, tokens, now) = (teller.app, teller.tokens, teller.now);
        let explained = |attribution| ExplainedOut::of(attribution, app, tokens, now);
        let event = |event: Event| {
            let its = deliveries.take(event.id);
            EventOut::of(event, its, tokens)
        };
        Self {
            device_id: teller.device.as_str().to_owned(),
            environment: teller.environment.as_str(),
            user_id: known.identity.user.map(|user| user.as_str().to_owned()),
            matching: (&known.identity.contact_hashes).into(),
            device: known.device.map(DeviceOut::from),
            attribution: known.attribution.map(explained),
            events: story.events.into_iter().map(event).collect(),
            has_more_events: story.has_more_events,
        }
    }
}

impl From<Device> for DeviceOut {
    fn from(device: Device) -> Self {
        let traits = device.traits;
        Self {
            platform: traits.platform.as_str(),
            os_version: traits.os_version,
            model: traits.model,
            manufacturer: traits.manufacturer,
            app_version: traits.app_version,
            bundle_id: traits.bundle_id,
            locale: traits.locale,
            timezone: traits.timezone,
            screen: traits.screen.map(ScreenOut::from),
            sdk_version: traits.sdk_version,
            country: device.country,
            has_advertising_id: device.advertising_id.is_some(),
            consent: device.consent.into(),
            first_seen_at: rfc3339(device.first_seen_at),
            last_seen_at: rfc3339(device.last_seen_at),
        }
    }
}

impl From<Screen> for ScreenOut {
    fn from(screen: Screen) -> Self {
        let (longer, shorter, scale) = screen.parts();
        Self {
            width: shorter,
            height: longer,
            scale: hundredths(scale),
        }
    }
}

impl From<Consent> for ConsentOut {
    fn from(consent: Consent) -> Self {
        Self {
            ad_user_data: consent.ad_user_data,
            ad_personalization: consent.ad_personalization,
            tracking: consent.tracking.map(Tracking::as_str),
        }
    }
}

impl From<&ContactHashes> for MatchingOut {
    fn from(matching: &ContactHashes) -> Self {
        Self {
            email: matching.email.is_some(),
            email_google: matching.email_google.is_some(),
            phone: matching.phone.is_some(),
            phone_e164: matching.phone_e164.is_some(),
        }
    }
}

pub(super) type StoryEnvelope = Envelope<StoryOut>;

/// A story for the examples of the description.
pub(super) fn example() -> serde_json::Value {
    serde_json::json!({
        "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "environment": "live",
        "userId": "user-42",
        "matching": {"email": true, "emailGoogle": false, "phone": false, "phoneE164": false},
        "device": {
            "platform": "android",
            "osVersion": "14",
            "model": "Pixel 8",
            "manufacturer": "Google",
            "appVersion": "3.1.0",
            "bundleId": "com.example.runner",
            "locale": "en_US",
            "timezone": "America/New_York",
            "screen": {"width": 412, "height": 915, "scale": 2.62},
            "sdkVersion": "1.0.0",
            "country": "US",
            "hasAdvertisingId": false,
            "consent": {"adUserData": true, "adPersonalization": null, "tracking": "notDetermined"},
            "firstSeenAt": "2026-01-01T00:00:00.000Z",
            "lastSeenAt": "2026-01-01T00:00:00.000Z"
        },
        "attribution": super::explained::example(),
        "events": [crate::v1::events::shape::example()],
        "hasMoreEvents": false
    })
}
