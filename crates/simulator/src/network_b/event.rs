//! Checks an event for `network_b`.

use super::check::{AcceptedGoogleEvent, CheckedDestination, consent};
use crate::clock::{DAY, MINUTE};
use crate::validation::{BodyNode, ViolationKind, Violations};
use serde_json::Value;

/// Maximum age of an event: clicks older than this cannot be imported, and no event is older than
/// its click.
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
    violations: &mut Violations,
) -> Option<AcceptedGoogleEvent> {
    if !event.object(FIELDS, violations) {
        return None;
    }
    let id = event.require("transactionId", violations);
    let id =
        id.and_then(|one| one.text_matching(is_id, "must not look like personal data", violations));
    if let Some(time) = event.require("eventTimestamp", violations) {
        check_time(&time, now, violations);
    }
    let source = event.require("eventSource", violations);
    let source = source.and_then(|one| one.choice(SOURCES, violations));
    let click = event
        .get("adIdentifiers")
        .and_then(|one| check_click(&one, violations));
    let has_user_data = event
        .get("userData")
        .is_some_and(|one| check_user_data(&one, violations));
    if click.is_none() && !has_user_data && !event.has("adIdentifiers") && !event.has("userData") {
        event.report_at("adIdentifiers", ViolationKind::Identity, violations);
    }
    if let Some(device) = event.get("eventDeviceInfo") {
        check_device(&device, violations);
    }
    let money = event.money(("conversionValue", "currency"), false, violations);
    for (one, other) in [
        ("conversionValue", "currency"),
        ("currency", "conversionValue"),
    ] {
        if event.has(one) && !event.has(other) {
            event.report_missing(other, violations);
        }
    }
    let is_consent_denied = match event.get("consent") {
        // The event's own consent takes precedence.
        Some(own) => consent(&own, violations),
        None => is_denied_by_request,
    };
    let positions = references(event, destinations, violations);
    Some(AcceptedGoogleEvent {
        id: id?.to_owned(),
        source: source?.to_owned(),
        money,
        destinations: positions,
        has_user_data,
        has_braid: click.is_some_and(|click| click != "gclid"),
        is_consent_denied,
    })
}

/// Google rejects order ids that look like email addresses.
fn is_id(text: &str) -> bool {
    !text.contains('@')
}

/// Checks that the time is RFC 3339 with `Z`.
fn check_time(time: &BodyNode<'_, '_>, now: i64, violations: &mut Violations) {
    let Some(text) = time.text(violations) else {
        return;
    };
    let is_zulu = text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T');
    let parsed = text.parse::<jiff::Timestamp>().ok().filter(|_| is_zulu);
    match parsed.map(jiff::Timestamp::as_millisecond) {
        None => time.report(ViolationKind::Format("must be RFC 3339 with Z"), violations),
        Some(at) if at < now - AGE_MAX => time.report(ViolationKind::TooOld, violations),
        Some(at) if at > now + LEAD_MAX => time.report(ViolationKind::TooNew, violations),
        Some(_) => {}
    }
}

/// Returns the click id's name. Exactly one click id is allowed.
fn check_click(ids: &BodyNode<'_, '_>, violations: &mut Violations) -> Option<&'static str> {
    let fields = [
        "gclid",
        "gbraid",
        "wbraid",
        "mobileDeviceId",
        "landingPageDeviceInfo",
    ];
    if !ids.object(&fields, violations) {
        return None;
    }
    if let Some(device) = ids.get("landingPageDeviceInfo") {
        check_device(&device, violations);
    }
    if let Some(device) = ids.get("mobileDeviceId") {
        device.text(violations);
    }
    let mut given = CLICK_IDS.iter().filter(|one| ids.has(one));
    let first = given.next();
    for id in CLICK_IDS.iter().filter_map(|one| ids.get(one)) {
        id.text(violations);
    }
    if given.next().is_some() {
        let message = "must contain exactly one of gclid, gbraid and wbraid";
        ids.report(ViolationKind::Conflict(message), violations);
    }
    if first.is_none() {
        ids.report(ViolationKind::Identity, violations);
    }
    first.copied()
}

fn check_device(device: &BodyNode<'_, '_>, violations: &mut Violations) {
    if !device.object(&["ipAddress", "userAgent"], violations) {
        return;
    }
    if let Some(ip) = device.get("ipAddress") {
        ip.ip(violations);
    }
    if let Some(agent) = device.get("userAgent") {
        agent.text(violations);
    }
}

/// Checks user data, and returns whether it has identifiers.
fn check_user_data(data: &BodyNode<'_, '_>, violations: &mut Violations) -> bool {
    if !data.object(&["userIdentifiers"], violations) {
        return false;
    }
    let Some(list) = data.require("userIdentifiers", violations) else {
        return false;
    };
    list.each(IDENTIFIERS_MAX, violations, |one, violations| {
        if !one.object(&["emailAddress", "phoneNumber", "address"], violations) {
            return;
        }
        let fields = one.value().as_object().map_or(0, serde_json::Map::len);
        if fields != 1 {
            one.report(
                ViolationKind::Conflict("must contain exactly one identifier"),
                violations,
            );
        }
        for field in ["emailAddress", "phoneNumber"] {
            if let Some(hash) = one.get(field) {
                hash.hash(violations);
            }
        }
        if let Some(address) = one.get("address") {
            check_address(&address, violations);
        }
    });
    list.value().as_array().is_some_and(|list| !list.is_empty())
}

fn check_address(address: &BodyNode<'_, '_>, violations: &mut Violations) {
    if !address.object(
        &["givenName", "familyName", "regionCode", "postalCode"],
        violations,
    ) {
        return;
    }
    for name in ["givenName", "familyName"] {
        if let Some(hash) = address.require(name, violations) {
            hash.hash(violations);
        }
    }
    for name in ["regionCode", "postalCode"] {
        if let Some(text) = address.require(name, violations) {
            text.text(violations);
        }
    }
}

/// Returns the indexes of the referenced destinations, or of all destinations if there are no
/// references.
fn references(
    event: &BodyNode<'_, '_>,
    destinations: &[CheckedDestination],
    violations: &mut Violations,
) -> Vec<usize> {
    let Some(list) = event.get("destinationReferences") else {
        return (0..destinations.len()).collect();
    };
    let mut positions = Vec::new();
    list.each(usize::MAX, violations, |one, violations| {
        let Value::String(name) = one.value() else {
            one.report(ViolationKind::Type("string"), violations);
            return;
        };
        let is_it = |destination: &CheckedDestination| destination.reference.as_ref() == Some(name);
        match destinations.iter().position(is_it) {
            Some(position) => positions.push(position),
            None => one.report(
                ViolationKind::Conflict("is not the reference of a destination"),
                violations,
            ),
        }
    });
    positions
}
