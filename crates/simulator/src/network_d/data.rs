//! `data`: what an event is about. Amounts are integers in minor units.

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

/// `expected` is what the event's type asks for.
pub(super) fn check(
    data: &BodyNode<'_, '_>,
    expected: Option<&str>,
    found: &mut Violations,
) -> Option<ReceivedMoney> {
    let kind = data.get("type").and_then(|one| one.value().as_str());
    let is_object = match kind {
        // Free keys only here.
        Some("custom") => data.any_object(found),
        Some("customer_action") => data.object(&["type", "amount", "currency"], found),
        Some("plan_enrollment") => data.object(
            &["type", "amount", "currency", "contents", "plan_id"],
            found,
        ),
        _ => data.object(&["type", "amount", "currency", "contents"], found),
    };
    if !is_object {
        return None;
    }
    if let Some(node) = data.require("type", found) {
        let text = node.text(found);
        if text.is_some() && expected.is_some() && text != expected {
            node.report(
                ViolationKind::Conflict("does not fit the event's type"),
                found,
            );
        }
    }
    if let Some(plan) = data.get("plan_id") {
        plan.text(found);
    }
    if let Some(contents) = data.get("contents") {
        contents.each(CONTENTS_MAX, found, |one, found| check_content(&one, found));
    }
    money(data, found)
}

fn money(node: &BodyNode<'_, '_>, found: &mut Violations) -> Option<ReceivedMoney> {
    let amount = node.get("amount").and_then(|one| {
        let amount = one.integer(found)?;
        if amount < 0 {
            one.report(ViolationKind::Money, found);
        }
        Some(amount)
    });
    let currency = node
        .get("currency")
        .and_then(|one| one.currency(false, found));
    if node.has("amount") && !node.has("currency") {
        node.report_missing("currency", found);
    }
    Some(ReceivedMoney {
        amount: Number::from(amount?),
        currency: currency?,
    })
}

fn check_content(content: &BodyNode<'_, '_>, found: &mut Violations) {
    if !content.object(CONTENT_FIELDS, found) {
        return;
    }
    for text in CONTENT_TEXTS.iter().filter_map(|one| content.get(one)) {
        text.text(found);
    }
    if let Some(quantity) = content.get("quantity") {
        quantity.integer(found);
    }
    if let Some(variant) = content.get("variant_dict") {
        variant.any_object(found);
    }
    money(content, found);
}
