//! Checks requests to `network_d`. All violations are reported.

use super::event;
use crate::validation::{BodyNode, ReceivedMoney, Violation, Violations};
use serde_json::Value;

const EVENTS_MAX: usize = 1_000;
const BODY_FIELDS: &[&str] = &["events", "validate_only", "integration_source"];

/// A valid event.
#[derive(Debug)]
pub(super) struct AcceptedOpenAiEvent {
    /// The event's type or, for a custom event, its name.
    pub(super) name: String,
    pub(super) money: Option<ReceivedMoney>,
}

/// A valid request.
#[derive(Debug)]
pub(super) struct CheckedOpenAiRequest {
    pub(super) events: Vec<AcceptedOpenAiEvent>,
    pub(super) validate_only: bool,
}

pub(super) fn check(body: &Value, now: i64) -> Result<CheckedOpenAiRequest, Vec<Violation>> {
    let mut violations = Violations::default();
    let root = BodyNode::root(body);
    let mut events = Vec::new();
    let mut validate_only = false;
    if root.object(BODY_FIELDS, &mut violations) {
        if let Some(flag) = root.get("validate_only") {
            validate_only = flag.flag(&mut violations).unwrap_or_default();
        }
        if let Some(source) = root.get("integration_source") {
            let message = "must be 1 to 64 letters, digits, dots, underscores or hyphens, starting \
                           with a letter or digit";
            source.text_matching(is_source, message, &mut violations);
        }
        if let Some(list) = root.require("events", &mut violations) {
            list.each(EVENTS_MAX, &mut violations, |event, violations| {
                events.extend(event::check(&event, now, violations));
            });
        }
    }
    if violations.is_empty() {
        return Ok(CheckedOpenAiRequest {
            events,
            validate_only,
        });
    }
    Err(violations.into_list())
}

/// Checks the integration source, ignoring case and surrounding spaces like the network.
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
