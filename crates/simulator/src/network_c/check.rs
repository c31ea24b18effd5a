//! Checks requests to `network_c`. A request is rejected at its first violation.

use super::event;
use crate::validation::{BodyNode, ReceivedMoney, Violation, Violations};
use serde_json::Value;

const EVENTS_MAX: usize = 1_000;
const SOURCES: &[&str] = &["web", "app", "offline", "crm"];
const BODY_FIELDS: &[&str] = &[
    "event_source",
    "event_source_id",
    "test_event_code",
    "partner_name",
    "data",
];

/// A valid request.
#[derive(Debug)]
pub(super) struct CheckedTikTokRequest {
    /// Each event's amount.
    pub(super) money: Vec<Option<ReceivedMoney>>,
    pub(super) is_test: bool,
}

pub(super) fn check(body: &Value, now: i64) -> Result<CheckedTikTokRequest, Violation> {
    let mut violations = Violations::default();
    let root = BodyNode::root(body);
    let mut money = Vec::new();
    if root.object(BODY_FIELDS, &mut violations) {
        let source = root.require("event_source", &mut violations);
        let source = source.and_then(|one| one.choice(SOURCES, &mut violations));
        if let Some(id) = root.require("event_source_id", &mut violations) {
            id.text(&mut violations);
        }
        for field in ["test_event_code", "partner_name"] {
            if let Some(text) = root.get(field) {
                text.text(&mut violations);
            }
        }
        if let Some(data) = root.require("data", &mut violations) {
            data.each(EVENTS_MAX, &mut violations, |event, violations| {
                money.push(event::check(&event, source, now, violations));
            });
        }
    }
    match violations.into_list().into_iter().next() {
        Some(violation) => Err(violation),
        None => Ok(CheckedTikTokRequest {
            money,
            is_test: root.has("test_event_code"),
        }),
    }
}
