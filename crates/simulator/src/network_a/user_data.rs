//! Checks `user_data`: the person's identifiers.

use crate::validation::{BodyNode, ViolationKind, Violations};
use serde_json::Value;

/// Maximum number of hashes in a list.
const HASHES_MAX: usize = 100;
const HASH_LISTS: &[&str] = &["em", "ph"];
/// Further hashed fields, single or as a list.
const OTHER_HASHES: &[&str] = &["fn", "ln", "ge", "db", "ct", "st", "zp", "country"];
const APP_ONLY: &[&str] = &["madid", "anon_id"];
const FIELDS: &[&str] = &[
    "em",
    "ph",
    "external_id",
    "client_ip_address",
    "client_user_agent",
    "fbc",
    "fbp",
    "madid",
    "anon_id",
    "fn",
    "ln",
    "ge",
    "db",
    "ct",
    "st",
    "zp",
    "country",
];
/// Combinations that do not identify a person.
const WEAK: &[&[&str]] = &[
    &["ct", "country", "st", "zp", "ge", "client_user_agent"],
    &["db", "client_user_agent"],
    &["fn", "ge"],
    &["ln", "ge"],
];
/// App mode requires one of these fields.
const APP_STRONG: &[&str] = &["madid", "anon_id", "fbc", "em", "ph", "external_id"];

pub(super) fn check(person: &BodyNode<'_, '_>, source: Option<&str>, violations: &mut Violations) {
    if !person.object(FIELDS, violations) {
        return;
    }
    for list in HASH_LISTS.iter().filter_map(|field| person.get(field)) {
        list.each(HASHES_MAX, violations, |one, violations| {
            one.hash(violations)
        });
    }
    for field in OTHER_HASHES {
        match person.get(field) {
            Some(one) if one.value().is_array() => {
                one.each(HASHES_MAX, violations, |one, violations| {
                    one.hash(violations)
                });
            }
            Some(one) => {
                one.hash(violations);
            }
            None => {}
        }
    }
    if let Some(ids) = person.get("external_id") {
        ids.each(HASHES_MAX, violations, |one, violations| {
            // Hashing is only recommended here, but a value that looks like a hash must be valid.
            let is_hash = one.value().as_str().is_some_and(|text| text.len() == 64);
            if is_hash {
                one.hash(violations)
            } else {
                one.text(violations)
            }
        });
    }
    if let Some(ip) = person.get("client_ip_address") {
        ip.ip(violations);
    }
    match person.get("client_user_agent") {
        Some(agent) => {
            agent.text(violations);
        }
        None if source == Some("website") => person.report_missing("client_user_agent", violations),
        None => {}
    }
    for click in ["fbc", "fbp"].into_iter().filter_map(|one| person.get(one)) {
        let message = "must be fb.{index}.{unix milliseconds}.{value}";
        click.text_matching(is_fbc, message, violations);
    }
    for field in APP_ONLY {
        match person.get(field) {
            Some(one) if source != Some("app") => {
                one.report(
                    ViolationKind::Conflict("is only valid with action_source app"),
                    violations,
                );
            }
            Some(one) => {
                one.text(violations);
            }
            None => {}
        }
    }
    if is_weak(person, source) {
        person.report(ViolationKind::Identity, violations);
    }
}

fn is_weak(person: &BodyNode<'_, '_>, source: Option<&str>) -> bool {
    let Value::Object(fields) = person.value() else {
        return true;
    };
    let is_only = |weak: &&[&str]| fields.keys().all(|name| weak.contains(&name.as_str()));
    let lacks = source == Some("app") && !APP_STRONG.iter().any(|one| person.has(one));
    lacks || WEAK.iter().any(is_only)
}

/// Checks a value such as `fb.1.1794561330250.IwAR2kZ8q_AbCd-1`.
fn is_fbc(text: &str) -> bool {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = text.splitn(4, '.');
    let (prefix, index, time, value) = (parts.next(), parts.next(), parts.next(), parts.next());
    let is_value = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.%-".contains(&byte);
        (1..=512).contains(&text.len()) && text.bytes().all(allowed)
    };
    prefix == Some("fb")
        && index.is_some_and(|one| (1..=2).contains(&one.len()) && is_digits(one))
        && time.is_some_and(|one| one.len() == 13 && is_digits(one))
        && value.is_some_and(is_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("fb.1.1794561330250.IwAR2kZ8q_AbCd-1", true)]
    #[case("fb.1.1794561330250.IwAR2kZ8q.AQYBAQIA", true)]
    #[case::seconds("fb.1.1794561330.IwAR2kZ8q", false)]
    #[case("fb.1.1794561330250.", false)]
    #[case("fb.123.1794561330250.x", false)]
    #[case("IwAR2kZ8q_AbCd-1", false)]
    #[case("fb.1.1794561330250.a b", false)]
    fn checks_the_format_of_fbc(#[case] text: &str, #[case] is_good: bool) {
        assert_eq!(is_fbc(text), is_good);
    }
}
