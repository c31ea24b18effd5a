//! The body of `configure`: the device, and the evidence for its install.
//!
//! Only the device id and the platform are required. A 4xx would lose the install for good, so
//! other invalid fields are ignored. Their faults are still collected, and listed if the request is
//! rejected.

use super::opened_link::OPENED_URL_BYTES_MAX;
use super::{attestation, consent_fields};
use crate::fields::{
    FieldKind, Fields, InputValue, choice, described_body, integer, number_as, object, text,
    text_as,
};
use tributary_domain::attestation::{AttestationFailure, PresentedAttestation};
use tributary_domain::attribution::evidence::ReferrerTimes;
use tributary_domain::attribution::referrer::Referrer;
use tributary_domain::click::clean_user_agent;
use tributary_domain::device::{
    AdvertisingId, Consent, DeviceKey, Platform, Screen, TRAIT_CHARS_MAX, Traits, UserKey,
};
use tributary_domain::erasure::{ERASE_TOKEN_CHARS, EraseToken};
use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::number::parse_rounded;
use tributary_domain::vocabulary::time::Timestamp;
use utoipa::ToSchema;

/// Largest plausible screen side in points, or scale in thousandths. Larger values are ignored.
const SCREEN_MAX: i64 = 100_000;
/// Longest AdServices token in bytes. Apple's tokens are a few hundred bytes long.
const AD_SERVICES_TOKEN_BYTES_MAX: usize = 4_096;
/// Longest click id in bytes. Our click ids are 54 bytes long.
const CLICK_ID_BYTES_MAX: usize = 500;
const MILLIS_PER_SECOND: i64 = 1_000;

/// Parsed body of `configure`.
#[derive(Debug)]
pub(super) struct ConfigureRequest {
    pub(super) device: DeviceKey,
    pub(super) traits: Traits,
    pub(super) user: Option<UserKey>,
    /// Signature of the user id.
    pub(super) user_signature: Option<String>,
    pub(super) advertising_id: Option<AdvertisingId>,
    pub(super) idfv: Option<String>,
    pub(super) consent: Consent,
    /// Token with which the user can erase the device.
    pub(super) erase_token: Option<EraseToken>,
    pub(super) click_id: Option<String>,
    /// `None` if the SDK sent no `installReferrer` object.
    pub(super) referrer: Option<Referrer>,
    pub(super) times: ReferrerTimes,
    pub(super) ad_services_token: Option<String>,
    /// `None` if the SDK sent no `attestation` object.
    pub(super) attestation: Option<Result<PresentedAttestation, AttestationFailure>>,
    pub(super) opened_url: Option<String>,
    /// User agent of the platform's web view.
    pub(super) user_agent: Option<String>,
}

described_body! {
    /// The device and the evidence for its install. Null means missing, and unknown fields are
    /// ignored. Only `deviceId` and `platform` are required: any other invalid field is ignored.
    pub(super) ConfigureFields("Configure") = read
}

/// Reads the body. Returns `None` only if `deviceId` or `platform` is invalid.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<ConfigureRequest> {
    let device = text_as(DeviceKey::parse)
        .about("The SDK's device id, 1–255 bytes. UUIDs are case-insensitive.");
    let device = fields.required("deviceId", device);
    let platform = choice(Platform::ALL, Platform::as_str).about("The app's platform.");
    let platform = fields.required("platform", platform);
    let user = user_id().about("The app's user id.");
    let user = fields.optional("userId", user).flatten();
    let user_signature = user_id_signature(fields);
    let about = "The user's consent. Absent: the user was not asked.";
    let consent = consent_fields::read(fields, about).unwrap_or_default();
    let mut advertising_id = |name, about| {
        let id = text_as(|text| Ok(AdvertisingId::parse(text))).about(about);
        // An invalid advertising id is ignored, not rejected.
        fields.optional(name, id).flatten()
    };
    let (idfa, gaid) = (
        advertising_id(
            "idfa",
            "iOS advertising id, if the user permitted it. All zeros means none.",
        ),
        advertising_id(
            "gaid",
            "Android advertising id, if the user permitted it. All zeros means none.",
        ),
    );
    let (referrer, times) = install_referrer(fields);
    let mut limited_text = |name, about, bytes_max: usize| {
        let whole = fields.optional(name, cleaned().about(about)).flatten();
        whole.filter(|text| text.len() <= bytes_max)
    };
    let about = "Click id, if the client has one.";
    let click_id = limited_text("arClickId", about, CLICK_ID_BYTES_MAX);
    let about = "URL that opened the app, if a URL opened it.";
    let opened_url = limited_text("openedUrl", about, OPENED_URL_BYTES_MAX);
    let about = "AdServices token (iOS). The server redeems it after the response.";
    let token = limited_text("adServicesToken", about, AD_SERVICES_TOKEN_BYTES_MAX);
    let idfv = fields.optional("idfv", trait_text()).flatten();
    // Cleaned and cut in the same way as a click's user agent.
    let user_agent = text_as(|text| Ok(clean_user_agent(text))).about(
        "User agent of the platform's web view. Stored with the click that `openedUrl` records, \
         because some networks reject events without a user agent.",
    );
    let user_agent = fields.optional("userAgent", user_agent).flatten();
    let attestation = attestation::read(fields);
    let erase_token = text_as(EraseToken::parse)
        .size(ERASE_TOKEN_CHARS..=ERASE_TOKEN_CHARS)
        .about(
            "Secret with which the device's user can erase the device (`POST /api/track/erase`): 32 \
             random bytes in base64url. The first token of a device holds; later ones are ignored.",
        );
    let erase_token = fields.optional("eraseToken", erase_token);
    // Read even if the platform is invalid, so that the error lists all faults.
    let traits = traits(fields, platform.unwrap_or(Platform::Web));
    let platform = platform?;
    Some(ConfigureRequest {
        device: device?,
        traits,
        user,
        user_signature,
        advertising_id: consent.permitted_advertising_id(match platform {
            Platform::Ios => idfa,
            Platform::Android => gaid,
            Platform::Web => None,
        }),
        idfv,
        consent,
        erase_token,
        click_id,
        referrer,
        times,
        ad_services_token: token.filter(|_| platform == Platform::Ios),
        attestation,
        opened_url,
        user_agent,
    })
}

fn traits(fields: &mut Fields<'_>, platform: Platform) -> Traits {
    let mut text = |name, about| fields.optional(name, trait_text().about(about)).flatten();
    Traits {
        platform,
        os_version: text("osVersion", ""),
        model: text("model", "Device model, such as `iPhone15,2` or `Pixel 8`."),
        manufacturer: text("manufacturer", ""),
        app_version: text("appVersion", ""),
        bundle_id: text("bundleId", ""),
        locale: text("locale", "Locale, such as `en_US`."),
        timezone: text("timezone", "IANA time zone name."),
        sdk_version: text("sdkVersion", ""),
        screen: screen(fields),
    }
}

/// Reads the signature of a user id. Accepts any text: a wrong signature flags the device and does
/// not reject the call.
pub(super) fn user_id_signature(fields: &mut Fields<'_>) -> Option<String> {
    let text = text_as(|text| Ok(text.to_owned())).about(
        "HMAC-SHA256 of the user id in hexadecimal digits, computed by the app's backend with the \
         identity secret. A wrong signature is flagged and treated as missing.",
    );
    fields.optional("userIdSignature", text)
}

/// Reads a user id. An empty id means that no user is signed in.
pub(super) fn user_id() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Option<UserKey>, Problem>>
{
    text_as(|text| {
        if text.is_empty() {
            return Ok(None);
        }
        UserKey::parse(text).map(Some)
    })
}

/// Reads a text and removes control characters and surrounding blanks; `None` if nothing is left.
fn cleaned() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Option<String>, Problem>> {
    text_as(|text| {
        let plain: String = text.chars().filter(|c| !c.is_control()).collect();
        let trimmed = plain.trim();
        Ok((!trimmed.is_empty()).then(|| trimmed.to_owned()))
    })
}

/// Reads a text and cuts it to the length limit.
fn trait_text() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Option<String>, Problem>> {
    let cut = |text: String| text.chars().take(TRAIT_CHARS_MAX).collect();
    cleaned().then(move |text: Option<String>| Ok(text.map(cut)))
}

fn screen(fields: &mut Fields<'_>) -> Option<Screen> {
    let about = "Screen size in points, and pixels per point as `scale`.";
    let mut fields = fields.section_as("screen", object().about(about));
    let mut side = |name, decimals| {
        let number = number_as(|digits| Ok(parse_rounded(digits, decimals)));
        let number = fields.optional(name, number).flatten();
        u32::try_from(number.filter(|number| *number <= SCREEN_MAX)?).ok()
    };
    let (width, height, thousandths) = (side("width", 0), side("height", 0), side("scale", 3));
    // Truncated to hundredths, as on the landing page, so that both get the same number from a
    // scale such as 2.625.
    Screen::new(width?, height?, thousandths? / 10)
}

/// Reads the Play Store's install referrer. An object without `referrer` means that the store was
/// unavailable. A missing object means that the SDK sent no information about the referrer.
fn install_referrer(fields: &mut Fields<'_>) -> (Option<Referrer>, ReferrerTimes) {
    let about = "The Play Store's install referrer, as the Play library returns it. Without \
                 `referrer`: the store was unavailable. A time of zero means unknown.";
    let mut fields = fields.section_as("installReferrer", object().about(about));
    let is_there = fields.is_present();
    let referrer = fields.optional("referrer", text());
    // Zero and impossible values mean unknown.
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

/// An app's platform.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only the OpenAPI description uses it")]
pub(crate) enum PlatformChoice {
    Ios,
    Android,
    Web,
}

#[cfg(test)]
mod tests;
