//! Names of custom events at OpenAI Ads (`network_d`).
//!
//! The network has a fixed set of event types. Any other event is sent as type `custom` with a name
//! of restricted characters.

use super::MappingRow;
use crate::vocabulary::fault::{FaultCode, Problem};

/// Maximum length of a custom event's name.
const NAME_CHARS_MAX: usize = 64;

/// The type of custom events. As a `networkEvent` it means that the event keeps its recorded name.
pub const CUSTOM: &str = "custom";

/// The network's event types, without `custom`.
pub const STANDARD_TYPES: &[&str] = &[
    "page_viewed",
    "contents_viewed",
    "items_added",
    "checkout_started",
    "order_created",
    "app_installed",
    "app_opened",
    "lead_created",
    "registration_completed",
    "appointment_scheduled",
    "subscription_created",
    "trial_started",
];

/// Normalises a name for the network: lower case, `_` for other characters, a letter or digit at
/// both ends. Returns `None` if nothing is left or the result is a standard type.
pub fn custom_name(wanted: &str) -> Option<String> {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let written: String = wanted
        .chars()
        .map(|c| {
            if known(c) {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    let outer = |c: char| matches!(c, '_' | '-');
    let from_start = written.trim_start_matches(outer);
    let cut = &from_start[..from_start.len().min(NAME_CHARS_MAX)];
    let name = cut.trim_end_matches(outer);
    let taken = name == CUSTOM || STANDARD_TYPES.contains(&name);
    (!name.is_empty() && !taken).then(|| name.to_owned())
}

/// Returns the name that the network receives for a row. Rejects a name that normalisation would
/// change: the operator would not find the name at the network, and two names could become the
/// same.
pub(super) fn sent_name(row: &MappingRow) -> Result<&str, Problem> {
    let mapped = row.network_event.as_str();
    if STANDARD_TYPES.contains(&mapped) {
        return Ok(mapped);
    }
    let wanted = if mapped == CUSTOM { &row.event } else { mapped };
    if custom_name(wanted).as_deref() == Some(wanted) {
        return Ok(wanted);
    }
    let rule = format!(
        "lower-case letters, digits, _ and -, a letter or digit at both ends, at most \
         {NAME_CHARS_MAX} characters, not a variant of a standard type"
    );
    let message = if mapped == CUSTOM {
        format!(
            "`custom` keeps the event's name, which OpenAI Ads (network_d) does not accept. Enter \
             a name: {rule}."
        )
    } else {
        format!("OpenAI Ads (network_d) accepts a standard type or a custom name: {rule}.")
    };
    Err(Problem::new(FaultCode::InvalidFormat, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("search", Some("search"))]
    #[case("Boss Defeated", Some("boss_defeated"))]
    #[case("level-2_done", Some("level-2_done"))]
    #[case("_private_", Some("private"))]
    #[case("größe", Some("gr__e"))]
    #[case::an_alias_of_a_standard_name("Order_Created", None)]
    #[case::only_marks("_-_", None)]
    #[case::no_letters("日本", None)]
    #[case::empty("", None)]
    fn custom_names(#[case] wanted: &str, #[case] expected: Option<&str>) {
        assert_eq!(custom_name(wanted).as_deref(), expected);
    }

    #[test]
    fn a_name_is_cut_to_64_characters_and_trimmed() {
        let long = format!("{}_{}", "a".repeat(63), "b".repeat(9));
        assert_eq!(custom_name(&long), Some("a".repeat(63)));
    }

    #[rstest]
    #[case::standard("purchase", "order_created", Some("order_created"))]
    #[case::custom("boss", "boss_defeated", Some("boss_defeated"))]
    #[case::own_name("boss", "custom", Some("boss"))]
    #[case::capitals("boss", "Boss", None)]
    #[case::spaces("boss", "boss defeated", None)]
    #[case::marks_at_the_ends("boss", "_boss", None)]
    #[case::nothing_left("boss", "日本", None)]
    #[case::standard_in_capitals("purchase", "Order_Created", None)]
    #[case::own_name_would_change("Boss", "custom", None)]
    #[case::own_name_is_a_standard_type("order_created", "custom", None)]
    fn sent_names(#[case] event: &str, #[case] network_event: &str, #[case] sent: Option<&str>) {
        let row = MappingRow {
            event: event.to_owned(),
            network_event: network_event.to_owned(),
            enabled: true,
        };
        assert_eq!(sent_name(&row).ok(), sent);
    }

    #[test]
    fn accepts_the_longest_name_and_rejects_a_longer_one() {
        let row = |chars: usize| MappingRow {
            event: "boss".to_owned(),
            network_event: "b".repeat(chars),
            enabled: true,
        };
        assert!(sent_name(&row(NAME_CHARS_MAX)).is_ok());
        assert!(sent_name(&row(NAME_CHARS_MAX + 1)).is_err());
    }
}
