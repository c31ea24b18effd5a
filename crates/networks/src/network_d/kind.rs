//! The types of events, and the custom ones.

use tributary_domain::forwarding::Conversion;

/// Characters of a custom event's name.
const NAME_CHARS_MAX: usize = 64;
/// The type of events that have a name of their own.
const CUSTOM: &str = "custom";

/// The standard types, and the type that their data must have.
const STANDARD: &[(&str, &str)] = &[
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
];

/// These happen in an app, whatever reports them.
const OF_APPS: [&str; 2] = ["app_installed", "app_opened"];

/// What an event is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) data: &'static str,
    pub(super) custom_name: Option<String>,
}

impl Kind {
    /// What a conversion is there: a standard type where its mapped name is one; otherwise a custom event of that
    /// name, or where the map says only `custom` of the event's own. Nothing where no name can be made of it.
    pub(super) fn of(conversion: &Conversion) -> Option<Self> {
        let mapped = conversion.network_event.as_str();
        let standard = STANDARD.iter().find(|(name, _)| *name == mapped);
        if let Some((name, data)) = standard {
            return Some(Self {
                name,
                data,
                custom_name: None,
            });
        }
        let wanted = match mapped {
            CUSTOM => &conversion.event.name,
            mapped => mapped,
        };
        Some(Self {
            name: CUSTOM,
            data: CUSTOM,
            custom_name: Some(custom_name(wanted)?),
        })
    }

    pub(super) fn is_of_apps(&self) -> bool {
        OF_APPS.contains(&self.name)
    }
}

/// A name that the network takes: lower case, `_` for what it does not know, beginning and ending with a letter or a
/// digit, not a standard name.
fn custom_name(wanted: &str) -> Option<String> {
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
    let taken = name == CUSTOM || STANDARD.iter().any(|(standard, _)| *standard == name);
    (!name.is_empty() && !taken).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::sdk_event;
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
    fn a_name_has_at_most_64_characters_and_ends_well() {
        let long = format!("{}_{}", "a".repeat(63), "b".repeat(9));
        assert_eq!(custom_name(&long), Some("a".repeat(63)));
    }

    #[rstest]
    #[case("order_created", "order_created", "contents", None)]
    #[case("app_installed", "app_installed", "customer_action", None)]
    #[case(
        "registration_completed",
        "registration_completed",
        "customer_action",
        None
    )]
    #[case(
        "subscription_created",
        "subscription_created",
        "plan_enrollment",
        None
    )]
    #[case("Tutorial", "custom", "custom", Some("tutorial"))]
    #[case("custom", "custom", "custom", Some("search"))]
    fn kinds(
        #[case] mapped: &str,
        #[case] name: &str,
        #[case] data: &str,
        #[case] custom_name: Option<&str>,
    ) {
        let kind = Kind::of(&sdk_event("search", mapped)).unwrap();
        let found = (kind.name, kind.data, kind.custom_name.as_deref());
        assert_eq!(found, (name, data, custom_name));
    }
}
