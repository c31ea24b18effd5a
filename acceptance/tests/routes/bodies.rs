//! Valid bodies for the routes.

use super::{DEVICE, USER};
use serde_json::{Value, json};

const ERASE_TOKEN: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

pub(super) fn challenge_body() -> Value {
    json!({"deviceId": DEVICE})
}

/// A key that a full test key may create.
pub(super) fn key_body() -> Value {
    json!({"name": "Warehouse", "permission": "analytics", "environment": "test"})
}

pub(super) fn rotation_body() -> Value {
    json!({"overlapHours": 48})
}

/// Ends the former secret at once, so that the request may be repeated.
pub(super) fn alert_rotation_body() -> Value {
    json!({"overlapHours": 0})
}

/// Replaces the current test key, which the fixture does not use.
pub(super) fn sdk_rotation_body() -> Value {
    json!({"environment": "test", "overlapDays": 0})
}

/// Revokes a key; [`super::RouteFixture::fill`] adds it.
pub(super) fn sdk_revocation_body() -> Value {
    json!({"key": "pk_test_replaced"})
}

pub(super) fn name_body() -> Value {
    json!({"name": "Spring"})
}

pub(super) fn web_events_enabled_body() -> Value {
    json!({"webEvents": {"enabled": true}})
}

/// Builds a web event; [`super::RouteFixture::fill`] adds its click.
pub(super) fn web_event_body() -> Value {
    json!({
        "eventId": "order-1", "arClickId": "clk_", "deviceId": DEVICE, "timestampMs": 1_767_225_600_000_i64,
        "eventType": "purchase", "revenue": 49.99, "currency": "USD", "sourceUrl": "https://shop.example.com/paid",
    })
}

pub(super) fn enabled_body() -> Value {
    json!({"enabled": true})
}

pub(super) fn links_body() -> Value {
    json!({"links": [{"name": "Spring"}, {"name": "Autumn"}]})
}

pub(super) fn notice_body() -> Value {
    json!({
        "name": "Every morning", "channel": "email", "recipients": ["team@example.com"],
        "topic": "daily_summary", "hour": 8,
    })
}

pub(super) fn costs_body() -> Value {
    json!({"costs": [{"day": "2026-01-01", "network": "network_a", "amount": 12.5}]})
}

pub(super) fn cost_source_body() -> Value {
    json!({"settings": {"accountId": "77"}, "credentials": {"accessToken": "EAAB0123456789abcdef"}})
}

pub(super) fn evaluate_body() -> Value {
    json!({"events": [{"name": "purchase", "revenue": 9.99}]})
}

pub(super) fn retry_body() -> Value {
    json!({"status": "failed"})
}

/// Builds a call whose device cannot exist, so that its install is held.
pub(super) fn configure_body() -> Value {
    json!({"deviceId": DEVICE, "platform": "android", "model": "iPhone15,2", "eraseToken": ERASE_TOKEN})
}

pub(super) fn tried_rules_body() -> Value {
    json!({"attribution": {"clickWindowHours": 24}})
}

pub(super) fn decision_body() -> Value {
    json!({"decision": "release"})
}

pub(super) fn decisions_body() -> Value {
    json!({"decision": "reject", "flag": "install_burst"})
}

pub(super) fn events_body() -> Value {
    json!({"deviceId": DEVICE, "events": [{"name": "sign_up"}]})
}

pub(super) fn erase_body() -> Value {
    json!({"deviceId": DEVICE, "eraseToken": ERASE_TOKEN})
}

pub(super) fn identify_body() -> Value {
    json!({"deviceId": DEVICE, "userId": USER})
}
