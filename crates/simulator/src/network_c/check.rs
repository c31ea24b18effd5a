//! What `network_c` asks of a request. The first thing that is wrong refuses it.

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

/// A request in which nothing is wrong.
#[derive(Debug)]
pub(super) struct CheckedTikTokRequest {
    /// Of each event.
    pub(super) money: Vec<Option<ReceivedMoney>>,
    pub(super) is_test: bool,
}

pub(super) fn check(body: &Value, now: i64) -> Result<CheckedTikTokRequest, Violation> {
    let mut found = Violations::default();
    let root = BodyNode::root(body);
    let mut money = Vec::new();
    if root.object(BODY_FIELDS, &mut found) {
        let source = root.require("event_source", &mut found);
        let source = source.and_then(|one| one.choice(SOURCES, &mut found));
        if let Some(id) = root.require("event_source_id", &mut found) {
            id.text(&mut found);
        }
        for field in ["test_event_code", "partner_name"] {
            if let Some(text) = root.get(field) {
                text.text(&mut found);
            }
        }
        if let Some(data) = root.require("data", &mut found) {
            data.each(EVENTS_MAX, &mut found, |event, found| {
                money.push(event::check(&event, source, now, found));
            });
        }
    }
    match found.into_list().into_iter().next() {
        Some(violation) => Err(violation),
        None => Ok(CheckedTikTokRequest {
            money,
            is_test: root.has("test_event_code"),
        }),
    }
}
