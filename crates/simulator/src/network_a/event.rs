//! One event of `network_a`.

use super::check::MetaCheckContext;
use super::user_data;
use crate::clock::{DAY, MINUTE, SECOND};
use crate::validation::{BodyNode, ReceivedMoney, ViolationKind, Violations};
use serde_json::Value;

const AGE_MAX: i64 = 7 * DAY;
const LEAD_MAX: i64 = MINUTE;
const SOURCES: &[&str] = &[
    "email",
    "website",
    "app",
    "phone_call",
    "chat",
    "physical_store",
    "system_generated",
    "business_messaging",
    "other",
];
const FIELDS: &[&str] = &[
    "event_name",
    "event_time",
    "action_source",
    "event_id",
    "event_source_url",
    "referrer_url",
    "user_data",
    "custom_data",
    "opt_out",
    "data_processing_options",
    "data_processing_options_country",
    "data_processing_options_state",
    "app_data",
    "original_event_data",
];
const EXTINFO_LENGTH: usize = 16;
const EXTINFO_OS_VERSION: usize = 4;
/// USA, or left to the network.
const COUNTRIES: &[i64] = &[0, 1];

pub(super) fn check(
    event: &BodyNode<'_, '_>,
    rules: &MetaCheckContext,
    found: &mut Violations,
) -> Option<ReceivedMoney> {
    if !event.object(FIELDS, found) {
        return None;
    }
    let name = event
        .require("event_name", found)
        .and_then(|one| one.text(found));
    if let Some(time) = event.require("event_time", found) {
        check_time(&time, rules.now, found);
    }
    for field in ["event_id", "referrer_url"] {
        if let Some(text) = event.get(field) {
            text.text(found);
        }
    }
    let source = event
        .require("action_source", found)
        .and_then(|one| one.choice(SOURCES, found));
    match event.get("event_source_url") {
        Some(url) => url.url(found),
        None if source == Some("website") => event.report_missing("event_source_url", found),
        None => {}
    }
    if let Some(person) = event.require("user_data", found) {
        user_data::check(&person, source, found);
    }
    if let Some(flag) = event.get("opt_out") {
        flag.flag(found);
    }
    check_processing(event, found);
    check_app(event, source, rules, found);
    if let Some(original) = event.get("original_event_data") {
        original.object(&["event_name", "event_time", "order_id", "event_id"], found);
    }
    check_custom(event, name, rules, found)
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

fn check_custom(
    event: &BodyNode<'_, '_>,
    name: Option<&str>,
    rules: &MetaCheckContext,
    found: &mut Violations,
) -> Option<ReceivedMoney> {
    let Some(custom) = event.get("custom_data") else {
        if name == Some("Purchase") {
            event.report_missing("custom_data", found);
        }
        return None;
    };
    if !custom.any_object(found) {
        return None;
    }
    let money = custom.money(("value", "currency"), rules.is_form, found);
    if name == Some("Purchase") || custom.has("value") {
        for field in ["value", "currency"] {
            if !custom.has(field) {
                custom.report_missing(field, found);
            }
        }
    }
    if let Some(value) = custom.get("predicted_ltv") {
        value.amount(found);
    }
    let texts = [
        "order_id",
        "search_string",
        "content_type",
        "content_name",
        "content_category",
    ];
    for text in texts.into_iter().filter_map(|field| custom.get(field)) {
        text.text(found);
    }
    if let Some(count) = custom.get("num_items") {
        count.integer(found);
    }
    if let Some(ids) = custom.get("content_ids") {
        ids.each(usize::MAX, found, |id, found| id.text(found));
    }
    if let Some(contents) = custom.get("contents") {
        contents.each(usize::MAX, found, |one, found| one.any_object(found));
    }
    money
}

/// Limited data use: with it the country, and the state unless the network can find it out.
fn check_processing(event: &BodyNode<'_, '_>, found: &mut Violations) {
    let (country_field, state_field) = (
        "data_processing_options_country",
        "data_processing_options_state",
    );
    let country = event.get(country_field).and_then(|one| {
        let country = one.integer(found)?;
        if !COUNTRIES.contains(&country) {
            one.report(ViolationKind::Choice, found);
        }
        Some(country)
    });
    if let Some(state) = event.get(state_field) {
        let number = state.integer(found);
        if number.is_some_and(|number| number != 0 && !(1000..=1013).contains(&number)) {
            state.report(ViolationKind::Choice, found);
        }
    }
    let Some(options) = event.get("data_processing_options") else {
        return;
    };
    let Value::Array(entries) = options.value() else {
        options.report(ViolationKind::Type("list"), found);
        return;
    };
    if entries.is_empty() {
        return;
    }
    if entries.len() != 1 || entries[0] != "LDU" {
        options.report(ViolationKind::Format("must be [\"LDU\"] or []"), found);
    }
    if !event.has(country_field) {
        event.report_missing(country_field, found);
    }
    let has_ip = event
        .value()
        .pointer("/user_data/client_ip_address")
        .is_some();
    let is_found_out = country == Some(0) && has_ip;
    if !event.has(state_field) && !is_found_out {
        event.report_missing(state_field, found);
    }
}

fn check_app(
    event: &BodyNode<'_, '_>,
    source: Option<&str>,
    rules: &MetaCheckContext,
    found: &mut Violations,
) {
    let is_app = source == Some("app");
    if is_app && !rules.is_app_linked {
        let words = "is only possible with a dataset that is linked to an app";
        event.report_at("action_source", ViolationKind::Conflict(words), found);
    }
    let Some(app) = event.get("app_data") else {
        if is_app {
            event.report_missing("app_data", found);
        }
        return;
    };
    let fields = [
        "advertiser_tracking_enabled",
        "application_tracking_enabled",
        "extinfo",
        "install_referrer",
        "campaign_ids",
        "vendor_id",
    ];
    if !app.object(&fields, found) {
        return;
    }
    if let Some(flag) = app.require("advertiser_tracking_enabled", found) {
        check_switch(&flag, rules, found);
    }
    if let Some(flag) = app.get("application_tracking_enabled") {
        check_switch(&flag, rules, found);
    }
    for text in ["install_referrer", "campaign_ids", "vendor_id"] {
        if let Some(text) = app.get(text) {
            text.text(found);
        }
    }
    if let Some(info) = app.require("extinfo", found) {
        check_extinfo(&info, found);
    }
}

/// 0 or 1; official clients make it a boolean.
fn check_switch(flag: &BodyNode<'_, '_>, rules: &MetaCheckContext, found: &mut Violations) {
    if rules.is_form && flag.value().is_boolean() {
        return;
    }
    if flag
        .integer(found)
        .is_some_and(|one| !(0..=1).contains(&one))
    {
        flag.report(ViolationKind::Choice, found);
    }
}

fn check_extinfo(info: &BodyNode<'_, '_>, found: &mut Violations) {
    let Value::Array(entries) = info.value() else {
        info.report(ViolationKind::Type("list"), found);
        return;
    };
    if entries.len() != EXTINFO_LENGTH {
        info.report(ViolationKind::Format("must have exactly 16 entries"), found);
        return;
    }
    for (index, entry) in entries.iter().enumerate() {
        let node = info.item(index, entry);
        match entry {
            Value::String(text) if index == 0 && text != "a2" && text != "i2" => {
                node.report(ViolationKind::Choice, found);
            }
            Value::String(text) if index == EXTINFO_OS_VERSION && text.is_empty() => {
                node.report(ViolationKind::Empty, found);
            }
            Value::String(_) => {}
            _ => node.report(ViolationKind::Type("string"), found),
        }
    }
}
