//! Event names. Any string is allowed; some have a defined meaning.

use super::EventSource;
use crate::integration::REPORTING_ONLY;
use crate::ledger::MoneyKind;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::text::parse_event_name;

/// Standard event names.
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

/// The event that the service records at a device's first `configure`.
pub const INSTALL: &str = "install";

/// Events whose amount is an expected future payment. Such an amount does not count as revenue.
const PREDICTED: &[&str] = &["checkout_started", "start_trial"];

/// Events whose amount is a payment.
const INCOME: &[&str] = &["purchase", "subscribe", "renewal"];

/// Maximum number of custom events that an app may count as income.
pub const REVENUE_EVENTS_MAX: usize = 50;

/// Classifies the amount on an event. `revenue_events` are the custom events that the app counts as
/// income. Billing providers and websites report renewals and refunds, so SDK amounts under those
/// names are not income.
pub fn money_kind(source: EventSource, name: &str, revenue_events: &[String]) -> MoneyKind {
    let reported_elsewhere = source == EventSource::Sdk && REPORTING_ONLY.contains(&name);
    let is_income = INCOME.contains(&name) || revenue_events.iter().any(|one| one == name);
    if is_predicted(name) {
        MoneyKind::Predicted
    } else if is_income && !reported_elsewhere {
        MoneyKind::Income
    } else {
        MoneyKind::NotIncome
    }
}

/// Parses an entry of an app's `revenueEvents`. Rejects names whose amounts are never income.
pub fn revenue_event(text: &str) -> Result<String, Problem> {
    let name = parse_event_name(text)?;
    let lower = name.to_ascii_lowercase();
    let known = [STANDARD_NAMES, PREDICTED, REPORTING_ONLY].concat();
    if known.contains(&lower.as_str()) && !matches!(lower.as_str(), "purchase" | "subscribe") {
        let message = "Must be a custom event. SDK amounts on renewal, refund and standard events \
                       other than purchase and subscribe never count as income.";
        return Err(Problem::new(FaultCode::NotAllowed, message));
    }
    Ok(canonical(&name).0)
}

/// Returns the canonical name and, if it differs, the sender's spelling. Standard names match in
/// any case, because some clients send them in capitals.
pub fn canonical(name: &str) -> (String, Option<String>) {
    let standard = STANDARD_NAMES
        .iter()
        .find(|standard| name.eq_ignore_ascii_case(standard));
    match standard {
        Some(standard) if **standard != *name => ((*standard).to_owned(), Some(name.to_owned())),
        _ => (name.to_owned(), None),
    }
}

/// Returns whether an event with this name has a predicted amount.
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
    fn canonical_names(#[case] sent: &str, #[case] name: &str, #[case] original: Option<&str>) {
        assert_eq!(
            canonical(sent),
            (name.to_owned(), original.map(str::to_owned))
        );
    }

    #[rstest]
    #[case::purchase(EventSource::Sdk, "purchase", MoneyKind::Income)]
    #[case::subscribe(EventSource::Sdk, "subscribe", MoneyKind::Income)]
    #[case::listed(EventSource::Sdk, "coins", MoneyKind::Income)]
    #[case::not_listed(EventSource::Sdk, "boss_defeated", MoneyKind::NotIncome)]
    #[case::another_case(EventSource::Sdk, "Coins", MoneyKind::NotIncome)]
    #[case::cart(EventSource::Sdk, "add_to_cart", MoneyKind::NotIncome)]
    #[case::trial(EventSource::Sdk, "start_trial", MoneyKind::Predicted)]
    #[case::renewal_from_the_sdk(EventSource::Sdk, "renewal", MoneyKind::NotIncome)]
    #[case::refund_from_the_sdk(EventSource::Sdk, "refund", MoneyKind::NotIncome)]
    #[case::renewal_from_a_website(EventSource::Web, "renewal", MoneyKind::Income)]
    #[case::checkout_from_a_website(EventSource::Web, "checkout_started", MoneyKind::Predicted)]
    fn amounts_are_classified_by_name(
        #[case] source: EventSource,
        #[case] name: &str,
        #[case] expected: MoneyKind,
    ) {
        let listed = ["coins".to_owned()];
        assert_eq!(money_kind(source, name, &listed), expected);
    }

    #[rstest]
    #[case::custom("coins", Ok("coins"))]
    #[case::custom_in_capitals("Coins Bought", Ok("Coins Bought"))]
    #[case::income_anyway("PURCHASE", Ok("purchase"))]
    #[case::not_income("add_to_cart", Err(FaultCode::NotAllowed))]
    #[case::not_income_in_capitals("Add_To_Cart", Err(FaultCode::NotAllowed))]
    #[case::predicted("checkout_started", Err(FaultCode::NotAllowed))]
    #[case::refund("refund", Err(FaultCode::NotAllowed))]
    #[case::renewal("RENEWAL", Err(FaultCode::NotAllowed))]
    #[case::empty("", Err(FaultCode::TooShort))]
    fn revenue_event_names_are_checked(
        #[case] text: &str,
        #[case] expected: Result<&str, FaultCode>,
    ) {
        let read = revenue_event(text).map_err(|problem| problem.code);
        assert_eq!(read, expected.map(str::to_owned));
    }

    #[test]
    fn unpaid_prices_are_predicted() {
        assert!(is_predicted("start_trial") && is_predicted("checkout_started"));
        assert!(!is_predicted("purchase") && !is_predicted("qualified_trial"));
    }
}
