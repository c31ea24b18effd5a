//! Encodes requests.

use super::OpenAiAccount;
use super::event_type::OpenAiEventType;
use crate::check::{INSUFFICIENT_IDENTITY, INVALID_EVENT_NAME, NO_SOURCE_URL, Unsendable, ensure};
use crate::facts::ConversionFacts;
use crate::json::{self, USD};
use crate::request::NetworkRequest;
use crate::text::form_encode;
use serde::Serialize;
use tributary_domain::device::Platform;
use tributary_domain::forwarding::{Conversion, Sharing};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::money::{AMOUNT_DECIMALS_MAX, Amount};

#[derive(Serialize)]
struct Body<'a> {
    integration_source: &'static str,
    validate_only: bool,
    events: Vec<Event<'a>>,
}

#[derive(Serialize)]
struct Event<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_event_name: Option<String>,
    timestamp_ms: i64,
    action_source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oppref: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opt_out: Option<bool>,
    user: User<'a>,
    data: Data,
}

/// Fields that are lists here were single values in an earlier version of the API.
#[derive(Serialize)]
struct User<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    emails_sha256: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone_numbers_sha256: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_ids_sha256: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    countries: Option<[String; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    obref: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    android_advertising_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
}

impl<'a> User<'a> {
    fn of(facts: ConversionFacts<'a>) -> Self {
        let cookie = facts
            .click()
            .and_then(|click| click.captured.browser_ids.obref.as_deref());
        Self {
            emails_sha256: facts.email().map(|hash| [hash]),
            phone_numbers_sha256: facts.phone().map(|hash| [hash]),
            external_ids_sha256: Some(facts.0.external_ids()).filter(|ids| !ids.is_empty()),
            countries: facts.0.country().map(|country| [country]),
            obref: cookie.filter(|cookie| !cookie.trim().is_empty()),
            android_advertising_id: facts.advertising_id(Platform::Android),
            ip_address: facts.address(),
            user_agent: facts.user_agent(),
        }
    }
}

#[derive(Serialize)]
struct Data {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contents: Option<[Content; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
}

#[derive(Serialize)]
struct Content {
    id: String,
}

/// Converts an amount to minor units, rounding half away from zero.
pub(super) fn minor_units(amount: Amount, currency: Currency) -> i64 {
    let decimals = usize::from(currency.decimals());
    let dropped = u32::try_from(AMOUNT_DECIMALS_MAX.saturating_sub(decimals)).unwrap_or(0);
    let unit = 10_i64.pow(dropped);
    let micros = amount.micros();
    let half = unit / 2 * micros.signum();
    micros.saturating_add(half) / unit
}

/// Returns whether the event is sent as a website event. Events from the SDK on a web page are
/// website events, except types that only happen in apps.
fn is_website_event(facts: ConversionFacts<'_>, kind: &OpenAiEventType) -> bool {
    let on_web_page = facts.0.event.platform == Some(Platform::Web);
    (facts.is_web() || on_web_page) && !kind.is_app_only()
}

/// Checks whether a conversion can be sent. The network does not document which identifiers are
/// enough to match a person; this is our interpretation.
pub(crate) fn check(conversion: &Conversion) -> Result<(), Unsendable> {
    let facts = ConversionFacts(conversion);
    let kind = OpenAiEventType::of(conversion).ok_or(INVALID_EVENT_NAME)?;
    let user = User::of(facts);
    let known = facts.click_id("oppref").is_some()
        || user.obref.is_some()
        || user.emails_sha256.is_some()
        || user.external_ids_sha256.is_some();
    ensure(known, INSUFFICIENT_IDENTITY)?;
    let needs_page = is_website_event(facts, &kind);
    ensure(!needs_page || facts.page_url().is_some(), NO_SOURCE_URL)
}

fn event(conversion: &Conversion) -> Option<Event<'_>> {
    let facts = ConversionFacts(conversion);
    let kind = OpenAiEventType::of(conversion)?;
    let is_web = is_website_event(facts, &kind);
    // The product is the plan id in plan events, and is not sent with customer actions.
    let product = |data: &str| facts.product_id().filter(|_| kind.data == data);
    let contents = product("contents").or_else(|| product("custom"));
    let plan_id = product("plan_enrollment");
    let amount = conversion.usd().map(|usd| minor_units(usd, Currency::USD));
    Some(Event {
        id: &conversion.dedup_id,
        kind: kind.name,
        custom_event_name: kind.custom_name,
        timestamp_ms: conversion.event.conversion_time().as_millis(),
        action_source: if is_web { "web" } else { "mobile_app" },
        source_url: facts.page_url().filter(|_| is_web),
        oppref: facts.click_id("oppref"),
        opt_out: (conversion.sharing() == Sharing::NotPersonalized).then_some(true),
        user: User::of(facts),
        data: Data {
            kind: kind.data,
            amount,
            currency: amount.map(|_| USD),
            contents: contents.map(|id| [Content { id }]),
            plan_id,
        },
    })
}

pub(crate) fn encode(account: &OpenAiAccount, batch: &[Conversion]) -> NetworkRequest {
    let body = Body {
        integration_source: "tributary",
        validate_only: account.validate_only,
        events: batch.iter().filter_map(event).collect(),
    };
    let query = form_encode(&[("pid", &account.pixel_id)]);
    let key = format!("Bearer {}", account.api_key.expose());
    let path = format!("/v1/events?{query}");
    NetworkRequest::json(path, Some(("authorization", key)), json::bytes(&body))
}
