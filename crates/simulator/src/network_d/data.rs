//! Checks `data`. Amounts are integers in minor units.

use crate::validation::{BodyNode, ReceivedMoney, ViolationKind, Violations};
use serde_json::Number;

const CONTENTS_MAX: usize = 1_000;
const CONTENT_TEXTS: &[&str] = &["id", "group_id", "name", "content_type"];
const CONTENT_FIELDS: &[&str] = &[
    "id",
    "group_id",
    "name",
    "content_type",
    "quantity",
    "amount",
    "currency",
    "variant_dict",
];

/// Checks an event's data; `expected` is the data type for the event's type.
pub(super) fn check(
    data: &BodyNode<'_, '_>,
    expected: Option<&str>,
    violations: &mut Violations,
) -> Option<ReceivedMoney> {
    let kind = data.get("type").and_then(|one| one.value().as_str());
    let is_object = match kind {
        // Only custom data may have free-form keys.
        Some("custom") => data.any_object(violations),
        Some("customer_action") => data.object(&["type", "amount", "currency"], violations),
        Some("plan_enrollment") => data.object(
            &["type", "amount", "currency", "contents", "plan_id"],
            violations,
        ),
        _ => data.object(&["type", "amount", "currency", "contents"], violations),
    };
    if !is_object {
        return None;
    }
    if let Some(node) = data.require("type", violations) {
        let text = node.text(violations);
        if text.is_some() && expected.is_some() && text != expected {
            node.report(
                ViolationKind::Conflict("does not match the event's type"),
                violations,
            );
        }
    }
    if let Some(plan) = data.get("plan_id") {
        plan.text(violations);
    }
    if let Some(contents) = data.get("contents") {
        contents.each(CONTENTS_MAX, violations, |one, violations| {
            check_content(&one, violations);
        });
    }
    money(data, violations)
}

fn money(node: &BodyNode<'_, '_>, violations: &mut Violations) -> Option<ReceivedMoney> {
    let amount = node.get("amount").and_then(|one| {
        let amount = one.integer(violations)?;
        if amount < 0 {
            one.report(ViolationKind::Money, violations);
        }
        Some(amount)
    });
    let currency = node
        .get("currency")
        .and_then(|one| one.currency(false, violations));
    if node.has("amount") && !node.has("currency") {
        node.report_missing("currency", violations);
    }
    Some(ReceivedMoney {
        amount: Number::from(amount?),
        currency: currency?,
    })
}

fn check_content(content: &BodyNode<'_, '_>, violations: &mut Violations) {
    if !content.object(CONTENT_FIELDS, violations) {
        return;
    }
    for text in CONTENT_TEXTS.iter().filter_map(|one| content.get(one)) {
        text.text(violations);
    }
    if let Some(quantity) = content.get("quantity") {
        quantity.integer(violations);
    }
    if let Some(variant) = content.get("variant_dict") {
        variant.any_object(violations);
    }
    money(content, violations);
}
