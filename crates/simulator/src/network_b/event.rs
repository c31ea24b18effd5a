//! One event of `network_b`.

use super::check::{AcceptedGoogleEvent, CheckedDestination, consent};
use crate::clock::{DAY, MINUTE};
use crate::validation::{BodyNode, ViolationKind, Violations};
use serde_json::Value;

/// Clicks older than this cannot be imported, and no event is older than its click.
const AGE_MAX: i64 = 90 * DAY;
const LEAD_MAX: i64 = MINUTE;
const IDENTIFIERS_MAX: usize = 10;
const SOURCES: &[&str] = &["WEB", "APP", "IN_STORE", "PHONE", "MESSAGE", "OTHER"];
const CLICK_IDS: &[&str] = &["gclid", "gbraid", "wbraid"];
const FIELDS: &[&str] = &[
    "transactionId",
    "eventTimestamp",
    "eventSource",
    "adIdentifiers",
    "conversionValue",
    "currency",
    "userData",
    "consent",
    "eventDeviceInfo",
    "destinationReferences",
];

pub(super) fn check(
    event: &BodyNode<'_, '_>,
    destinations: &[CheckedDestination],
    is_denied_by_request: bool,
    now: i64,
    found: &mut Violations,
) -> Option<AcceptedGoogleEvent> {
    if !event.object(FIELDS, found) {
        return None;
    }
    let id = event.require("transactionId", found);
    let id = id.and_then(|one| one.text_matching(is_id, "must not look like personal data", found));
    if let Some(time) = event.require("eventTimestamp", found) {
        check_time(&time, now, found);
    }
    let source = event.require("eventSource", found);
    let source = source.and_then(|one| one.choice(SOURCES, found));
    let click = event
        .get("adIdentifiers")
        .and_then(|one| check_click(&one, found));
    let has_user_data = event
        .get("userData")
        .is_some_and(|one| check_user_data(&one, found));
    if click.is_none() && !has_user_data && !event.has("adIdentifiers") && !event.has("userData") {
        event.report_at("adIdentifiers", ViolationKind::Identity, found);
    }
    if let Some(device) = event.get("eventDeviceInfo") {
        check_device(&device, found);
    }
    let money = event.money(("conversionValue", "currency"), false, found);
    for (one, other) in [
        ("conversionValue", "currency"),
        ("currency", "conversionValue"),
    ] {
        if event.has(one) && !event.has(other) {
            event.report_missing(other, found);
        }
    }
    let is_consent_denied = match event.get("consent") {
        // The event's own wins.
        Some(own) => consent(&own, found),
        None => is_denied_by_request,
    };
    let places = references(event, destinations, found);
    Some(AcceptedGoogleEvent {
        id: id?.to_owned(),
        source: source?.to_owned(),
        money,
        destinations: places,
        has_user_data,
        has_braid: click.is_some_and(|click| click != "gclid"),
        is_consent_denied,
    })
}

/// Google refuses order ids that look like an address.
fn is_id(text: &str) -> bool {
    !text.contains('@')
}

/// RFC 3339 with `Z`.
fn check_time(time: &BodyNode<'_, '_>, now: i64, found: &mut Violations) {
    let Some(text) = time.text(found) else {
        return;
    };
    let is_zulu = text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T');
    let parsed = text.parse::<jiff::Timestamp>().ok().filter(|_| is_zulu);
    match parsed.map(jiff::Timestamp::as_millisecond) {
        None => time.report(ViolationKind::Format("must be RFC 3339 with Z"), found),
        Some(at) if at < now - AGE_MAX => time.report(ViolationKind::TooOld, found),
        Some(at) if at > now + LEAD_MAX => time.report(ViolationKind::TooNew, found),
        Some(_) => {}
    }
}

/// Which click id there is; exactly one may be.
fn check_click(ids: &BodyNode<'_, '_>, found: &mut Violations) -> Option<&'static str> {
    let fields = [
        "gclid",
        "gbraid",
        "wbraid",
        "mobileDeviceId",
        "landingPageDeviceInfo",
    ];
    if !ids.object(&fields, found) {
        return None;
    }
    if let Some(device) = ids.get("landingPageDeviceInfo") {
        check_device(&device, found);
    }
    if let Some(device) = ids.get("mobileDeviceId") {
        device.text(found);
    }
    let mut given = CLICK_IDS.iter().filter(|one| ids.has(one));
    let first = given.next();
    for id in CLICK_IDS.iter().filter_map(|one| ids.get(one)) {
        id.text(found);
    }
    if given.next().is_some() {
        let words = "must hold exactly one of gclid, gbraid and wbraid";
        ids.report(ViolationKind::Conflict(words), found);
    }
    if first.is_none() {
        ids.report(ViolationKind::Identity, found);
    }
    first.copied()
}

fn check_device(device: &BodyNode<'_, '_>, found: &mut Violations) {
    if !device.object(&["ipAddress", "userAgent"], found) {
        return;
    }
    if let Some(ip) = device.get("ipAddress") {
        ip.ip(found);
    }
    if let Some(agent) = device.get("userAgent") {
        agent.text(found);
    }
}

/// Whether it holds anybody.
fn check_user_data(data: &BodyNode<'_, '_>, found: &mut Violations) -> bool {
    if !data.object(&["userIdentifiers"], found) {
        return false;
    }
    let Some(list) = data.require("userIdentifiers", found) else {
        return false;
    };
    list.each(IDENTIFIERS_MAX, found, |one, found| {
        if !one.object(&["emailAddress", "phoneNumber", "address"], found) {
            return;
        }
        let fields = one.value().as_object().map_or(0, serde_json::Map::len);
        if fields != 1 {
            one.report(
                ViolationKind::Conflict("must hold exactly one identifier"),
                found,
            );
        }
        for field in ["emailAddress", "phoneNumber"] {
            if let Some(hash) = one.get(field) {
                hash.hash(found);
            }
        }
        if let Some(address) = one.get("address") {
            check_address(&address, found);
        }
    });
    list.value().as_array().is_some_and(|list| !list.is_empty())
}

fn check_address(address: &BodyNode<'_, '_>, found: &mut Violations) {
    if !address.object(
        &["givenName", "familyName", "regionCode", "postalCode"],
        found,
    ) {
        return;
    }
    for name in ["givenName", "familyName"] {
        if let Some(hash) = address.require(name, found) {
            hash.hash(found);
        }
    }
    for name in ["regionCode", "postalCode"] {
        if let Some(text) = address.require(name, found) {
            text.text(found);
        }
    }
}

/// Places of the destinations that an event names; all when it names none.
fn references(
    event: &BodyNode<'_, '_>,
    destinations: &[CheckedDestination],
    found: &mut Violations,
) -> Vec<usize> {
    let Some(list) = event.get("destinationReferences") else {
        return (0..destinations.len()).collect();
    };
    let mut places = Vec::new();
    list.each(usize::MAX, found, |one, found| {
        let Value::String(name) = one.value() else {
            one.report(ViolationKind::Type("string"), found);
            return;
        };
        let is_it = |destination: &CheckedDestination| destination.reference.as_ref() == Some(name);
        match destinations.iter().position(is_it) {
            Some(place) => places.push(place),
            None => one.report(
                ViolationKind::Conflict("is no reference of a destination"),
                found,
            ),
        }
    });
    places
}
