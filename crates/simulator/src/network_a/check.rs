//! What `network_a` asks of a request. The first thing that is wrong refuses it.

use super::event;
use crate::validation::{BodyNode, ReceivedMoney, Violation, Violations};
use serde_json::Value;

const EVENTS_MAX: usize = 1_000;
const BODY_FIELDS: &[&str] = &["data", "test_event_code", "partner_agent"];

/// What the rules depend on besides the body.
#[derive(Debug)]
pub(super) struct MetaCheckContext {
    pub(super) now: i64,
    /// As official clients write: currencies in lower case, booleans for 0 and 1.
    pub(super) is_form: bool,
    /// App mode needs a dataset that is linked to an app.
    pub(super) is_app_linked: bool,
}

/// A request in which nothing is wrong.
#[derive(Debug)]
pub(super) struct CheckedMetaRequest {
    /// Of each event.
    pub(super) money: Vec<Option<ReceivedMoney>>,
    pub(super) is_test: bool,
}

pub(super) fn check(
    body: &Value,
    rules: &MetaCheckContext,
) -> Result<CheckedMetaRequest, Violation> {
    let mut found = Violations::default();
    let root = BodyNode::root(body);
    let mut money = Vec::new();
    if root.object(BODY_FIELDS, &mut found) {
        if let Some(code) = root.get("test_event_code") {
            code.text(&mut found);
        }
        if let Some(agent) = root.get("partner_agent") {
            let words = "must have fewer than 23 characters and at least two letters";
            agent.text_matching(is_agent, words, &mut found);
        }
        if let Some(data) = root.require("data", &mut found) {
            data.each(EVENTS_MAX, &mut found, |event, found| {
                money.push(event::check(&event, rules, found));
            });
        }
    }
    match found.into_list().into_iter().next() {
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
