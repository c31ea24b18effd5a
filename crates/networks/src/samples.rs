//! Test data: people, clicks and accounts from the reference's examples.

use crate::account::Account;
use crate::request::NetworkRequest;
use crate::response::{NetworkResponse, SendOutcome};
use crate::ruling::Judgement;
use crate::secret::Secret;
use serde_json::Value;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::click::Click;
use tributary_domain::click::params::TrackingParams;
use tributary_domain::device::{
    Consent, ContactHashes, Device, DeviceKey, Platform, Screen, Tracking, Traits, UserKey,
};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::Conversion;
use tributary_domain::integration::{Integration, Network, SettingValue};
use tributary_domain::ledger::{Revenue, UncountedReason};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::id::{AppId, ClickId, DeliveryId, EventId, LinkId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

pub(crate) const EMAIL: &str = "b5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72";
pub(crate) const EXTERNAL_ID: &str =
    "cdbb6e6f5ba2362d283df2601ac2c5b0f0d44f222eda457f1cb86108c68eacb6";
pub(crate) const USER_AGENT: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X)";
pub(crate) const CLICKED_AT: Timestamp = Timestamp::from_millis(1_794_561_330_250);
const DEVICE: &str = "5f0c9a52-3c1e-4b6f-9d7a-2e8b41c0d913";
const APP: AppId = AppId::from_bytes([1; 16]);
const INSTALLED_AT: Timestamp = Timestamp::from_millis(1_794_659_400_000);

#[expect(clippy::unnecessary_wraps, reason = "every field is an Option")]
fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn event(name: &str) -> Event {
    Event {
        id: EventId::from_bytes([2; 16]),
        external_id: "e1".to_owned(),
        app: APP,
        environment: Environment::Live,
        source: EventSource::Sdk,
        name: name.to_owned(),
        original_name: None,
        occurred_at: INSTALLED_AT,
        received_at: INSTALLED_AT,
        device: Some(DeviceKey::stored(DEVICE.to_owned())),
        user: None,
        platform: Some(Platform::Ios),
        country: None,
        revenue: None,
        credit: None,
        params: None,
        first_payment: false,
        is_service_install: false,
        duplicate_of: None,
        dedup_root: None,
        consent: None,
        skipped: Vec::new(),
        website: None,
    }
}

pub(crate) fn device() -> Device {
    Device {
        key: DeviceKey::stored(DEVICE.to_owned()),
        traits: Traits {
            platform: Platform::Ios,
            os_version: text("18.1"),
            model: text("iPhone16,2"),
            manufacturer: text("Apple"),
            app_version: text("3.2.0 (412)"),
            bundle_id: text("com.example.app"),
            locale: text("en_US"),
            timezone: text("America/New_York"),
            screen: Screen::new(393, 852, 300),
            sdk_version: None,
        },
        advertising_id: None,
        idfv: None,
        consent: Consent::default(),
        country: None,
        first_seen_at: INSTALLED_AT,
        last_seen_at: INSTALLED_AT,
    }
}

fn click() -> Click {
    let mut captured = TrackingParams::default();
    captured.click_ids.fbclid = text("IwAR2kZ8q_AbCd-1");
    captured.click_ids.gclid = text("EAIaIQobChMI-example_gclid");
    captured.click_ids.ttclid = text("E.C.P.example-ttclid_01");
    captured.click_ids.oppref = text("oppref_example_01");
    let (id, link) = (ClickId::from_bytes([3; 16]), LinkId::from_bytes([4; 16]));
    Click {
        address: "203.0.113.24".parse().ok(),
        user_agent: text(USER_AGENT),
        captured,
        ..Click::new(id, (APP, link), CLICKED_AT, Platform::Ios)
    }
}

/// Returns an app event, such as an install, attributed to a click.
pub(crate) fn sdk_event(name: &str, network_event: &str) -> Conversion {
    Conversion {
        delivery: DeliveryId::from_bytes([5; 16]),
        dedup_id: "b86acd70fb880a9f5599081812f779c5".to_owned(),
        network_event: network_event.to_owned(),
        event: event(name),
        page_url: text("https://go.example.com/l/k3x9"),
        click: Some(click()),
        network_click_id: None,
        device: Some(device()),
        matching: ContactHashes::default(),
        user: None,
    }
}

/// SHA-256 of `user-77`.
pub(crate) const USER_HASH: &str =
    "def2f8cbd6ea70e00c8941af86f00a3a2eda32f4d4e279792655dfa41b6f8da3";

/// Returns an in-app payment by an identified user, with country and product.
pub(crate) fn identified_event(name: &str, network_event: &str) -> Conversion {
    let mut conversion = sdk_event(name, network_event);
    conversion.user = UserKey::parse("user-77").ok();
    conversion.event.country = text("us");
    conversion.event.params = text(r#"{"product_id": "pro.monthly"}"#);
    conversion.event.revenue = Some(revenue("9.99", None));
    conversion
}

/// Returns a website event, attributed to a click and with an email hash.
pub(crate) fn web_event(name: &str, network_event: &str) -> Conversion {
    let mut conversion = sdk_event(name, network_event);
    conversion.device = None;
    conversion.matching.email = text(EMAIL);
    conversion.event.source = EventSource::Web;
    conversion.event.platform = None;
    conversion
}

/// Returns the purchase from the reference's examples, with an id chosen by the website.
pub(crate) fn web_purchase(network_event: &str) -> Conversion {
    let mut conversion = web_event("purchase", network_event);
    "ord_20261114_000731".clone_into(&mut conversion.dedup_id);
    "ord_20261114_000731".clone_into(&mut conversion.event.external_id);
    conversion.event.occurred_at = Timestamp::from_millis(1_794_657_600_123);
    conversion.page_url = text("https://shop.example.com/checkout/thanks");
    conversion.event.revenue = Some(revenue("29.99", None));
    conversion
}

/// Returns the trial from the reference's examples.
pub(crate) fn web_trial(network_event: &str) -> Conversion {
    let mut conversion = web_event("start_trial", network_event);
    "trial_20261114_000118".clone_into(&mut conversion.dedup_id);
    "trial_20261114_000118".clone_into(&mut conversion.event.external_id);
    conversion.event.occurred_at = Timestamp::from_millis(1_794_657_900_000);
    conversion.page_url = text("https://shop.example.com/welcome");
    conversion.event.revenue = Some(revenue("9.99", Some(UncountedReason::Predicted)));
    conversion
}

pub(crate) fn revenue(usd: &str, uncounted: Option<UncountedReason>) -> Revenue {
    let usd = Amount::parse(usd).unwrap();
    Revenue {
        amount: usd,
        currency: Some(Currency::USD),
        usd: Some(usd),
        rate_day: None,
        rate: None,
        rate_source: None,
        uncounted,
    }
}

/// Sets the consent.
pub(crate) fn with_consent(
    mut conversion: Conversion,
    ad_user_data: Option<bool>,
    ad_personalization: Option<bool>,
) -> Conversion {
    conversion.device.as_mut().unwrap().consent = Consent {
        ad_user_data,
        ad_personalization,
        tracking: None,
    };
    conversion
}

/// Sets an advertising id and the tracking status.
pub(crate) fn with_advertising_id(
    mut conversion: Conversion,
    platform: Platform,
    tracking: Option<Tracking>,
) -> Conversion {
    let device = conversion.device.as_mut().unwrap();
    device.traits.platform = platform;
    device.advertising_id =
        tributary_domain::device::AdvertisingId::parse("6F9619FF-8B86-4011-B42D-00C04FC964FF");
    device.idfv = text("A1B2C3D4-0000-4000-8000-000000000001");
    device.consent.tracking = tracking;
    conversion
}

/// Names and values.
type Pairs = &'static [(&'static str, &'static str)];

/// Returns a complete integration and its secrets, with additional settings.
pub(crate) fn integration(
    network: Network,
    more: &[(&str, SettingValue)],
) -> (Integration, BTreeMap<String, Secret>) {
    let mut integration = Integration::new(APP, network);
    let (settings, secrets): (Pairs, Pairs) = match network {
        Network::A => (
            &[("pixelId", "1029384756")],
            &[("accessToken", "hush-token")],
        ),
        Network::B => (
            &[
                ("operatingAccountId", "1234567890"),
                ("clientId", "4711-abc.apps.example.com"),
            ],
            &[
                ("clientSecret", "hush-client"),
                ("refreshToken", "1//hush-refresh"),
            ],
        ),
        Network::C => (
            &[("pixelCode", "C0EXAMPLEPIXELCODE00")],
            &[("accessToken", "hush-token")],
        ),
        Network::D => (&[("pixelId", "px_1")], &[("apiKey", "hush-key")]),
    };
    for (name, value) in settings {
        let value = SettingValue::Text((*value).to_owned());
        integration.settings.insert((*name).to_owned(), value);
    }
    for (name, value) in more {
        integration
            .settings
            .insert((*name).to_owned(), value.clone());
    }
    let secrets = secrets
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Secret::new(*value)))
        .collect();
    (integration, secrets)
}

pub(crate) fn account(network: Network, more: &[(&str, SettingValue)]) -> Account {
    let (integration, secrets) = integration(network, more);
    Account::read(&integration, &secrets).unwrap()
}

pub(crate) fn text_setting(value: &str) -> SettingValue {
    SettingValue::Text(value.to_owned())
}

pub(crate) const ON: SettingValue = SettingValue::Flag(true);

/// Returns the settings for test mode.
pub(crate) fn test_mode() -> [(&'static str, SettingValue); 2] {
    [("testMode", ON), ("testEventCode", text_setting("TEST123"))]
}

pub(crate) fn response(status: u16, body: &str) -> NetworkResponse {
    NetworkResponse {
        status,
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
        truncated: false,
    }
}

pub(crate) fn with_header(
    mut response: NetworkResponse,
    name: &str,
    value: &str,
) -> NetworkResponse {
    response.headers.push((name.to_owned(), value.to_owned()));
    response
}

pub(crate) fn judged(network: Network, sent: usize, status: u16, body: &str) -> Judgement {
    let outcome = SendOutcome::Response(response(status, body));
    crate::judge(&account(network, &[]), sent, &outcome)
}

/// Returns a request's JSON body.
pub(crate) fn body(request: &NetworkRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

/// Returns the only event in an encoded request; `list` is the network's name for the list of
/// events.
pub(crate) fn encoded(account: &Account, conversion: Conversion, list: &str) -> Value {
    let request = crate::encode(account, &[conversion], Some("token"));
    body(&request)[list][0].take()
}

pub(crate) fn header<'a>(request: &'a NetworkRequest, name: &str) -> Option<&'a str> {
    let mut found = request.headers.iter().filter(|(key, _)| *key == name);
    found.next().map(|(_, value)| value.as_str())
}
