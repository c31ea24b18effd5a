//! The body of `configure`: what the device is and what brought it here.
//!
//! Which device calls and what it runs on must be known. Everything else is worth less than the install, which a
//! refusal would lose for good: what cannot be read is left out. Its faults are noted all the same, for whoever
//! is refused.

use super::opened::OPENED_URL_BYTES_MAX;
use super::raw::{Fields, digits, flag, integer, text, text_as};
use serde_json::value::RawValue;
use tributary_domain::attribution::evidence::ReferrerTimes;
use tributary_domain::attribution::referrer::Referrer;
use tributary_domain::click::kept_user_agent;
use tributary_domain::device::{
    AdvertisingId, Consent, DeviceKey, Platform, Screen, TRAIT_CHARS_MAX, Tracking, Traits, UserKey,
};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::number::rounded;
use tributary_domain::vocabulary::time::Timestamp;
use utoipa::ToSchema;

/// Points of a side of a screen, and hundredths of its scale, that some device could have. What is beyond is a
/// mistake, and the screen is as good as unknown.
const SCREEN_MAX: i64 = 100_000;
/// What iOS says where the person may not even decide, as on a managed device.
const RESTRICTED: &str = "restricted";
/// Bytes of a token of Apple's. They have a few hundred.
const AD_SERVICES_TOKEN_BYTES_MAX: usize = 4_096;
/// Bytes of a click id, ours or not, that are looked at. Ours have 54.
const CLICK_ID_BYTES_MAX: usize = 500;
const MILLIS_PER_SECOND: i64 = 1_000;

/// What a device says about itself and what brought it here.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) device: DeviceKey,
    pub(super) traits: Traits,
    pub(super) user: Option<UserKey>,
    pub(super) advertising_id: Option<AdvertisingId>,
    pub(super) idfv: Option<String>,
    pub(super) consent: Consent,
    pub(super) click_id: Option<String>,
    /// Nothing when the SDK sent none.
    pub(super) referrer: Option<Referrer>,
    pub(super) times: ReferrerTimes,
    pub(super) ad_services_token: Option<String>,
    pub(super) opened_url: Option<String>,
    /// Of the platform's web view.
    pub(super) user_agent: Option<String>,
}

/// Reads the body. Nothing only when the device or its platform cannot be read.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Said> {
    let device = fields.required("deviceId", text_as(DeviceKey::parse));
    let platform = fields.required("platform", text_as(platform));
    let user = fields.optional("userId", user_id).flatten();
    let consent = consent(fields.section("consent"));
    let (idfa, gaid) = (
        fields.optional("idfa", text_as(advertising_id)).flatten(),
        fields.optional("gaid", text_as(advertising_id)).flatten(),
    );
    let (referrer, times) = install_referrer(fields);
    let mut kept = |name: &str, bytes_max: usize| {
        let whole = fields.optional(name, cleaned).flatten();
        whole.filter(|text| text.len() <= bytes_max)
    };
    let click_id = kept("arClickId", CLICK_ID_BYTES_MAX);
    let opened_url = kept("openedUrl", OPENED_URL_BYTES_MAX);
    let token = kept("adServicesToken", AD_SERVICES_TOKEN_BYTES_MAX);
    let idfv = fields.optional("idfv", trait_text).flatten();
    let user_agent = fields.optional("userAgent", user_agent).flatten();
    // Read for its faults, whether there is a platform or not: who is refused hears of all of them.
    let traits = traits(fields, platform.unwrap_or(Platform::Web));
    let platform = platform?;
    Some(Said {
        device: device?,
        traits,
        user,
        advertising_id: consent.permitted(match platform {
            Platform::Ios => idfa,
            Platform::Android => gaid,
            Platform::Web => None,
        }),
        idfv,
        consent,
        click_id,
        referrer,
        times,
        ad_services_token: token.filter(|_| platform == Platform::Ios),
        opened_url,
        user_agent,
    })
}

fn traits(fields: &mut Fields<'_, '_>, platform: Platform) -> Traits {
    let mut text = |name| fields.optional(name, trait_text).flatten();
    Traits {
        platform,
        os_version: text("osVersion"),
        model: text("model"),
        manufacturer: text("manufacturer"),
        app_version: text("appVersion"),
        bundle_id: text("bundleId"),
        locale: text("locale"),
        timezone: text("timezone"),
        sdk_version: text("sdkVersion"),
        screen: screen(fields.section("screen")),
    }
}

/// The id of a person. An empty one says that nobody is signed in.
pub(super) fn user_id(raw: &RawValue) -> Result<Option<UserKey>, Problem> {
    let text = text(raw)?;
    if text.is_empty() {
        return Ok(None);
    }
    UserKey::parse(&text).map(Some)
}

fn platform(text: &str) -> Result<Platform, Problem> {
    let message = "Must be one of ios, android, web.";
    Platform::parse(text).ok_or_else(|| Problem::new(FaultCode::UnknownValue, message))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "what is no advertising id is dropped, not refused"
)]
fn advertising_id(text: &str) -> Result<Option<AdvertisingId>, Problem> {
    Ok(AdvertisingId::parse(text))
}

/// A text without control characters and outer blanks; nothing when that leaves nothing.
fn cleaned(raw: &RawValue) -> Result<Option<String>, Problem> {
    let plain: String = text(raw)?.chars().filter(|c| !c.is_control()).collect();
    let trimmed = plain.trim();
    Ok((!trimmed.is_empty()).then(|| trimmed.to_owned()))
}

/// A text that is cut where it is too long.
fn trait_text(raw: &RawValue) -> Result<Option<String>, Problem> {
    let cut = |text: String| text.chars().take(TRAIT_CHARS_MAX).collect();
    Ok(cleaned(raw)?.map(cut))
}

/// A user agent, as one of a click is kept.
fn user_agent(raw: &RawValue) -> Result<Option<String>, Problem> {
    Ok(kept_user_agent(&text(raw)?))
}

fn screen(mut fields: Fields<'_, '_>) -> Option<Screen> {
    let mut side = |name, decimals| {
        let digits = fields.optional(name, digits)?;
        let number = rounded(digits, decimals).filter(|number| *number <= SCREEN_MAX)?;
        u32::try_from(number).ok()
    };
    let (width, height, thousandths) = (side("width", 0), side("height", 0), side("scale", 3));
    // Cut, not rounded, as the landing page cuts it: 2.625 must be the same on both sides.
    Screen::new(width?, height?, thousandths? / 10)
}

fn consent(mut fields: Fields<'_, '_>) -> Consent {
    Consent {
        ad_user_data: fields.optional("adUserData", flag),
        ad_personalization: fields.optional("adPersonalization", flag),
        tracking: fields.optional("tracking", text_as(tracking)),
    }
}

/// The answer to the platform's own prompt. Who may not decide has not agreed.
fn tracking(text: &str) -> Result<Tracking, Problem> {
    if text == RESTRICTED {
        return Ok(Tracking::Denied);
    }
    let message = "Must be one of authorized, denied, notDetermined, restricted.";
    Tracking::parse(text).ok_or_else(|| Problem::new(FaultCode::UnknownValue, message))
}

/// What the Play Store handed over. An object without a referrer says that the store could not be asked, which
/// is not the same as no object.
fn install_referrer(fields: &mut Fields<'_, '_>) -> (Option<Referrer>, ReferrerTimes) {
    let mut fields = fields.section("installReferrer");
    let is_there = fields.is_there();
    let referrer = fields.optional("referrer", text);
    // Zero means unknown, and so does whatever cannot be.
    let mut time = |name| {
        let seconds = fields
            .optional(name, integer)
            .filter(|seconds| *seconds > 0)?;
        let millis = seconds.checked_mul(MILLIS_PER_SECOND)?;
        Some(Timestamp::from_millis(millis))
    };
    let times = ReferrerTimes {
        click_at: time("clickAtSeconds"),
        install_begin_at: time("installBeginAtSeconds"),
        click_at_server: time("clickAtServerSeconds"),
        install_begin_at_server: time("installBeginAtServerSeconds"),
    };
    (
        is_there.then(|| Referrer::parse(referrer.as_deref())),
        times,
    )
}

/// What a device says about itself and what brought it here. Missing and null are the same; fields that are not
/// listed are ignored. Only `deviceId` and `platform` are needed: any other field that cannot be read is left out
/// as if it were missing.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", title = "Configure")]
#[expect(
    dead_code,
    reason = "describes what read reads; a test compares the two"
)]
pub(super) struct ConfigureFields {
    /// The id that the SDK made for the device, or took from it. 1–255 bytes. The case of a UUID does not matter.
    device_id: String,
    #[schema(inline)]
    platform: PlatformChoice,
    os_version: Option<String>,
    /// Such as `iPhone15,2` or `Pixel 8`.
    model: Option<String>,
    manufacturer: Option<String>,
    app_version: Option<String>,
    bundle_id: Option<String>,
    /// Such as `en_US`.
    locale: Option<String>,
    /// An IANA name.
    timezone: Option<String>,
    screen: Option<ScreenFields>,
    sdk_version: Option<String>,
    /// The app's own id of the person.
    user_id: Option<String>,
    /// The URL that opened the app, if one did.
    opened_url: Option<String>,
    /// The user agent of the platform's web view. Kept with the click that `openedUrl` records: some networks take no
    /// event without one.
    user_agent: Option<String>,
    /// On iOS, with permission. All zeros is no id.
    idfa: Option<String>,
    idfv: Option<String>,
    /// On Android, with permission. All zeros is no id.
    gaid: Option<String>,
    /// The click id, where the client has it.
    ar_click_id: Option<String>,
    /// What the Play Store handed over.
    install_referrer: Option<InstallReferrerFields>,
    /// On iOS: Apple's token, redeemed after the answer.
    ad_services_token: Option<String>,
    consent: Option<ConsentFields>,
}

/// What an app runs on.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only the description uses it")]
pub(crate) enum PlatformChoice {
    Ios,
    Android,
    Web,
}

/// In points, with the number of pixels that one point has.
#[derive(ToSchema)]
#[expect(dead_code, reason = "see ConfigureFields")]
struct ScreenFields {
    width: Option<f64>,
    height: Option<f64>,
    scale: Option<f64>,
}

/// As the store's library gives it; without `referrer`: the store could not be asked. A time of zero is
/// unknown.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see ConfigureFields")]
struct InstallReferrerFields {
    referrer: Option<String>,
    /// By the device's clock.
    click_at_seconds: Option<i64>,
    /// By the device's clock.
    install_begin_at_seconds: Option<i64>,
    /// By Google's clock.
    click_at_server_seconds: Option<i64>,
    /// By Google's clock.
    install_begin_at_server_seconds: Option<i64>,
}

/// What the person consented to; absent: not asked.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see ConfigureFields")]
struct ConsentFields {
    ad_user_data: Option<bool>,
    ad_personalization: Option<bool>,
    #[schema(inline)]
    tracking: Option<TrackingChoice>,
}

/// The answer to the platform's own prompt. `restricted` counts as `denied`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the description uses it")]
enum TrackingChoice {
    Authorized,
    Denied,
    NotDetermined,
    Restricted,
}

#[cfg(test)]
mod tests;
