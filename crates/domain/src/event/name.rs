//! Names of events: any string, some of which have a meaning.

/// The names of the specification, and those that the ledger adds.
pub const STANDARD_NAMES: &[&str] = &[
    "install",
    "sign_up",
    "start_trial",
    "subscribe",
    "purchase",
    "add_to_cart",
    "initiate_checkout",
    "search",
    "view_content",
    "tutorial_complete",
    "level_complete",
    "qualified_trial",
];

/// Recorded by the service itself, at the first `configure`.
pub const INSTALL: &str = "install";

/// Amounts of these are what somebody may pay one day. They count zero.
const PREDICTED: &[&str] = &["checkout_started", "start_trial"];

/// A name as it is recorded. Some clients send standard names in capitals: these are the standard names, and
/// the spelling that was sent is kept beside.
pub fn canonical(name: &str) -> (String, Option<String>) {
    let standard = STANDARD_NAMES
        .iter()
        .find(|standard| name.eq_ignore_ascii_case(standard));
    match standard {
        Some(standard) if **standard != *name => ((*standard).to_owned(), Some(name.to_owned())),
        _ => (name.to_owned(), None),
    }
}

/// Whether the amount of an event of this name is a prediction.
pub fn is_predicted(name: &str) -> bool {
    PREDICTED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::standard("purchase", "purchase", None)]
    #[case::standard_in_capitals("SIGN_UP", "sign_up", Some("SIGN_UP"))]
    #[case::custom("boss_defeated", "boss_defeated", None)]
    #[case::custom_in_capitals("Boss Defeated", "Boss Defeated", None)]
    #[case::beginning_with_an_underscore("_mine", "_mine", None)]
    fn names(#[case] sent: &str, #[case] name: &str, #[case] original: Option<&str>) {
        assert_eq!(
            canonical(sent),
            (name.to_owned(), original.map(str::to_owned))
        );
    }

    #[test]
    fn a_price_that_nobody_paid_yet_is_a_prediction() {
        assert!(is_predicted("start_trial") && is_predicted("checkout_started"));
        assert!(!is_predicted("purchase") && !is_predicted("qualified_trial"));
    }
}
