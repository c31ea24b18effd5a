//! Mapping of events to network events.

use super::Network;
use super::custom_name::sent_name;
use crate::event::name::canonical;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::text::check_length;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of rows.
pub const EVENT_MAPPING_ROWS_MAX: usize = 200;
/// Maximum length of a network's event name.
pub const NETWORK_EVENT_CHARS_MAX: usize = 100;

/// Events that are never forwarded, because they update revenue and are not conversions.
pub const REPORTING_ONLY: &[&str] = &["renewal", "refund", "refund_reversed"];

/// One row: an event and its name at the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingRow {
    /// Event name in Tributary.
    pub event: String,
    /// Event name at the network.
    pub network_event: String,
    /// Whether the row applies. A disabled row only keeps the name.
    pub enabled: bool,
}

/// Returns the default mapping of a network.
pub fn default_mapping(network: Network) -> Vec<MappingRow> {
    let rows: &[(&str, &str)] = match network {
        Network::A | Network::C => &[
            ("install", "Lead"),
            ("purchase", "Purchase"),
            ("sign_up", "CompleteRegistration"),
            ("start_trial", "StartTrial"),
            ("qualified_trial", "StartTrial"),
            ("subscribe", "Subscribe"),
            ("add_to_cart", "AddToCart"),
            ("view_content", "ViewContent"),
        ],
        // Google Ads has conversion actions instead of event names. The names in these rows are
        // keys of `settings.conversionActions`.
        Network::B => &[
            ("install", "install"),
            ("purchase", "purchase"),
            ("sign_up", "sign_up"),
            ("start_trial", "start_trial"),
            ("qualified_trial", "qualified_trial"),
            ("subscribe", "subscribe"),
            ("add_to_cart", "add_to_cart"),
            ("view_content", "view_content"),
        ],
        // The specification lists only `trial_started`. The rows for `purchase` and `sign_up` are
        // the obvious equivalents.
        Network::D => &[
            ("purchase", "order_created"),
            ("sign_up", "registration_completed"),
            ("start_trial", "trial_started"),
        ],
    };
    rows.iter()
        .map(|(event, network_event)| MappingRow {
            event: (*event).to_owned(),
            network_event: (*network_event).to_owned(),
            enabled: true,
        })
        .collect()
}

/// Checks a network's event name.
pub fn network_event_name(text: &str) -> Result<String, Problem> {
    check_length(text, 1, NETWORK_EVENT_CHARS_MAX)?;
    if text.chars().any(char::is_control) {
        return Err(Problem::new(
            FaultCode::InvalidCharacter,
            "Must not contain control characters.",
        ));
    }
    Ok(text.to_owned())
}

/// Normalises and checks the rows in a mapping. Standard names match in any case, as on incoming
/// events. Rejects rows that can never apply. `rows` contains `None` for each row that is already
/// invalid, so that the field paths of the other rows have the right index.
pub fn check_mapping(network: Network, rows: &mut [Option<MappingRow>], faults: &mut Faults) {
    if rows.len() > EVENT_MAPPING_ROWS_MAX {
        let message = format!("Must have at most {EVENT_MAPPING_ROWS_MAX} rows.");
        faults.add("eventMapping", Problem::new(FaultCode::TooLong, message));
        return;
    }
    let mut events = BTreeSet::new();
    let mut sent_names = BTreeMap::new();
    for (index, row) in rows.iter_mut().enumerate() {
        let Some(row) = row else { continue };
        row.event = canonical(&row.event).0;
        let row = &*row;
        let path = |name: &str| format!("eventMapping[{index}].{name}");
        let is_reporting_only = |name: &&str| row.event.eq_ignore_ascii_case(name);
        if REPORTING_ONLY.iter().any(is_reporting_only) {
            let message = "Renewals and refunds are never forwarded. Remove this row.";
            faults.add(path("event"), Problem::new(FaultCode::NotAllowed, message));
        } else if !events.insert(row.event.as_str()) {
            let message = "Duplicate event. Standard names are not case-sensitive.";
            faults.add(path("event"), Problem::new(FaultCode::Duplicate, message));
        }
        if network != Network::D {
            continue;
        }
        let Some(sent) = faults.check(&path("networkEvent"), sent_name(row)) else {
            continue;
        };
        let mapped = row.network_event.as_str();
        if *sent_names.entry(sent).or_insert(mapped) != mapped {
            let message = "Another row already sends events under this name. Choose another name.";
            let problem = Problem::new(FaultCode::Duplicate, message);
            faults.add(path("networkEvent"), problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// The default mapping, row by row as in the specification.
    #[rstest]
    #[case("install", "Lead", "install", "Lead")]
    #[case("purchase", "Purchase", "purchase", "Purchase")]
    #[case("sign_up", "CompleteRegistration", "sign_up", "CompleteRegistration")]
    #[case("start_trial", "StartTrial", "start_trial", "StartTrial")]
    #[case("qualified_trial", "StartTrial", "qualified_trial", "StartTrial")]
    #[case("subscribe", "Subscribe", "subscribe", "Subscribe")]
    #[case("add_to_cart", "AddToCart", "add_to_cart", "AddToCart")]
    #[case("view_content", "ViewContent", "view_content", "ViewContent")]
    fn the_default_mapping_of_the_specification(
        #[case] event: &str,
        #[case] a: &str,
        #[case] b: &str,
        #[case] c: &str,
    ) {
        for (network, expected) in [(Network::A, a), (Network::B, b), (Network::C, c)] {
            let rows = default_mapping(network);
            assert_eq!(rows.len(), 8);
            let row = rows.iter().find(|row| row.event == event).unwrap();
            assert_eq!(row.network_event, expected);
        }
    }

    #[test]
    fn web_start_trial_is_trial_started_at_network_d() {
        let rows = default_mapping(Network::D);
        let row = rows.iter().find(|row| row.event == "start_trial").unwrap();
        assert_eq!(row.network_event, "trial_started");
    }

    #[expect(clippy::unnecessary_wraps, reason = "rows may have gaps")]
    fn named(event: &str, network_event: &str) -> Option<MappingRow> {
        Some(MappingRow {
            event: event.to_owned(),
            network_event: network_event.to_owned(),
            enabled: true,
        })
    }

    fn row(event: &str) -> Option<MappingRow> {
        named(event, "x")
    }

    #[rstest]
    #[case::custom_names(vec![row("boss_defeated"), row("purchase")], None)]
    #[case::twice(vec![row("a"), None, row("a")], Some(("eventMapping[2].event", FaultCode::Duplicate)))]
    #[case::twice_in_another_case(
        vec![row("purchase"), row("PURCHASE")],
        Some(("eventMapping[1].event", FaultCode::Duplicate))
    )]
    #[case::custom_names_keep_their_case(vec![row("Boss"), row("boss")], None)]
    #[case::renewal(vec![row("renewal")], Some(("eventMapping[0].event", FaultCode::NotAllowed)))]
    #[case::refund(vec![row("REFUND")], Some(("eventMapping[0].event", FaultCode::NotAllowed)))]
    #[case::too_many(vec![None; 201], Some(("eventMapping", FaultCode::TooLong)))]
    fn mappings(
        #[case] rows: Vec<Option<MappingRow>>,
        #[case] expected: Option<(&str, FaultCode)>,
    ) {
        for network in Network::ALL {
            assert_eq!(first_fault(network, rows.clone()), own(expected));
        }
    }

    #[rstest]
    #[case::standard(vec![named("purchase", "order_created")], None)]
    #[case::one_name_for_two_events(vec![named("a", "boss"), named("b", "boss")], None)]
    #[case::changed_by_normalisation(
        vec![named("a", "Boss Defeated")],
        Some(("eventMapping[0].networkEvent", FaultCode::InvalidFormat))
    )]
    #[case::collides_with_a_custom_row(
        vec![named("a", "boss"), named("boss", "custom")],
        Some(("eventMapping[1].networkEvent", FaultCode::Duplicate))
    )]
    fn mappings_of_network_d(
        #[case] rows: Vec<Option<MappingRow>>,
        #[case] expected: Option<(&str, FaultCode)>,
    ) {
        assert_eq!(first_fault(Network::D, rows.clone()), own(expected));
        assert_eq!(first_fault(Network::A, rows), None);
    }

    #[test]
    fn a_row_is_stored_under_the_standard_name() {
        let mut rows = vec![row("PURCHASE"), row("Boss Defeated")];
        check_mapping(Network::A, &mut rows, &mut Faults::new());
        assert_eq!(rows, [row("purchase"), row("Boss Defeated")]);
    }

    #[test]
    fn the_default_mappings_are_valid() {
        for network in Network::ALL {
            let rows = default_mapping(network).into_iter().map(Some).collect();
            assert_eq!(first_fault(network, rows), None);
        }
    }

    fn own(expected: Option<(&str, FaultCode)>) -> Option<(String, FaultCode)> {
        expected.map(|(field, code)| (field.to_owned(), code))
    }

    fn first_fault(
        network: Network,
        mut rows: Vec<Option<MappingRow>>,
    ) -> Option<(String, FaultCode)> {
        let mut faults = Faults::new();
        check_mapping(network, &mut rows, &mut faults);
        let first = faults.iter().next();
        first.map(|fault| (fault.field.clone(), fault.code))
    }
}
