//! Which event becomes what at a network.

use super::Network;
use super::custom_name::sent_name;
use crate::event::name::canonical;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::text::check_length;
use std::collections::{BTreeMap, BTreeSet};

/// Rows of a mapping, at most.
pub const EVENT_MAPPING_ROWS_MAX: usize = 200;
/// Characters of a network's event name.
pub const NETWORK_EVENT_CHARS_MAX: usize = 100;

/// Never forwarded, from any source: these update revenue and are no new acquisition.
pub const REPORTING_ONLY: &[&str] = &["renewal", "refund", "refund_reversed"];

/// One row: an event of the service and what the network calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingRow {
    /// The event's name in the service.
    pub event: String,
    /// The event's name at the network.
    pub network_event: String,
    /// A row that is off is as good as absent; it only remembers the name.
    pub enabled: bool,
}

/// The forwarding map of the specification.
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
        // This network knows conversion actions, not names: the names here are the keys of
        // `settings.conversionActions`.
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
        // The specification names trial_started alone; the other two are what every advertiser means.
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

/// Checks a name that a network will see.
pub fn network_event_name(text: &str) -> Result<String, Problem> {
    check_length(text, 1, NETWORK_EVENT_CHARS_MAX)?;
    if text.chars().any(char::is_control) {
        return Err(Problem::new(
            FaultCode::InvalidCharacter,
            "Must have no control characters.",
        ));
    }
    Ok(text.to_owned())
}

/// Normalises the rows of a mapping and checks them together. Standard names match without regard to case, as
/// they do on incoming events. A row that can never apply is refused. `rows` keeps a gap for each row that was
/// already at fault, so that the paths of the others are right.
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
            let message = "Renewals and refunds update revenue reporting and are never forwarded.";
            faults.add(path("event"), Problem::new(FaultCode::NotAllowed, message));
        } else if !events.insert(row.event.as_str()) {
            let message = "Each event may be mapped once. Standard names ignore case.";
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
            let message = "Another row sends its events under the same name.";
            let problem = Problem::new(FaultCode::Duplicate, message);
            faults.add(path("networkEvent"), problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// The forwarding map, row by row, as the specification prints it.
    #[rstest]
    #[case("install", "Lead", "install", "Lead")]
    #[case("purchase", "Purchase", "purchase", "Purchase")]
    #[case("sign_up", "CompleteRegistration", "sign_up", "CompleteRegistration")]
    #[case("start_trial", "StartTrial", "start_trial", "StartTrial")]
    #[case("qualified_trial", "StartTrial", "qualified_trial", "StartTrial")]
    #[case("subscribe", "Subscribe", "subscribe", "Subscribe")]
    #[case("add_to_cart", "AddToCart", "add_to_cart", "AddToCart")]
    #[case("view_content", "ViewContent", "view_content", "ViewContent")]
    fn the_forwarding_map(#[case] event: &str, #[case] a: &str, #[case] b: &str, #[case] c: &str) {
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

    #[expect(clippy::unnecessary_wraps, reason = "rows of a mapping have gaps")]
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
    #[case::twice_but_for_case(
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
    #[case::changed_on_the_way(
        vec![named("a", "Boss Defeated")],
        Some(("eventMapping[0].networkEvent", FaultCode::InvalidFormat))
    )]
    #[case::collides_with_an_event_that_keeps_its_name(
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
    fn the_default_mappings_are_without_fault() {
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
