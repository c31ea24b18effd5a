//! The body of `configure`: what the device is and what brought it here.
//!
//! Which device calls and what it runs on must be known. Everything else is worth less than the install, which a
//! refusal would lose for good: what cannot be read is left out. Its faults are noted all the same, for whoever
//! is refused.

use super::opened_link::OPENED_URL_BYTES_MAX;
use crate::fields::{
    FieldKind, Fields, InputValue, choice, described_body, flag, integer, number_as, object, text,
    text_as,
};
use tributary_domain::attribution::evidence::ReferrerTimes;
use tributary_domain::attribution::referrer::Referrer;
use tributary_domain::click::clean_user_agent;
use tributary_domain::device::{
    AdvertisingId, Consent, DeviceKey, Platform, Screen, TRAIT_CHARS_MAX, Tracking, Traits, UserKey,
};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::number::parse_rounded;
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
pub(super) struct ConfigureRequest {
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

described_body! {
    /// What a device says about itself and what brought it here. Missing and null are the same; fields that are not
    /// listed are ignored. Only `deviceId` and `platform` are needed: any other field that cannot be read is left out
    /// as if it were missing.
    pub(super) ConfigureFields("Configure") = read
}

/// Reads the body. Nothing only when the device or its platform cannot be read.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<ConfigureRequest> {
    let device = text_as(DeviceKey::parse).about(
        "The id that the SDK made for the device, or took from it. 1–255 bytes. The case of a UUID does not matter.",
    );
    let device = fields.required("deviceId", device);
    let platform = choice(Platform::ALL, Platform::as_str).about("What an app runs on.");
    let platform = fields.required("platform", platform);
    let user = user_id().about("The app's own id of the person.");
    let user = fields.optional("userId", user).flatten();
    let consent = consent(fields);
    let mut advertising_id = |name, about| {
        let id = text_as(|text| Ok(AdvertisingId::parse(text))).about(about);
        // What is no advertising id is dropped, not refused.
        fields.optional(name, id).flatten()
    };
    let (idfa, gaid) = (
        advertising_id("idfa", "On iOS, with permission. All zeros is no id."),
        advertising_id("gaid", "On Android, with permission. All zeros is no id."),
    );
    let (referrer, times) = install_referrer(fields);
    let mut kept = |name, about, bytes_max: usize| {
        let whole = fields.optional(name, cleaned().about(about)).flatten();
        whole.filter(|text| text.len() <= bytes_max)
    };
    let about = "The click id, where the client has it.";
    let click_id = kept("arClickId", about, CLICK_ID_BYTES_MAX);
    let about = "The URL that opened the app, if one did.";
    let opened_url = kept("openedUrl", about, OPENED_URL_BYTES_MAX);
    let about = "On iOS: Apple's token, redeemed after the answer.";
    let token = kept("adServicesToken", about, AD_SERVICES_TOKEN_BYTES_MAX);
    let idfv = fields.optional("idfv", trait_text()).flatten();
    // As one of a click is kept.
    let user_agent = text_as(|text| Ok(clean_user_agent(text))).about(
        "The user agent of the platform's web view. Kept with the click that `openedUrl` records: some networks take no \
         event without one.",
    );
    let user_agent = fields.optional("userAgent", user_agent).flatten();
    // Read for its faults, whether there is a platform or not: who is refused hears of all of them.
    let traits = traits(fields, platform.unwrap_or(Platform::Web));
    let platform = platform?;
    Some(ConfigureRequest {
        device: device?,
        traits,
        user,
        advertising_id: consent.permitted_advertising_id(match platform {
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

fn traits(fields: &mut Fields<'_>, platform: Platform) -> Traits {
    let mut text = |name, about| fields.optional(name, trait_text().about(about)).flatten();
    Traits {
        platform,
        os_version: text("osVersion", ""),
        model: text("model", "Such as `iPhone15,2` or `Pixel 8`."),
        manufacturer: text("manufacturer", ""),
        app_version: text("appVersion", ""),
        bundle_id: text("bundleId", ""),
        locale: text("locale", "Such as `en_US`."),
        timezone: text("timezone", "An IANA name."),
        sdk_version: text("sdkVersion", ""),
        screen: screen(fields),
    }
}

/// The id of a person. An empty one says that nobody is signed in.
pub(super) fn user_id() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Option<UserKey>, Problem>>
{
    text_as(|text| {
        if text.is_empty() {
            return Ok(None);
        }
        UserKey::parse(text).map(Some)
    })
}

/// A text without control characters and outer blanks; nothing when that leaves nothing.
fn cleaned() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Option<String>, Problem>> {
    text_as(|text| {
        let plain: String = text.chars().filter(|c| !c.is_control()).collect();
        let trimmed = plain.trim();
        Ok((!trimmed.is_empty()).then(|| trimmed.to_owned()))
    })
}

/// A text that is cut where it is too long.
fn trait_text() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Option<String>, Problem>> {
    let cut = |text: String| text.chars().take(TRAIT_CHARS_MAX).collect();
    cleaned().then(move |text: Option<String>| Ok(text.map(cut)))
}

fn screen(fields: &mut Fields<'_>) -> Option<Screen> {
    let about = "In points, with the number of pixels that one point has.";
    let mut fields = fields.section_as("screen", object().about(about));
    let mut side = |name, decimals| {
        let number = number_as(|digits| Ok(parse_rounded(digits, decimals)));
        let number = fields.optional(name, number).flatten();
        u32::try_from(number.filter(|number| *number <= SCREEN_MAX)?).ok()
    };
    let (width, height, thousandths) = (side("width", 0), side("height", 0), side("scale", 3));
    // Cut, not rounded, as the landing page cuts it: 2.625 must be the same on both sides.
    Screen::new(width?, height?, thousandths? / 10)
}

fn consent(fields: &mut Fields<'_>) -> Consent {
    let about = "What the person consented to; absent: not asked.";
    let mut fields = fields.section_as("consent", object().about(about));
    let words = Tracking::ALL.iter().map(|one| one.as_str());
    let tracking = text_as(tracking)
        .words(words.chain([RESTRICTED]))
        .about("The answer to the platform's own prompt. `restricted` counts as `denied`.");
    Consent {
        ad_user_data: fields.optional("adUserData", flag()),
        ad_personalization: fields.optional("adPersonalization", flag()),
        tracking: fields.optional("tracking", tracking),
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
fn install_referrer(fields: &mut Fields<'_>) -> (Option<Referrer>, ReferrerTimes) {
    let about = "What the Play Store handed over, as the store's library gives it; without `referrer`: the store could not be \
                 asked. A time of zero is unknown.";
    let mut fields = fields.section_as("installReferrer", object().about(about));
    let is_there = fields.is_present();
    let referrer = fields.optional("referrer", text());
    // Zero means unknown, and so does whatever cannot be.
    let mut time = |name, about| {
        let seconds = fields.optional(name, integer().about(about));
        let millis = seconds.filter(|seconds| *seconds > 0)?;
        let millis = millis.checked_mul(MILLIS_PER_SECOND)?;
        Some(Timestamp::from_millis(millis))
    };
    let (device, google) = ("By the device's clock.", "By Google's clock.");
    let times = ReferrerTimes {
        click_at: time("clickAtSeconds", device),
        install_begin_at: time("installBeginAtSeconds", device),
        click_at_server: time("clickAtServerSeconds", google),
        install_begin_at_server: time("installBeginAtServerSeconds", google),
    };
    (
        is_there.then(|| Referrer::parse(referrer.as_deref())),
        times,
    )
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

#[cfg(test)]
mod tests;
