//! Checks an event for `network_a`.

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
/// Allowed countries: 0 lets the network derive the country, and 1 is the USA.
const COUNTRIES: &[i64] = &[0, 1];

pub(super) fn check(
    event: &BodyNode<'_, '_>,
    rules: &MetaCheckContext,
    violations: &mut Violations,
) -> Option<ReceivedMoney> {
    if !event.object(FIELDS, violations) {
        return None;
    }
    let name = event
        .require("event_name", violations)
        .and_then(|one| one.text(violations));
    if let Some(time) = event.require("event_time", violations) {
        check_time(&time, rules.now, violations);
    }
    for field in ["event_id", "referrer_url"] {
        if let Some(text) = event.get(field) {
            text.text(violations);
        }
    }
    let source = event
        .require("action_source", violations)
        .and_then(|one| one.choice(SOURCES, violations));
    match event.get("event_source_url") {
        Some(url) => url.url(violations),
        None if source == Some("website") => event.report_missing("event_source_url", violations),
        None => {}
    }
    if let Some(person) = event.require("user_data", violations) {
        user_data::check(&person, source, violations);
    }
    if let Some(flag) = event.get("opt_out") {
        flag.flag(violations);
    }
    check_processing(event, violations);
    check_app(event, source, rules, violations);
    if let Some(original) = event.get("original_event_data") {
        original.object(
            &["event_name", "event_time", "order_id", "event_id"],
            violations,
        );
    }
    check_custom(event, name, rules, violations)
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

fn check_custom(
    event: &BodyNode<'_, '_>,
    name: Option<&str>,
    rules: &MetaCheckContext,
    violations: &mut Violations,
) -> Option<ReceivedMoney> {
    let Some(custom) = event.get("custom_data") else {
        if name == Some("Purchase") {
            event.report_missing("custom_data", violations);
        }
        return None;
    };
    if !custom.any_object(violations) {
        return None;
    }
    let money = custom.money(("value", "currency"), rules.is_form, violations);
    if name == Some("Purchase") || custom.has("value") {
        for field in ["value", "currency"] {
            if !custom.has(field) {
                custom.report_missing(field, violations);
            }
        }
    }
    if let Some(value) = custom.get("predicted_ltv") {
        value.amount(violations);
    }
    let texts = [
        "order_id",
        "search_string",
        "content_type",
        "content_name",
        "content_category",
    ];
    for text in texts.into_iter().filter_map(|field| custom.get(field)) {
        text.text(violations);
    }
    if let Some(count) = custom.get("num_items") {
        count.integer(violations);
    }
    if let Some(ids) = custom.get("content_ids") {
        ids.each(usize::MAX, violations, |id, violations| id.text(violations));
    }
    if let Some(contents) = custom.get("contents") {
        contents.each(usize::MAX, violations, |one, violations| {
            one.any_object(violations)
        });
    }
    money
}

/// Checks the fields for limited data use: the country is required, and the state is required
/// unless the network can derive it from the IP address.
fn check_processing(event: &BodyNode<'_, '_>, violations: &mut Violations) {
    let (country_field, state_field) = (
        "data_processing_options_country",
        "data_processing_options_state",
    );
    let country = event.get(country_field).and_then(|one| {
        let country = one.integer(violations)?;
        if !COUNTRIES.contains(&country) {
            one.report(ViolationKind::Choice, violations);
        }
        Some(country)
    });
    if let Some(state) = event.get(state_field) {
        let number = state.integer(violations);
        if number.is_some_and(|number| number != 0 && !(1000..=1013).contains(&number)) {
            state.report(ViolationKind::Choice, violations);
        }
    }
    let Some(options) = event.get("data_processing_options") else {
        return;
    };
    let Value::Array(entries) = options.value() else {
        options.report(ViolationKind::Type("list"), violations);
        return;
    };
    if entries.is_empty() {
        return;
    }
    if entries.len() != 1 || entries[0] != "LDU" {
        options.report(ViolationKind::Format("must be [\"LDU\"] or []"), violations);
    }
    if !event.has(country_field) {
        event.report_missing(country_field, violations);
    }
    let has_ip = event
        .value()
        .pointer("/user_data/client_ip_address")
        .is_some();
    let is_found_out = country == Some(0) && has_ip;
    if !event.has(state_field) && !is_found_out {
        event.report_missing(state_field, violations);
    }
}

fn check_app(
    event: &BodyNode<'_, '_>,
    source: Option<&str>,
    rules: &MetaCheckContext,
    violations: &mut Violations,
) {
    let is_app = source == Some("app");
    if is_app && !rules.is_app_linked {
        let message = "requires a dataset that is linked to an app";
        event.report_at(
            "action_source",
            ViolationKind::Conflict(message),
            violations,
        );
    }
    let Some(app) = event.get("app_data") else {
        if is_app {
            event.report_missing("app_data", violations);
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
    if !app.object(&fields, violations) {
        return;
    }
    if let Some(flag) = app.require("advertiser_tracking_enabled", violations) {
        check_switch(&flag, rules, violations);
    }
    if let Some(flag) = app.get("application_tracking_enabled") {
        check_switch(&flag, rules, violations);
    }
    for text in ["install_referrer", "campaign_ids", "vendor_id"] {
        if let Some(text) = app.get(text) {
            text.text(violations);
        }
    }
    if let Some(info) = app.require("extinfo", violations) {
        check_extinfo(&info, violations);
    }
}

/// Checks a flag that is 0 or 1; official clients send booleans.
fn check_switch(flag: &BodyNode<'_, '_>, rules: &MetaCheckContext, violations: &mut Violations) {
    if rules.is_form && flag.value().is_boolean() {
        return;
    }
    if flag
        .integer(violations)
        .is_some_and(|one| !(0..=1).contains(&one))
    {
        flag.report(ViolationKind::Choice, violations);
    }
}

fn check_extinfo(info: &BodyNode<'_, '_>, violations: &mut Violations) {
    let Value::Array(entries) = info.value() else {
        info.report(ViolationKind::Type("list"), violations);
        return;
    };
    if entries.len() != EXTINFO_LENGTH {
        info.report(
            ViolationKind::Format("must have exactly 16 entries"),
            violations,
        );
        return;
    }
    for (index, entry) in entries.iter().enumerate() {
        let node = info.item(index, entry);
        match entry {
            Value::String(text) if index == 0 && text != "a2" && text != "i2" => {
                node.report(ViolationKind::Choice, violations);
            }
            Value::String(text) if index == EXTINFO_OS_VERSION && text.is_empty() => {
                node.report(ViolationKind::Empty, violations);
            }
            Value::String(_) => {}
            _ => node.report(ViolationKind::Type("string"), violations),
        }
    }
}
