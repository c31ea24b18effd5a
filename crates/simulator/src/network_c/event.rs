//! Checks an event for `network_c`.

use crate::clock::{DAY, MINUTE, SECOND};
use crate::validation::{BodyNode, ReceivedMoney, ViolationKind, Violations};

/// Limits that Tributary assumes; the network does not document them.
const AGE_MAX: i64 = 7 * DAY;
const LEAD_MAX: i64 = MINUTE;
const HASHES_MAX: usize = 100;
const FIELDS: &[&str] = &[
    "event",
    "event_time",
    "event_id",
    "user",
    "page",
    "properties",
    "limited_data_use",
    "app",
    "ad",
    "lead",
];
const USER_FIELDS: &[&str] = &[
    "email",
    "phone",
    "external_id",
    "ttclid",
    "ttp",
    "ip",
    "user_agent",
    "locale",
    "idfa",
    "gaid",
    "idfv",
    "att_status",
];
const ATT_STATUS: &[&str] = &[
    "AUTHORIZED",
    "DENIED",
    "NOT_DETERMINED",
    "RESTRICTED",
    "NOT_APPLICABLE",
];
/// Each of these fields identifies a person; IP address and user agent together do so as well.
const STRONG: &[&str] = &["ttclid", "ttp", "email", "phone", "external_id"];

pub(super) fn check(
    event: &BodyNode<'_, '_>,
    source: Option<&str>,
    now: i64,
    violations: &mut Violations,
) -> Option<ReceivedMoney> {
    if !event.object(FIELDS, violations) {
        return None;
    }
    if let Some(name) = event.require("event", violations) {
        name.text(violations);
    }
    if let Some(time) = event.require("event_time", violations) {
        check_time(&time, now, violations);
    }
    if let Some(id) = event.get("event_id") {
        id.text(violations);
    }
    if let Some(user) = event.require("user", violations) {
        check_user(&user, violations);
    }
    match event.get("page") {
        Some(page) => check_page(&page, source, violations),
        None if source == Some("web") => event.report_missing("page", violations),
        None => {}
    }
    if let Some(flag) = event.get("limited_data_use") {
        flag.flag(violations);
    }
    for object in ["app", "ad", "lead"]
        .into_iter()
        .filter_map(|one| event.get(one))
    {
        object.any_object(violations);
    }
    let properties = event.get("properties")?;
    check_properties(&properties, violations)
}

fn check_time(time: &BodyNode<'_, '_>, now: i64, violations: &mut Violations) {
    let Some(seconds) = time.integer(violations) else {
        return;
    };
    let at = seconds.saturating_mul(SECOND);
    if at < now - AGE_MAX {
        time.report(ViolationKind::TooOld, violations);
    } else if at > now + LEAD_MAX {
        time.report(ViolationKind::TooNew, violations);
    }
}

fn check_user(user: &BodyNode<'_, '_>, violations: &mut Violations) {
    if !user.object(USER_FIELDS, violations) {
        return;
    }
    for field in ["email", "phone", "external_id"] {
        match user.get(field) {
            Some(list) if list.value().is_array() => {
                list.each(HASHES_MAX, violations, |one, violations| {
                    one.hash(violations)
                });
            }
            Some(one) => {
                one.hash(violations);
            }
            None => {}
        }
    }
    for field in ["ttclid", "ttp", "user_agent", "locale", "idfv"] {
        if let Some(text) = user.get(field) {
            text.text(violations);
        }
    }
    if let Some(ip) = user.get("ip") {
        ip.ip(violations);
    }
    if let Some(id) = user.get("idfa") {
        let text = id.uuid(violations);
        if text.is_some_and(|text| text.bytes().any(|byte| byte.is_ascii_lowercase())) {
            id.report(ViolationKind::Format("must be in upper case"), violations);
        }
    }
    if let Some(id) = user.get("gaid") {
        let text = id.uuid(violations);
        if text.is_some_and(|text| text.bytes().any(|byte| byte.is_ascii_uppercase())) {
            id.report(ViolationKind::Format("must be in lower case"), violations);
        }
    }
    if let Some(status) = user.get("att_status") {
        status.choice(ATT_STATUS, violations);
    }
    let is_strong = STRONG.iter().any(|one| user.has(one));
    let is_device = user.has("ip") && user.has("user_agent");
    if !is_strong && !is_device {
        user.report(ViolationKind::Identity, violations);
    }
}

fn check_page(page: &BodyNode<'_, '_>, source: Option<&str>, violations: &mut Violations) {
    if !page.object(&["url", "referrer"], violations) {
        return;
    }
    match page.get("url") {
        Some(url) => url.url(violations),
        None if source == Some("web") => page.report_missing("url", violations),
        None => {}
    }
    if let Some(referrer) = page.get("referrer") {
        referrer.text(violations);
    }
}

fn check_properties(
    properties: &BodyNode<'_, '_>,
    violations: &mut Violations,
) -> Option<ReceivedMoney> {
    if !properties.any_object(violations) {
        return None;
    }
    let money = properties.money(("value", "currency"), false, violations);
    if properties.has("value") && !properties.has("currency") {
        properties.report_missing("currency", violations);
    }
    for field in ["order_id", "query", "description", "content_type"] {
        if let Some(text) = properties.get(field) {
            text.text(violations);
        }
    }
    if let Some(count) = properties.get("num_items") {
        count.integer(violations);
    }
    if let Some(contents) = properties.get("contents") {
        contents.each(usize::MAX, violations, |one, violations| {
            check_content(&one, violations);
        });
    }
    money
}

fn check_content(content: &BodyNode<'_, '_>, violations: &mut Violations) {
    let texts = ["content_id", "content_name", "content_category", "brand"];
    let fields: Vec<_> = texts.into_iter().chain(["price", "quantity"]).collect();
    if !content.object(&fields, violations) {
        return;
    }
    for text in texts.into_iter().filter_map(|one| content.get(one)) {
        text.text(violations);
    }
    if let Some(price) = content.get("price") {
        price.amount(violations);
    }
    if let Some(quantity) = content.get("quantity") {
        quantity.integer(violations);
    }
}
