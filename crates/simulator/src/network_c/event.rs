//! One event of `network_c`.

use crate::clock::{DAY, MINUTE, SECOND};
use crate::validation::{BodyNode, ReceivedMoney, ViolationKind, Violations};

/// Not documented by the network; what Tributary treats as its limits.
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
/// One of these recognises somebody; so do address and user agent together.
const STRONG: &[&str] = &["ttclid", "ttp", "email", "phone", "external_id"];

pub(super) fn check(
    event: &BodyNode<'_, '_>,
    source: Option<&str>,
    now: i64,
    found: &mut Violations,
) -> Option<ReceivedMoney> {
    if !event.object(FIELDS, found) {
        return None;
    }
    if let Some(name) = event.require("event", found) {
        name.text(found);
    }
    if let Some(time) = event.require("event_time", found) {
        check_time(&time, now, found);
    }
    if let Some(id) = event.get("event_id") {
        id.text(found);
    }
    if let Some(user) = event.require("user", found) {
        check_user(&user, found);
    }
    match event.get("page") {
        Some(page) => check_page(&page, source, found),
        None if source == Some("web") => event.report_missing("page", found),
        None => {}
    }
    if let Some(flag) = event.get("limited_data_use") {
        flag.flag(found);
    }
    for object in ["app", "ad", "lead"]
        .into_iter()
        .filter_map(|one| event.get(one))
    {
        object.any_object(found);
    }
    let properties = event.get("properties")?;
    check_properties(&properties, found)
}

fn check_time(time: &BodyNode<'_, '_>, now: i64, found: &mut Violations) {
    let Some(seconds) = time.integer(found) else {
        return;
    };
    let at = seconds.saturating_mul(SECOND);
    if at < now - AGE_MAX {
        time.report(ViolationKind::TooOld, found);
    } else if at > now + LEAD_MAX {
        time.report(ViolationKind::TooNew, found);
    }
}

fn check_user(user: &BodyNode<'_, '_>, found: &mut Violations) {
    if !user.object(USER_FIELDS, found) {
        return;
    }
    for field in ["email", "phone", "external_id"] {
        match user.get(field) {
            Some(list) if list.value().is_array() => {
                list.each(HASHES_MAX, found, |one, found| one.hash(found));
            }
            Some(one) => {
                one.hash(found);
            }
            None => {}
        }
    }
    for field in ["ttclid", "ttp", "user_agent", "locale", "idfv"] {
        if let Some(text) = user.get(field) {
            text.text(found);
        }
    }
    if let Some(ip) = user.get("ip") {
        ip.ip(found);
    }
    if let Some(id) = user.get("idfa") {
        let text = id.uuid(found);
        if text.is_some_and(|text| text.bytes().any(|byte| byte.is_ascii_lowercase())) {
            id.report(ViolationKind::Format("must be in upper case"), found);
        }
    }
    if let Some(id) = user.get("gaid") {
        let text = id.uuid(found);
        if text.is_some_and(|text| text.bytes().any(|byte| byte.is_ascii_uppercase())) {
            id.report(ViolationKind::Format("must be in lower case"), found);
        }
    }
    if let Some(status) = user.get("att_status") {
        status.choice(ATT_STATUS, found);
    }
    let is_strong = STRONG.iter().any(|one| user.has(one));
    let is_device = user.has("ip") && user.has("user_agent");
    if !is_strong && !is_device {
        user.report(ViolationKind::Identity, found);
    }
}

fn check_page(page: &BodyNode<'_, '_>, source: Option<&str>, found: &mut Violations) {
    if !page.object(&["url", "referrer"], found) {
        return;
    }
    match page.get("url") {
        Some(url) => url.url(found),
        None if source == Some("web") => page.report_missing("url", found),
        None => {}
    }
    if let Some(referrer) = page.get("referrer") {
        referrer.text(found);
    }
}

fn check_properties(
    properties: &BodyNode<'_, '_>,
    found: &mut Violations,
) -> Option<ReceivedMoney> {
    if !properties.any_object(found) {
        return None;
    }
    let money = properties.money(("value", "currency"), false, found);
    if properties.has("value") && !properties.has("currency") {
        properties.report_missing("currency", found);
    }
    for field in ["order_id", "query", "description", "content_type"] {
        if let Some(text) = properties.get(field) {
            text.text(found);
        }
    }
    if let Some(count) = properties.get("num_items") {
        count.integer(found);
    }
    if let Some(contents) = properties.get("contents") {
        contents.each(usize::MAX, found, |one, found| check_content(&one, found));
    }
    money
}

fn check_content(content: &BodyNode<'_, '_>, found: &mut Violations) {
    let texts = ["content_id", "content_name", "content_category", "brand"];
    let fields: Vec<_> = texts.into_iter().chain(["price", "quantity"]).collect();
    if !content.object(&fields, found) {
        return;
    }
    for text in texts.into_iter().filter_map(|one| content.get(one)) {
        text.text(found);
    }
    if let Some(price) = content.get("price") {
        price.amount(found);
    }
    if let Some(quantity) = content.get("quantity") {
        quantity.integer(found);
    }
}
