//! Values from a conversion that several networks need.

use serde_json::Value;
use tributary_domain::click::Click;
use tributary_domain::device::{AdvertisingId, Device, Platform, Tracking};
use tributary_domain::event::EventSource;
use tributary_domain::forwarding::Conversion;
use tributary_domain::vocabulary::digest::{Digest, hex};

/// Number of hex digits in a SHA-256 hash.
const HASH_DIGITS: usize = 64;
/// Maximum length of a product id. Longer ids are not sent.
const PRODUCT_CHARS_MAX: usize = 100;
/// Maximum length of a search text, which limits how much an event adds to the body.
const SEARCH_CHARS_MAX: usize = 200;

/// Values from a conversion that may be sent.
#[derive(Clone, Copy)]
pub(crate) struct ConversionFacts<'a>(pub(crate) &'a Conversion);

impl<'a> ConversionFacts<'a> {
    /// Returns whether a website sent the event.
    pub(crate) fn is_web(self) -> bool {
        self.0.event.source == EventSource::Web
    }

    /// Returns the event time in seconds.
    pub(crate) fn seconds(self) -> i64 {
        self.0.event.conversion_time().as_millis().div_euclid(1_000)
    }

    /// Returns the attributed click.
    pub(crate) const fn click(self) -> Option<&'a Click> {
        self.0.click.as_ref()
    }

    /// Returns the click's IP address.
    pub(crate) fn address(self) -> Option<String> {
        let address = self.click()?.address?;
        Some(address.to_canonical().to_string())
    }

    /// Returns the click's user agent.
    pub(crate) fn user_agent(self) -> Option<&'a str> {
        non_empty(self.click()?.user_agent.as_ref())
    }

    /// Returns the URL of the page or the link.
    pub(crate) fn page_url(self) -> Option<&'a str> {
        non_empty(self.0.page_url.as_ref())
    }

    /// Returns a network's click id.
    pub(crate) fn click_id(self, name: &str) -> Option<&'a str> {
        self.0.click_id(name).filter(|id| !id.is_empty())
    }

    /// Returns the hash of the email address.
    pub(crate) fn email(self) -> Option<&'a str> {
        valid_hash(self.0.matching.email.as_ref())
    }

    /// Returns the hash of the email address as Google normalises it.
    pub(crate) fn email_google(self) -> Option<&'a str> {
        valid_hash(self.0.matching.email_google.as_ref()).or(self.email())
    }

    /// Returns the hash of the phone number's digits.
    pub(crate) fn phone(self) -> Option<&'a str> {
        valid_hash(self.0.matching.phone.as_ref())
    }

    /// Returns the hash of the phone number with a leading `+`.
    pub(crate) fn phone_e164(self) -> Option<&'a str> {
        valid_hash(self.0.matching.phone_e164.as_ref())
    }

    /// Returns an app event's device. `None` for a website event: its device id is only the
    /// website's claim, so no device data is sent.
    pub(crate) fn device(self) -> Option<&'a Device> {
        self.0.device.as_ref().filter(|_| !self.is_web())
    }

    /// Returns the platform's advertising id, if consent allows it.
    pub(crate) fn advertising_id(self, platform: Platform) -> Option<&'a str> {
        let device = self.device()?;
        let may = device.traits.platform == platform
            && AdvertisingId::may_match(platform, device.consent);
        device
            .advertising_id
            .as_ref()
            .filter(|_| may)
            .map(AdvertisingId::as_str)
    }

    /// Returns the vendor id, unless tracking was denied.
    pub(crate) fn idfv(self) -> Option<&'a str> {
        let device = self.device()?;
        let may = device.consent.tracking != Some(Tracking::Denied);
        non_empty(device.idfv.as_ref()).filter(|_| may)
    }

    /// Returns a website purchase's order id, unless it looks like an email address.
    pub(crate) fn order_id(self) -> Option<&'a str> {
        let event = &self.0.event;
        let is_order =
            self.is_web() && event.name == "purchase" && !event.external_id.contains('@');
        is_order.then_some(event.external_id.as_str())
    }

    /// Returns the product id from the event's parameters.
    pub(crate) fn product_id(self) -> Option<String> {
        let params: Value = serde_json::from_str(self.0.event.params.as_deref()?).ok()?;
        let id =
            ["product_id", "productId"]
                .into_iter()
                .find_map(|name| match params.get(name)? {
                    Value::String(text) => Some(text.trim().to_owned()),
                    Value::Number(number) => Some(number.to_string()),
                    _ => None,
                })?;
        let is_allowed = !id.is_empty() && !id.contains('@');
        (is_allowed && id.chars().count() <= PRODUCT_CHARS_MAX).then_some(id)
    }

    /// Returns a search event's search text.
    pub(crate) fn search(self) -> Option<String> {
        if self.0.network_event != "Search" {
            return None;
        }
        let params: Value = serde_json::from_str(self.0.event.params.as_deref()?).ok()?;
        let text = ["search_string", "query"]
            .into_iter()
            .find_map(|name| params.get(name)?.as_str())?;
        let text: String = text.trim().chars().take(SEARCH_CHARS_MAX).collect();
        (!text.is_empty()).then_some(text)
    }
}

fn non_empty(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// Returns a hash that networks accept. An invalid hash would fail the whole batch, and the hash of
/// an empty text matches everyone. The API rejects both, but older stored data may contain them.
fn valid_hash(hash: Option<&String>) -> Option<&str> {
    let is_hash = |text: &&str| {
        text.len() == HASH_DIGITS
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let of_nothing = hex(Digest::of(b"").as_bytes());
    non_empty(hash)
        .filter(is_hash)
        .filter(|text| *text != of_nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{EMAIL, sdk_event, web_event};
    use rstest::rstest;

    #[rstest]
    #[case::a_hash(EMAIL, true)]
    #[case::in_capitals(&EMAIL.to_uppercase(), false)]
    #[case::short(&EMAIL[1..], false)]
    #[case::no_hex(&EMAIL.replace('b', "g"), false)]
    #[case::clear_text("joe@example.com", false)]
    #[case::of_nothing(
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        false
    )]
    #[case::empty("", false)]
    fn accepts_only_valid_hashes(#[case] text: &str, #[case] taken: bool) {
        assert_eq!(valid_hash(Some(&text.to_owned())).is_some(), taken);
    }

    #[rstest]
    #[case::of_a(
        "Search",
        Some(r#"{"search_string":" red shoes "}"#),
        Some("red shoes")
    )]
    #[case::of_c("Search", Some(r#"{"query":"red shoes"}"#), Some("red shoes"))]
    #[case::no_text("Search", Some(r#"{"query":7}"#), None)]
    #[case::nothing("Search", Some(r#"{"query":" "}"#), None)]
    #[case::no_object("Search", Some("[1]"), None)]
    #[case::no_params("Search", None, None)]
    #[case::no_search("ViewContent", Some(r#"{"query":"red shoes"}"#), None)]
    fn reads_the_search_text(
        #[case] network_event: &str,
        #[case] params: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let mut conversion = sdk_event("search", network_event);
        conversion.event.params = params.map(str::to_owned);
        assert_eq!(ConversionFacts(&conversion).search().as_deref(), expected);
    }

    #[rstest]
    #[case::text(Some(r#"{"product_id":" pro.monthly "}"#), Some("pro.monthly"))]
    #[case::of_billing(Some(r#"{"productId":"pro.yearly"}"#), Some("pro.yearly"))]
    #[case::number(Some(r#"{"product_id":77}"#), Some("77"))]
    #[case::empty(Some(r#"{"product_id":" "}"#), None)]
    #[case::an_address(Some(r#"{"product_id":"joe@example.com"}"#), None)]
    #[case::a_list(Some(r#"{"product_id":["a"]}"#), None)]
    #[case::no_params(None, None)]
    fn reads_the_product_id(#[case] params: Option<&str>, #[case] expected: Option<&str>) {
        let mut conversion = sdk_event("purchase", "Purchase");
        conversion.event.params = params.map(str::to_owned);
        assert_eq!(
            ConversionFacts(&conversion).product_id().as_deref(),
            expected
        );
        let long = format!(r#"{{"product_id":"{}"}}"#, "x".repeat(101));
        conversion.event.params = Some(long);
        assert_eq!(ConversionFacts(&conversion).product_id(), None);
    }

    #[rstest]
    #[case::web_purchase(web_event("purchase", "Purchase"), "ord_1", true)]
    #[case::an_address(web_event("purchase", "Purchase"), "joe@example.com", false)]
    #[case::no_purchase(web_event("start_trial", "StartTrial"), "ord_1", false)]
    #[case::from_the_app(sdk_event("purchase", "Purchase"), "ord_1", false)]
    fn reads_the_order_id_of_web_purchases(
        #[case] mut conversion: Conversion,
        #[case] given: &str,
        #[case] is_sent: bool,
    ) {
        given.clone_into(&mut conversion.event.external_id);
        assert_eq!(ConversionFacts(&conversion).order_id().is_some(), is_sent);
    }
}
