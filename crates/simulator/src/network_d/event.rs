//! Checks an event for `network_d`.

use super::check::AcceptedOpenAiEvent;
use super::{data, user};
use crate::clock::{DAY, MINUTE};
use crate::validation::{BodyNode, ViolationKind, Violations};

const AGE_MAX: i64 = 7 * DAY;
const LEAD_MAX: i64 = 10 * MINUTE;
const FIELDS: &[&str] = &[
    "id",
    "type",
    "timestamp_ms",
    "action_source",
    "source_url",
    "oppref",
    "custom_event_name",
    "opt_out",
    "user",
    "data",
];
const SOURCES: &[&str] = &[
    "web",
    "mobile_app",
    "offline",
    "physical_store",
    "phone_call",
    "email",
    "other",
];
/// Event types with their data types.
pub(super) const TYPES: &[(&str, &str)] = &[
    ("page_viewed", "contents"),
    ("contents_viewed", "contents"),
    ("items_added", "contents"),
    ("checkout_started", "contents"),
    ("order_created", "contents"),
    ("app_installed", "customer_action"),
    ("app_opened", "customer_action"),
    ("lead_created", "customer_action"),
    ("registration_completed", "customer_action"),
    ("appointment_scheduled", "customer_action"),
    ("subscription_created", "plan_enrollment"),
    ("trial_started", "plan_enrollment"),
    ("custom", "custom"),
];
/// Types that only apps may send.
const APP_TYPES: &[&str] = &["app_installed", "app_opened"];

pub(super) fn check(
    event: &BodyNode<'_, '_>,
    now: i64,
    violations: &mut Violations,
) -> Option<AcceptedOpenAiEvent> {
    if !event.object(FIELDS, violations) {
        return None;
    }
    if let Some(id) = event.require("id", violations) {
        id.text(violations);
    }
    if let Some(time) = event.require("timestamp_ms", violations) {
        check_time(&time, now, violations);
    }
    let kind = event.require("type", violations).and_then(|one| {
        let text = one.text(violations)?;
        let known = TYPES.iter().find(|(name, _)| *name == text);
        if known.is_none() {
            one.report(ViolationKind::Choice, violations);
        }
        known
    });
    check_source(event, kind.map(|(name, _)| *name), violations);
    let custom_name = check_custom_name(event, kind.map(|(name, _)| *name), violations);
    if let Some(flag) = event.get("opt_out") {
        flag.flag(violations);
    }
    if let Some(click) = event.get("oppref") {
        click.text(violations);
    }
    let is_known = event
        .get("user")
        .is_some_and(|one| user::check(&one, violations));
    if !is_known && !event.has("oppref") {
        event.report_at("user", ViolationKind::Identity, violations);
    }
    let data = event.require("data", violations);
    let money = data.and_then(|one| data::check(&one, kind.map(|(_, data)| *data), violations));
    let (name, _) = kind?;
    Some(AcceptedOpenAiEvent {
        name: custom_name.unwrap_or_else(|| (*name).to_owned()),
        money,
    })
}

fn check_time(time: &BodyNode<'_, '_>, now: i64, violations: &mut Violations) {
    let Some(at) = time.integer(violations) else {
        return;
    };
    if at < now - AGE_MAX {
        time.report(ViolationKind::TooOld, violations);
    } else if at > now + LEAD_MAX {
        time.report(ViolationKind::TooNew, violations);
    }
}

fn check_source(event: &BodyNode<'_, '_>, kind: Option<&str>, violations: &mut Violations) {
    let node = event.require("action_source", violations);
    let source = node.and_then(|one| one.choice(SOURCES, violations));
    if kind.is_some_and(|kind| APP_TYPES.contains(&kind))
        && source.is_some_and(|one| one != "mobile_app")
    {
        let message = "must be mobile_app for this type";
        event.report_at(
            "action_source",
            ViolationKind::Conflict(message),
            violations,
        );
    }
    match event.get("source_url") {
        Some(url) => url.url(violations),
        None if source == Some("web") => event.report_missing("source_url", violations),
        None => {}
    }
}

fn check_custom_name(
    event: &BodyNode<'_, '_>,
    kind: Option<&str>,
    violations: &mut Violations,
) -> Option<String> {
    let is_custom = kind == Some("custom");
    let Some(name) = event.get("custom_event_name") else {
        if is_custom {
            event.report_missing("custom_event_name", violations);
        }
        return None;
    };
    if kind.is_some() && !is_custom {
        name.report(
            ViolationKind::Conflict("is only valid with type custom"),
            violations,
        );
    }
    let message = "must be 1 to 64 letters, digits, underscores or hyphens, starting and ending \
                   with a letter or digit, and not a standard name";
    name.text_matching(is_custom_name, message, violations)
        .map(str::to_lowercase)
}

fn is_custom_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    (1..=64).contains(&text.len())
        && text.bytes().all(allowed)
        && is_end(bytes.first())
        && is_end(bytes.last())
        && !TYPES
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("tutorial_complete", true)]
    #[case("a", true)]
    #[case("_a", false)]
    #[case("a-", false)]
    #[case("a b", false)]
    #[case("Order_Created", false)]
    fn checks_custom_names(#[case] name: &str, #[case] is_good: bool) {
        assert_eq!(is_custom_name(name), is_good);
    }
}
