//! What `network_d` asks of a request. Everything that is wrong is named.

use super::event;
use crate::validation::{BodyNode, ReceivedMoney, Violation, Violations};
use serde_json::Value;

const EVENTS_MAX: usize = 1_000;
const BODY_FIELDS: &[&str] = &["events", "validate_only", "integration_source"];

/// An event in which nothing is wrong.
#[derive(Debug)]
pub(super) struct AcceptedOpenAiEvent {
    /// Its type or, for custom ones, the name they have.
    pub(super) name: String,
    pub(super) money: Option<ReceivedMoney>,
}

/// A request in which nothing is wrong.
#[derive(Debug)]
pub(super) struct CheckedOpenAiRequest {
    pub(super) events: Vec<AcceptedOpenAiEvent>,
    pub(super) validate_only: bool,
}

pub(super) fn check(body: &Value, now: i64) -> Result<CheckedOpenAiRequest, Vec<Violation>> {
    let mut found = Violations::default();
    let root = BodyNode::root(body);
    let mut events = Vec::new();
    let mut validate_only = false;
    if root.object(BODY_FIELDS, &mut found) {
        if let Some(flag) = root.get("validate_only") {
            validate_only = flag.flag(&mut found).unwrap_or_default();
        }
        if let Some(source) = root.get("integration_source") {
            let words = "must be 1 to 64 letters, digits, dots, underscores or hyphens, \
                         beginning with a letter or digit";
            source.text_matching(is_source, words, &mut found);
        }
        if let Some(list) = root.require("events", &mut found) {
            list.each(EVENTS_MAX, &mut found, |event, found| {
                events.extend(event::check(&event, now, found));
            });
        }
    }
    if found.is_empty() {
        return Ok(CheckedOpenAiRequest {
            events,
            validate_only,
        });
    }
    Err(found.into_list())
}

/// The network trims it and puts it in lower case itself.
fn is_source(text: &str) -> bool {
    let text = text.trim();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&text.len())
        && text.bytes().all(allowed)
        && text
            .as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphanumeric)
}
