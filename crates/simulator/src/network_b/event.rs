//! One event of `network_b`.

use super::check::{Destination, Taken, consent};
use crate::clock::{DAY, MINUTE};
use crate::read::{Found, Node, Wrong};
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
    event: &Node<'_, '_>,
    destinations: &[Destination],
    is_denied_by_request: bool,
    now: i64,
    found: &mut Found,
) -> Option<Taken> {
    if !event.object(FIELDS, found) {
        return None;
    }
    let id = event.need("transactionId", found);
    let id = id.and_then(|one| one.formed(is_id, "must not look like personal data", found));
    if let Some(time) = event.need("eventTimestamp", found) {
        check_time(&time, now, found);
    }
    let source = event.need("eventSource", found);
    let source = source.and_then(|one| one.choice(SOURCES, found));
    let click = event
        .get("adIdentifiers")
        .and_then(|one| check_click(&one, found));
    let has_user_data = event
        .get("userData")
        .is_some_and(|one| check_user_data(&one, found));
    if click.is_none() && !has_user_data && !event.has("adIdentifiers") && !event.has("userData") {
        event.wrong_at("adIdentifiers", Wrong::Identity, found);
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
            event.missing(other, found);
        }
    }
    let is_consent_denied = match event.get("consent") {
        // The event's own wins.
        Some(own) => consent(&own, found),
        None => is_denied_by_request,
    };
    let places = references(event, destinations, found);
    Some(Taken {
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
fn check_time(time: &Node<'_, '_>, now: i64, found: &mut Found) {
    let Some(text) = time.text(found) else {
        return;
    };
    let is_zulu = text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T');
    let parsed = text.parse::<jiff::Timestamp>().ok().filter(|_| is_zulu);
    match parsed.map(jiff::Timestamp::as_millisecond) {
        None => time.wrong(Wrong::Format("must be RFC 3339 with Z"), found),
        Some(at) if at < now - AGE_MAX => time.wrong(Wrong::TooOld, found),
        Some(at) if at > now + LEAD_MAX => time.wrong(Wrong::TooNew, found),
        Some(_) => {}
    }
}

/// Which click id there is; exactly one may be.
fn check_click(ids: &Node<'_, '_>, found: &mut Found) -> Option<&'static str> {
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
        ids.wrong(Wrong::Conflict(words), found);
    }
    if first.is_none() {
        ids.wrong(Wrong::Identity, found);
    }
    first.copied()
}

fn check_device(device: &Node<'_, '_>, found: &mut Found) {
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
fn check_user_data(data: &Node<'_, '_>, found: &mut Found) -> bool {
    if !data.object(&["userIdentifiers"], found) {
        return false;
    }
    let Some(list) = data.need("userIdentifiers", found) else {
        return false;
    };
    list.each(IDENTIFIERS_MAX, found, |one, found| {
        if !one.object(&["emailAddress", "phoneNumber", "address"], found) {
            return;
        }
        let fields = one.value().as_object().map_or(0, serde_json::Map::len);
        if fields != 1 {
            one.wrong(Wrong::Conflict("must hold exactly one identifier"), found);
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

fn check_address(address: &Node<'_, '_>, found: &mut Found) {
    if !address.object(
        &["givenName", "familyName", "regionCode", "postalCode"],
        found,
    ) {
        return;
    }
    for name in ["givenName", "familyName"] {
        if let Some(hash) = address.need(name, found) {
            hash.hash(found);
        }
    }
    for name in ["regionCode", "postalCode"] {
        if let Some(text) = address.need(name, found) {
            text.text(found);
        }
    }
}

/// Places of the destinations that an event names; all when it names none.
fn references(event: &Node<'_, '_>, destinations: &[Destination], found: &mut Found) -> Vec<usize> {
    let Some(list) = event.get("destinationReferences") else {
        return (0..destinations.len()).collect();
    };
    let mut places = Vec::new();
    list.each(usize::MAX, found, |one, found| {
        let Value::String(name) = one.value() else {
            one.wrong(Wrong::Type("string"), found);
            return;
        };
        let is_it = |destination: &Destination| destination.reference.as_ref() == Some(name);
        match destinations.iter().position(is_it) {
            Some(place) => places.push(place),
            None => one.wrong(Wrong::Conflict("is no reference of a destination"), found),
        }
    });
    places
}
