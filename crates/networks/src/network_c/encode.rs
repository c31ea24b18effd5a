//! Encodes requests.

use super::TikTokAccount;
use crate::check::{INSUFFICIENT_IDENTITY, NO_SOURCE_URL, Unsendable, ensure};
use crate::facts::ConversionFacts;
use crate::json::{self, Decimal, USD};
use crate::request::NetworkRequest;
use serde::Serialize;
use tributary_domain::device::{Device, Platform, Tracking};
use tributary_domain::forwarding::{Conversion, Sharing};

/// Path, including the required trailing slash.
const PATH: &str = "/open_api/v1.3/event/track/";

#[derive(Serialize)]
struct Body<'a> {
    /// Always `web`: the event mapping uses the website event names for all sources.
    event_source: &'static str,
    event_source_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_event_code: Option<&'a str>,
    data: Vec<Event<'a>>,
}

#[derive(Serialize)]
struct Event<'a> {
    event: &'a str,
    event_time: i64,
    event_id: &'a str,
    user: User<'a>,
    page: Page<'a>,
    #[serde(skip_serializing_if = "Properties::is_empty")]
    properties: Properties<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limited_data_use: Option<bool>,
}

#[derive(Serialize)]
struct Page<'a> {
    url: &'a str,
}

/// One or several hashes.
#[derive(Serialize)]
#[serde(untagged)]
enum ExternalId {
    One(String),
    Several(Vec<String>),
}

impl ExternalId {
    fn of(facts: ConversionFacts<'_>) -> Option<Self> {
        let mut ids = facts.0.external_ids();
        if ids.len() > 1 {
            return Some(Self::Several(ids));
        }
        ids.pop().map(Self::One)
    }
}

#[derive(Serialize)]
struct User<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<ExternalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttclid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttp: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idfa: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gaid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idfv: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    att_status: Option<&'static str>,
}

impl<'a> User<'a> {
    fn of(facts: ConversionFacts<'a>) -> Self {
        let cookie = facts
            .click()
            .and_then(|click| click.captured.browser_ids.ttp.as_deref());
        let device = facts.device();
        Self {
            email: facts.email(),
            phone: facts.phone_e164(),
            external_id: ExternalId::of(facts),
            ttclid: facts.click_id("ttclid"),
            ttp: cookie.filter(|cookie| !cookie.is_empty()),
            ip: facts.address(),
            user_agent: facts.user_agent(),
            locale: device
                .and_then(|device| device.traits.locale.as_deref())
                .and_then(language_tag),
            idfa: facts
                .advertising_id(Platform::Ios)
                .map(str::to_ascii_uppercase),
            gaid: facts
                .advertising_id(Platform::Android)
                .map(str::to_ascii_lowercase),
            idfv: facts.idfv(),
            att_status: device.and_then(att_status),
        }
    }

    fn is_enough(&self) -> bool {
        let hashed = self.email.is_some() || self.phone.is_some() || self.external_id.is_some();
        let clicked = self.ttclid.is_some() || self.ttp.is_some();
        let seen = self.ip.is_some() && self.user_agent.is_some();
        hashed || clicked || seen
    }
}

/// Converts a locale to BCP 47: `en_US` becomes `en-US`. Drops suffixes such as `@calendar=…` and
/// `.UTF-8`.
fn language_tag(locale: &str) -> Option<String> {
    let tag = locale.split(['@', '.']).next()?.replace('_', "-");
    let sound = !tag.is_empty()
        && tag
            .split('-')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric()));
    sound.then_some(tag)
}

/// Returns the App Tracking Transparency status, if known.
fn att_status(device: &Device) -> Option<&'static str> {
    if device.traits.platform != Platform::Ios {
        return None;
    }
    device.consent.tracking.map(|tracking| match tracking {
        Tracking::Authorized => "AUTHORIZED",
        Tracking::Denied => "DENIED",
        Tracking::NotDetermined => "NOT_DETERMINED",
    })
}

#[derive(Serialize)]
struct Properties<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contents: Option<[Content; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
}

#[derive(Serialize)]
struct Content {
    content_id: String,
}

impl<'a> Properties<'a> {
    fn of(facts: ConversionFacts<'a>) -> Self {
        let value = facts.0.usd().map(Decimal);
        Self {
            value,
            currency: value.map(|_| USD),
            order_id: facts.order_id(),
            contents: facts
                .product_id()
                .map(|content_id| [Content { content_id }]),
            query: facts.search(),
        }
    }

    const fn is_empty(&self) -> bool {
        self.value.is_none()
            && self.order_id.is_none()
            && self.contents.is_none()
            && self.query.is_none()
    }
}

/// Checks whether a conversion can be sent. The network does not document which identifiers are
/// enough to match a person; this is our interpretation.
pub(crate) fn check(conversion: &Conversion) -> Result<(), Unsendable> {
    let facts = ConversionFacts(conversion);
    ensure(User::of(facts).is_enough(), INSUFFICIENT_IDENTITY)?;
    ensure(facts.page_url().is_some(), NO_SOURCE_URL)
}

fn event(conversion: &Conversion) -> Event<'_> {
    let facts = ConversionFacts(conversion);
    Event {
        event: &conversion.network_event,
        event_time: facts.seconds(),
        event_id: &conversion.dedup_id,
        user: User::of(facts),
        page: Page {
            url: facts.page_url().unwrap_or_default(),
        },
        properties: Properties::of(facts),
        limited_data_use: (conversion.sharing() == Sharing::NotPersonalized).then_some(true),
    }
}

pub(crate) fn encode(account: &TikTokAccount, batch: &[Conversion]) -> NetworkRequest {
    let body = Body {
        event_source: "web",
        event_source_id: &account.pixel_code,
        test_event_code: account.test_code.as_deref(),
        data: batch.iter().map(event).collect(),
    };
    // This network expects no `Bearer` prefix.
    let token = ("access-token", account.access_token.expose().to_owned());
    NetworkRequest::json(PATH.to_owned(), Some(token), json::bytes(&body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("en_US", Some("en-US"))]
    #[case("en-US", Some("en-US"))]
    #[case("zh-Hans_CN", Some("zh-Hans-CN"))]
    #[case("de", Some("de"))]
    #[case("en_US@rg=gbzzzz", Some("en-US"))]
    #[case("en_US.UTF-8", Some("en-US"))]
    #[case("", None)]
    #[case("_US", None)]
    #[case("en US", None)]
    fn converts_locales_to_language_tags(#[case] locale: &str, #[case] expected: Option<&str>) {
        assert_eq!(language_tag(locale).as_deref(), expected);
    }
}
