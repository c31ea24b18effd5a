//! Encodes requests.

use super::account::GoogleAdsAccount;
use crate::check::{NO_CLICK_ID, NO_CONVERSION_ACTION, Unsendable, ensure};
use crate::facts::ConversionFacts;
use crate::json::{self, Decimal, USD};
use crate::request::NetworkRequest;
use crate::text::rfc3339;
use serde::Serialize;
use tributary_domain::event::name::INSTALL;
use tributary_domain::forwarding::limits::conversion_time_with_click;
use tributary_domain::forwarding::{Conversion, Sharing};
use tributary_domain::vocabulary::time::Timestamp;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    destinations: [Destination<'a>; 1],
    events: Vec<Event<'a>>,
    encoding: &'static str,
    validate_only: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Destination<'a> {
    operating_account: AdsAccount<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    login_account: Option<AdsAccount<'a>>,
    product_destination_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdsAccount<'a> {
    account_type: &'static str,
    account_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    transaction_id: &'a str,
    event_timestamp: String,
    event_source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ad_identifiers: Option<AdIdentifiers<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversion_value: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_data: Option<UserData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consent: Option<Consent>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdIdentifiers<'a> {
    #[serde(flatten)]
    click: AdIdentifier<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    landing_page_device_info: Option<DeviceInfo<'a>>,
}

/// The browser that opened the ad's link.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceInfo<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
}

impl<'a> DeviceInfo<'a> {
    /// Returns the browser data, if the operator enabled it.
    fn of(account: &GoogleAdsAccount, facts: ConversionFacts<'a>) -> Option<Self> {
        let info = Self {
            ip_address: facts.address(),
            user_agent: facts.user_agent(),
        };
        let is_known = info.ip_address.is_some() || info.user_agent.is_some();
        (account.landing_page_device_info && is_known).then_some(info)
    }
}

/// Exactly one of the three click ids.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum AdIdentifier<'a> {
    Gclid(&'a str),
    Gbraid(&'a str),
    Wbraid(&'a str),
}

impl<'a> AdIdentifier<'a> {
    /// Returns the click id to send. On iOS, a click may have both a `wbraid`, for measuring
    /// websites, and a `gbraid`, for measuring apps.
    fn of(facts: ConversionFacts<'a>) -> Option<Self> {
        event_time(facts)?;
        let gclid = facts.click_id("gclid").map(Self::Gclid);
        let gbraid = facts.click_id("gbraid").map(Self::Gbraid);
        let wbraid = facts.click_id("wbraid").map(Self::Wbraid);
        gclid.or(if facts.is_web() {
            wbraid.or(gbraid)
        } else {
            gbraid.or(wbraid)
        })
    }
}

/// Returns the event time to send with the click; `None` if the click is so much later than the
/// event that it cannot have caused the event.
fn event_time(facts: ConversionFacts<'_>) -> Option<Timestamp> {
    let conversion_time = facts.0.event.conversion_time();
    let with_click = |clicked_at| conversion_time_with_click(conversion_time, clicked_at);
    facts
        .0
        .clicked_at()
        .map_or(Some(conversion_time), with_click)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UserData<'a> {
    user_identifiers: Vec<UserIdentifier<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum UserIdentifier<'a> {
    EmailAddress(&'a str),
    PhoneNumber(&'a str),
}

impl<'a> UserData<'a> {
    /// Returns user data only for accounts that accepted Google's terms. For other accounts, Google
    /// would reject the whole request.
    fn of(account: &GoogleAdsAccount, facts: ConversionFacts<'a>) -> Option<Self> {
        let email = facts.email_google().map(UserIdentifier::EmailAddress);
        let phone = facts.phone_e164().map(UserIdentifier::PhoneNumber);
        let user_identifiers: Vec<UserIdentifier<'a>> = email.into_iter().chain(phone).collect();
        let is_sent = account.user_data_enabled && !user_identifiers.is_empty();
        is_sent.then_some(Self { user_identifiers })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Consent {
    #[serde(skip_serializing_if = "Option::is_none")]
    ad_user_data: Option<&'static str>,
    ad_personalization: &'static str,
}

impl Consent {
    fn of(conversion: &Conversion) -> Option<Self> {
        const GRANTED: &str = "CONSENT_GRANTED";
        const DENIED: &str = "CONSENT_DENIED";
        let (ad_user_data, ad_personalization) = match conversion.sharing() {
            Sharing::Unknown => return None,
            Sharing::Allowed => (Some(GRANTED), GRANTED),
            // A person who denies personalised ads has not agreed to other uses of their data. So
            // this consent is sent only if it was given explicitly.
            Sharing::NotPersonalized => {
                (conversion.has_explicit_consent().then_some(GRANTED), DENIED)
            }
            // Such events are never sent. If one were sent, this value makes the network discard
            // it.
            Sharing::Refused => (Some(DENIED), DENIED),
        };
        Some(Self {
            ad_user_data,
            ad_personalization,
        })
    }
}

/// Checks whether a conversion can be sent. A conversion needs a click id, or user data if enabled;
/// an install always needs a click id.
pub(crate) fn check(account: &GoogleAdsAccount, conversion: &Conversion) -> Result<(), Unsendable> {
    let facts = ConversionFacts(conversion);
    ensure(account.action(conversion).is_some(), NO_CONVERSION_ACTION)?;
    let by_hash = conversion.event.name != INSTALL && UserData::of(account, facts).is_some();
    ensure(AdIdentifier::of(facts).is_some() || by_hash, NO_CLICK_ID)
}

fn event<'a>(account: &'a GoogleAdsAccount, conversion: &'a Conversion) -> Event<'a> {
    let facts = ConversionFacts(conversion);
    let value = conversion.usd().map(Decimal);
    Event {
        transaction_id: &conversion.dedup_id,
        event_timestamp: rfc3339(
            event_time(facts).unwrap_or_else(|| conversion.event.conversion_time()),
        ),
        event_source: if facts.is_web() {
            "WEB"
        } else {
            &account.sdk_event_source
        },
        ad_identifiers: AdIdentifier::of(facts).map(|click| AdIdentifiers {
            click,
            landing_page_device_info: DeviceInfo::of(account, facts),
        }),
        conversion_value: value,
        currency: value.map(|_| USD),
        user_data: UserData::of(account, facts),
        consent: Consent::of(conversion),
    }
}

pub(crate) fn encode(
    account: &GoogleAdsAccount,
    batch: &[Conversion],
    access_token: Option<&str>,
) -> NetworkRequest {
    let of_google_ads = |account_id| AdsAccount {
        account_type: "GOOGLE_ADS",
        account_id,
    };
    let action = batch.first().and_then(|first| account.action(first));
    let destination = Destination {
        operating_account: of_google_ads(&account.operating_account_id),
        login_account: account.login_account_id.as_deref().map(of_google_ads),
        product_destination_id: action.unwrap_or_default(),
    };
    let body = Body {
        destinations: [destination],
        events: batch.iter().map(|one| event(account, one)).collect(),
        encoding: "HEX",
        validate_only: account.validate_only,
    };
    let path = "/v1/events:ingest".to_owned();
    NetworkRequest::json(path, access_token.map(bearer), json::bytes(&body))
}

pub(super) fn bearer(token: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {token}"))
}
