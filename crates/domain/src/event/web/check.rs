//! What the fields of a post must be, by its kind.

use super::WebEventKind;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::money::Amount;

/// Notes what is wrong between the kind of a post and its money and parent. Fields that were at fault
/// themselves are given as absent and said to be there (`has_…`), so that nothing is said twice.
pub fn check(kind: WebEventKind, given: &WebEventFields, faults: &mut Faults) {
    let money = match kind {
        WebEventKind::Purchase | WebEventKind::Renewal => AmountRule::Positive,
        WebEventKind::Refund => AmountRule::Negative,
        WebEventKind::CheckoutStarted | WebEventKind::StartTrial => AmountRule::NotNegative,
        WebEventKind::SignUp => AmountRule::Nothing,
    };
    match given.revenue {
        Some(amount) => {
            if let Some(problem) = money.problem(amount) {
                faults.add("revenue", problem);
            }
        }
        None if !given.has_revenue && money != AmountRule::Nothing => {
            let message = format!("Is required for {}.", kind.as_str());
            faults.add("revenue", Problem::new(FaultCode::Required, message));
        }
        None => {}
    }
    if !given.has_currency && money != AmountRule::Nothing {
        let message = format!("Is required for {}.", kind.as_str());
        faults.add("currency", Problem::new(FaultCode::Required, message));
    }
    match (kind.has_parent(), given.has_parent) {
        (true, false) => {
            let message = format!("Is required for {}.", kind.as_str());
            faults.add(
                "originalTransactionId",
                Problem::new(FaultCode::Required, message),
            );
        }
        (false, true) => {
            let message = format!("Has no place in {}: leave it out.", kind.as_str());
            faults.add(
                "originalTransactionId",
                Problem::new(FaultCode::NotAllowed, message),
            );
        }
        _ => {}
    }
}

/// What of a post's money and parent was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebEventFields {
    /// The amount, where it could be read.
    pub revenue: Option<Amount>,
    /// Whether there was one at all.
    pub has_revenue: bool,
    /// Whether there was a currency at all.
    pub has_currency: bool,
    /// Whether there was a parent at all.
    pub has_parent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AmountRule {
    Positive,
    Negative,
    NotNegative,
    Nothing,
}

impl AmountRule {
    fn problem(self, amount: Amount) -> Option<Problem> {
        let (fits, code, message) = match self {
            Self::Positive => (
                amount > Amount::ZERO,
                FaultCode::MustBePositive,
                "Must be more than 0: only settled payments are sent.",
            ),
            Self::Negative => (
                amount < Amount::ZERO,
                FaultCode::MustBeNegative,
                "Must be less than 0: a refund gives money back.",
            ),
            Self::NotNegative => (
                amount >= Amount::ZERO,
                FaultCode::MustNotBeNegative,
                "Must be 0 or more.",
            ),
            Self::Nothing => (
                amount == Amount::ZERO,
                FaultCode::MustBeZero,
                "Must be absent or 0.",
            ),
        };
        (!fits).then(|| Problem::new(code, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::purchase(WebEventKind::Purchase, Some("1"), true, false, &[])]
    #[case::purchase_of_nothing(WebEventKind::Purchase, Some("0"), true, false, &["revenue must_be_positive"])]
    #[case::purchase_without_money(WebEventKind::Purchase, None, false, false, &["revenue required", "currency required"])]
    #[case::purchase_with_a_parent(WebEventKind::Purchase, Some("1"), true, true, &["originalTransactionId not_allowed"])]
    #[case::renewal(WebEventKind::Renewal, Some("1"), true, true, &[])]
    #[case::renewal_of_nothing_known(WebEventKind::Renewal, Some("1"), true, false, &["originalTransactionId required"])]
    #[case::renewal_less_than_nothing(WebEventKind::Renewal, Some("-1"), true, true, &["revenue must_be_positive"])]
    #[case::refund(WebEventKind::Refund, Some("-1"), true, true, &[])]
    #[case::refund_of_more_than_nothing(WebEventKind::Refund, Some("1"), true, true, &["revenue must_be_negative"])]
    #[case::refund_of_nothing(WebEventKind::Refund, Some("0"), true, true, &["revenue must_be_negative"])]
    #[case::refund_of_no_payment(WebEventKind::Refund, Some("-1"), true, false, &["originalTransactionId required"])]
    #[case::refund_without_currency(WebEventKind::Refund, Some("-1"), false, true, &["currency required"])]
    #[case::sign_up(WebEventKind::SignUp, None, false, false, &[])]
    #[case::sign_up_with_zero(WebEventKind::SignUp, Some("0"), false, false, &[])]
    #[case::sign_up_with_zero_dollars(WebEventKind::SignUp, Some("0"), true, false, &[])]
    #[case::sign_up_with_money(WebEventKind::SignUp, Some("1"), true, false, &["revenue must_be_zero"])]
    #[case::checkout(WebEventKind::CheckoutStarted, Some("9.99"), true, false, &[])]
    #[case::checkout_of_nothing(WebEventKind::CheckoutStarted, Some("0"), true, false, &[])]
    #[case::checkout_less_than_nothing(WebEventKind::CheckoutStarted, Some("-1"), true, false, &["revenue must_not_be_negative"])]
    #[case::checkout_without_price(WebEventKind::CheckoutStarted, None, true, false, &["revenue required"])]
    #[case::trial(WebEventKind::StartTrial, Some("9.99"), true, false, &[])]
    #[case::trial_without_currency(WebEventKind::StartTrial, Some("9.99"), false, false, &["currency required"])]
    #[case::trial_with_a_parent(WebEventKind::StartTrial, Some("1"), true, true, &["originalTransactionId not_allowed"])]
    fn fields_by_kind(
        #[case] kind: WebEventKind,
        #[case] revenue: Option<&str>,
        #[case] has_currency: bool,
        #[case] has_parent: bool,
        #[case] expected: &[&str],
    ) {
        let given = WebEventFields {
            revenue: revenue.map(|text| Amount::parse(text).unwrap()),
            has_revenue: revenue.is_some(),
            has_currency,
            has_parent,
        };
        let mut faults = Faults::new();
        check(kind, &given, &mut faults);
        let found: Vec<String> = faults
            .iter()
            .map(|fault| format!("{} {}", fault.field, fault.code.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_field_that_is_at_fault_itself_is_not_missed_as_well() {
        let given = WebEventFields {
            revenue: None,
            has_revenue: true,
            has_currency: true,
            has_parent: false,
        };
        let mut faults = Faults::new();
        check(WebEventKind::Purchase, &given, &mut faults);
        assert!(faults.is_empty());
    }
}
