//! Which event becomes what at a network.

use super::Network;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::text::within;

/// Rows of a mapping, at most.
pub const EVENT_MAPPING_ROWS_MAX: usize = 200;
/// Characters of a network's event name.
const NETWORK_EVENT_CHARS_MAX: usize = 100;

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
    within(text, 1, NETWORK_EVENT_CHARS_MAX)?;
    if text.chars().any(char::is_control) {
        return Err(Problem::new(
            FaultCode::InvalidCharacter,
            "Must have no control characters.",
        ));
    }
    Ok(text.to_owned())
}

/// What must hold between the rows of a mapping. `rows` keeps its gaps where a row was at fault itself,
/// so that the paths of the others are right.
pub fn check_mapping(rows: &[Option<MappingRow>], faults: &mut Faults) {
    if rows.len() > EVENT_MAPPING_ROWS_MAX {
        let message = format!("Must have at most {EVENT_MAPPING_ROWS_MAX} rows.");
        faults.add("eventMapping", Problem::new(FaultCode::TooLong, message));
        return;
    }
    let mut seen = std::collections::BTreeSet::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(row) = row else { continue };
        let field = format!("eventMapping[{index}].event");
        if REPORTING_ONLY.contains(&row.event.as_str()) {
            let message = "Renewals and refunds update revenue reporting and are never forwarded.";
            faults.add(field, Problem::new(FaultCode::NotAllowed, message));
        } else if !seen.insert(row.event.as_str()) {
            let message = "Each event may stand in the mapping once.";
            faults.add(field, Problem::new(FaultCode::Duplicate, message));
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

    fn row(event: &str) -> MappingRow {
        MappingRow {
            event: event.to_owned(),
            network_event: "X".to_owned(),
            enabled: true,
        }
    }

    #[rstest]
    #[case::custom_names(vec![Some(row("boss_defeated")), Some(row("purchase"))], None)]
    #[case::twice(vec![Some(row("a")), None, Some(row("a"))], Some(("eventMapping[2].event", FaultCode::Duplicate)))]
    #[case::renewal(vec![Some(row("renewal"))], Some(("eventMapping[0].event", FaultCode::NotAllowed)))]
    #[case::refund(vec![Some(row("refund"))], Some(("eventMapping[0].event", FaultCode::NotAllowed)))]
    #[case::too_many(vec![None; 201], Some(("eventMapping", FaultCode::TooLong)))]
    fn mappings(
        #[case] rows: Vec<Option<MappingRow>>,
        #[case] expected: Option<(&str, FaultCode)>,
    ) {
        let mut faults = Faults::new();
        check_mapping(&rows, &mut faults);
        let found = faults
            .iter()
            .next()
            .map(|fault| (fault.field.as_str(), fault.code));
        assert_eq!(found, expected);
    }
}
