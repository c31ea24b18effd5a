//! Encodes requests.

use super::account::{MetaAccount, SdkEventMode};
use super::app_data::AppData;
use super::fbc::fbc;
use crate::facts::ConversionFacts;
use crate::json::{self, Decimal, USD};
use crate::request::NetworkRequest;
use crate::text::form_encode;
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;
use tributary_domain::device::Platform;
use tributary_domain::forwarding::{Conversion, Sharing};
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::money::Amount;

#[derive(Serialize)]
struct Body<'a> {
    data: Vec<Event<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_event_code: Option<&'a str>,
    partner_agent: &'static str,
}

#[derive(Serialize)]
struct Event<'a> {
    event_name: &'a str,
    event_time: i64,
    event_id: &'a str,
    action_source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_source_url: Option<&'a str>,
    user_data: UserData<'a>,
    #[serde(skip_serializing_if = "CustomData::is_empty")]
    custom_data: CustomData<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_data: Option<AppData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opt_out: Option<bool>,
    #[serde(flatten)]
    limited: Option<LimitedDataUse>,
}

/// The person's identifiers.
#[derive(Serialize, Default)]
pub(super) struct UserData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    em: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ph: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<[String; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    madid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anon_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_ip_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fbc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fbp: Option<&'a str>,
}

impl<'a> UserData<'a> {
    fn common(facts: ConversionFacts<'a>) -> Self {
        Self {
            em: facts.email().map(|hash| [hash]),
            ph: facts.phone().map(|hash| [hash]),
            external_id: Some(facts.0.external_ids()).filter(|ids| !ids.is_empty()),
            country: facts.0.country().map(|country| [hashed_country(&country)]),
            client_ip_address: facts.address(),
            fbc: fbc(facts),
            ..Self::default()
        }
    }

    pub(super) fn for_website(facts: ConversionFacts<'a>) -> Self {
        let cookie = facts
            .click()
            .and_then(|click| click.captured.browser_ids.fbp.as_deref());
        Self {
            client_user_agent: facts.user_agent(),
            fbp: cookie.filter(|cookie| !cookie.is_empty()),
            ..Self::common(facts)
        }
    }

    pub(super) fn for_app(facts: ConversionFacts<'a>) -> Self {
        let of = |platform| facts.advertising_id(platform);
        Self {
            madid: of(Platform::Ios).or_else(|| of(Platform::Android)),
            anon_id: facts.0.device_id(),
            ..Self::common(facts)
        }
    }

    fn has_identifier(&self) -> bool {
        let hashed = self.em.is_some() || self.ph.is_some() || self.external_id.is_some();
        hashed || self.fbc.is_some()
    }

    /// Returns whether the person can be identified. A user agent alone is not enough.
    pub(super) fn is_enough_on_website(&self) -> bool {
        let known = self.has_identifier() || self.fbp.is_some() || self.client_ip_address.is_some();
        self.client_user_agent.is_some() && known
    }

    pub(super) fn is_enough_in_app(&self) -> bool {
        self.has_identifier() || self.madid.is_some() || self.anon_id.is_some()
    }
}

/// Hashes a country as two lower-case letters, as Meta expects.
fn hashed_country(country: &str) -> String {
    hex(Digest::of(country.to_ascii_lowercase().as_bytes()).as_bytes())
}

#[derive(Serialize)]
struct CustomData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_ltv: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_ids: Option<[String; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_string: Option<String>,
}

impl<'a> CustomData<'a> {
    fn of(facts: ConversionFacts<'a>) -> Self {
        // Meta rejects a `Purchase` without a value.
        let is_without_amount = facts.0.event.revenue.is_none();
        let required =
            (is_without_amount && facts.0.network_event == "Purchase").then_some(Amount::ZERO);
        let value = facts.0.usd().or(required).map(Decimal);
        // A free trial has no predicted value.
        let predicts =
            |value: &Decimal| facts.0.network_event == "StartTrial" && value.0 > Amount::ZERO;
        let product = facts.product_id();
        Self {
            value,
            currency: value.map(|_| USD),
            predicted_ltv: value.filter(predicts),
            order_id: facts.order_id(),
            content_type: product.as_ref().map(|_| "product"),
            content_ids: product.map(|id| [id]),
            search_string: facts.search(),
        }
    }

    const fn is_empty(&self) -> bool {
        self.value.is_none()
            && self.order_id.is_none()
            && self.content_ids.is_none()
            && self.search_string.is_none()
    }
}

/// Meta's Limited Data Use option without a country and a state (both 0): Meta derives the
/// applicable state law from the IP address.
#[derive(Serialize)]
struct LimitedDataUse {
    data_processing_options: [&'static str; 1],
    data_processing_options_country: u8,
    data_processing_options_state: u16,
}

const LIMITED: LimitedDataUse = LimitedDataUse {
    data_processing_options: ["LDU"],
    data_processing_options_country: 0,
    data_processing_options_state: 0,
};

/// Returns whether the event is sent as an app event. Events from the SDK on a web page are always
/// website events.
pub(super) fn is_app(account: &MetaAccount, facts: ConversionFacts<'_>) -> bool {
    let on_web_page = facts.0.event.platform == Some(Platform::Web);
    account.mode == SdkEventMode::App && !facts.is_web() && !on_web_page
}

fn event<'a>(account: &MetaAccount, conversion: &'a Conversion) -> Event<'a> {
    let facts = ConversionFacts(conversion);
    let is_app = is_app(account, facts);
    Event {
        event_name: &conversion.network_event,
        event_time: facts.seconds(),
        event_id: &conversion.dedup_id,
        action_source: if is_app { "app" } else { "website" },
        event_source_url: facts.page_url().filter(|_| !is_app),
        user_data: if is_app {
            UserData::for_app(facts)
        } else {
            UserData::for_website(facts)
        },
        custom_data: CustomData::of(facts),
        app_data: if is_app { AppData::of(facts) } else { None },
        opt_out: (conversion.sharing() == Sharing::NotPersonalized).then_some(true),
        limited: account.limited_data_use.then_some(LIMITED),
    }
}

pub(crate) fn encode(account: &MetaAccount, batch: &[Conversion]) -> NetworkRequest {
    let body = Body {
        data: batch.iter().map(|one| event(account, one)).collect(),
        test_event_code: account.test_code.as_deref(),
        partner_agent: "tributary",
    };
    let token = account.access_token.expose();
    let proof = account
        .app_secret
        .as_ref()
        .map(|secret| appsecret_proof(secret.expose(), token));
    let mut query = vec![("access_token", token)];
    query.extend(proof.as_deref().map(|proof| ("appsecret_proof", proof)));
    let (version, pixel) = (&account.api_version, &account.pixel_id);
    let path = format!("/{version}/{pixel}/events?{}", form_encode(&query));
    NetworkRequest::json(path, None, json::bytes(&body))
}

/// Returns the HMAC that proves knowledge of the app secret.
pub(super) fn appsecret_proof(secret: &str, token: &str) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(token.as_bytes());
    hex(&mac.finalize().into_bytes())
}
