//! Checks requests to `network_a`. A request is rejected at its first violation.

use super::event;
use crate::validation::{BodyNode, ReceivedMoney, Violation, Violations};
use serde_json::Value;

const EVENTS_MAX: usize = 1_000;
const BODY_FIELDS: &[&str] = &["data", "test_event_code", "partner_agent"];

/// Context for the checks, besides the body.
#[derive(Debug)]
pub(super) struct MetaCheckContext {
    pub(super) now: i64,
    /// Whether the body is a form. Official clients send forms, with currencies in lower case and
    /// booleans instead of 0 and 1.
    pub(super) is_form: bool,
    /// Whether the dataset is linked to an app, as app mode requires.
    pub(super) is_app_linked: bool,
}

/// A valid request.
#[derive(Debug)]
pub(super) struct CheckedMetaRequest {
    /// Each event's amount.
    pub(super) money: Vec<Option<ReceivedMoney>>,
    pub(super) is_test: bool,
}

pub(super) fn check(
    body: &Value,
    rules: &MetaCheckContext,
) -> Result<CheckedMetaRequest, Violation> {
    let mut violations = Violations::default();
    let root = BodyNode::root(body);
    let mut money = Vec::new();
    if root.object(BODY_FIELDS, &mut violations) {
        if let Some(code) = root.get("test_event_code") {
            code.text(&mut violations);
        }
        if let Some(agent) = root.get("partner_agent") {
            let message = "must have fewer than 23 characters and at least two letters";
            agent.text_matching(is_agent, message, &mut violations);
        }
        if let Some(data) = root.require("data", &mut violations) {
            data.each(EVENTS_MAX, &mut violations, |event, violations| {
                money.push(event::check(&event, rules, violations));
            });
        }
    }
    match violations.into_list().into_iter().next() {
        Some(violation) => Err(violation),
        None => Ok(CheckedMetaRequest {
            money,
            is_test: root.has("test_event_code"),
        }),
    }
}

fn is_agent(text: &str) -> bool {
    let letters = text.chars().filter(|one| one.is_alphabetic()).count();
    text.chars().count() < 23 && letters >= 2
}
