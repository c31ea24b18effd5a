//! JSON form of a device and its history. Advertising ids and hashes are not shown, only whether
//! they are known.

use super::explained::ExplainedOut;
use crate::body::Envelope;
use crate::consent::ConsentOut;
use crate::decimal::hundredths;
use crate::time_text::rfc3339;
use crate::v1::events::deliveries::EventDeliveries;
use crate::v1::events::shape::EventOut;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::access::Environment;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::{ContactHashes, Device, DeviceKey, Screen};
use tributary_domain::event::Event;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::DeviceDetails;
use utoipa::ToSchema;

/// A device with its attribution and events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "DeviceStory")]
pub(super) struct StoryOut {
    device_id: String,
    /// `live` or `test`.
    environment: &'static str,
    /// The app's user id.
    user_id: Option<String>,
    /// Which of the user's hashed identifiers are known.
    matching: MatchingOut,
    /// Suspicious properties of the identity: `tooManyUsers`, `claimBurst`, `unsignedUser`,
    /// `wrongSignature`, `crowdedUser`, `tooManyMatchingChanges`.
    identity_flags: Vec<&'static str>,
    /// The device; null if it was never configured.
    device: Option<DeviceOut>,
    attribution: Option<ExplainedOut>,
    /// Latest events, newest first.
    events: Vec<EventOut>,
    /// True if there are older events; `GET …/events?deviceId=` lists all of them.
    has_more_events: bool,
}

/// Traits of a device.
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
    /// Two-letter country code of the device's first call.
    country: Option<String>,
    /// True if an advertising id is known. The id is not shown.
    has_advertising_id: bool,
    consent: ConsentOut,
    #[schema(format = DateTime)]
    first_seen_at: String,
    /// Time of the last call, accurate to about an hour.
    #[schema(format = DateTime)]
    last_seen_at: String,
}

/// Screen size in points. The longer side is the height.
#[derive(Debug, Serialize, ToSchema)]
struct ScreenOut {
    width: u32,
    height: u32,
    #[schema(value_type = f64)]
    scale: Option<Box<RawValue>>,
}

/// Which of the user's hashed identifiers are known. The hashes themselves are not shown.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MatchingOut {
    email: bool,
    email_google: bool,
    phone: bool,
    #[serde(rename = "phoneE164")]
    phone_e164: bool,
}

/// Data needed to shape a device's history.
#[derive(Debug)]
pub(super) struct DeviceReportContext<'a> {
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
        context: &DeviceReportContext<'_>,
    ) -> Self {
        let state = story.state;
        let (app, tokens, now) = (context.app, context.tokens, context.now);
        let explained = |attribution| ExplainedOut::of(attribution, app, tokens, now);
        let event = |event: Event| {
            let its = deliveries.take(event.id);
            EventOut::of(event, its, tokens)
        };
        Self {
            device_id: context.device.as_str().to_owned(),
            environment: context.environment.as_str(),
            user_id: state.identity.user.map(|user| user.as_str().to_owned()),
            matching: (&state.identity.contact_hashes).into(),
            identity_flags: state
                .identity
                .flags
                .iter()
                .map(|flag| flag.as_str())
                .collect(),
            device: state.device.map(DeviceOut::from),
            attribution: state.attribution.map(explained),
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

/// Returns an example device for the OpenAPI description.
pub(super) fn example() -> serde_json::Value {
    serde_json::json!({
        "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "environment": "live",
        "userId": "user-42",
        "matching": {"email": true, "emailGoogle": false, "phone": false, "phoneE164": false},
        "identityFlags": [],
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
