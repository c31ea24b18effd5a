//! Standard and custom event types.

use tributary_domain::forwarding::Conversion;
use tributary_domain::integration::custom_name::{CUSTOM, custom_name};

/// Standard types with their required data type.
const DATA_TYPES: &[(&str, &str)] = &[
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

/// Types that only happen in apps, even if another source reports them.
const APP_TYPES: [&str; 2] = ["app_installed", "app_opened"];

/// Event type at the network.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenAiEventType {
    pub(super) name: &'static str,
    pub(super) data: &'static str,
    pub(super) custom_name: Option<String>,
}

impl OpenAiEventType {
    /// Returns a conversion's type: a standard type if the mapped name is one, otherwise a custom
    /// event with that name. If the mapping says `custom`, the event's own name is used. `None` if
    /// no valid name can be derived.
    pub(super) fn of(conversion: &Conversion) -> Option<Self> {
        let mapped = conversion.network_event.as_str();
        let standard = DATA_TYPES.iter().find(|(name, _)| *name == mapped);
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

    pub(super) fn is_app_only(&self) -> bool {
        APP_TYPES.contains(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::sdk_event;
    use rstest::rstest;
    use tributary_domain::integration::custom_name::STANDARD_TYPES;

    #[test]
    fn every_standard_type_has_a_data_type() {
        let names: Vec<&str> = DATA_TYPES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, STANDARD_TYPES);
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
    fn maps_event_names_to_types(
        #[case] mapped: &str,
        #[case] name: &str,
        #[case] data: &str,
        #[case] custom_name: Option<&str>,
    ) {
        let kind = OpenAiEventType::of(&sdk_event("search", mapped)).unwrap();
        let found = (kind.name, kind.data, kind.custom_name.as_deref());
        assert_eq!(found, (name, data, custom_name));
    }
}
