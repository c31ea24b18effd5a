//! Checks the fields of a web event against its kind.

use super::WebEventKind;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::money::Amount;

/// Adds a fault for each amount, currency or parent that does not fit the event's kind. A field
/// that failed to parse is `None` with its `has_…` flag set, so that it is not also reported as
/// missing.
pub fn check(kind: WebEventKind, fields: &WebEventFields, faults: &mut Faults) {
    let money = match kind {
        WebEventKind::Purchase | WebEventKind::Renewal => AmountRule::Positive,
        WebEventKind::Refund => AmountRule::Negative,
        WebEventKind::CheckoutStarted | WebEventKind::StartTrial => AmountRule::NotNegative,
        WebEventKind::SignUp => AmountRule::Nothing,
    };
    match fields.revenue {
        Some(amount) => {
            if let Some(problem) = money.problem(amount) {
                faults.add("revenue", problem);
            }
        }
        None if !fields.has_revenue && money != AmountRule::Nothing => {
            let message = format!("Required for {} events.", kind.as_str());
            faults.add("revenue", Problem::new(FaultCode::Required, message));
        }
        None => {}
    }
    if !fields.has_currency && money != AmountRule::Nothing {
        let message = format!("Required for {} events.", kind.as_str());
        faults.add("currency", Problem::new(FaultCode::Required, message));
    }
    match (kind.has_parent(), fields.has_parent) {
        (true, false) => {
            let message = format!("Required for {} events.", kind.as_str());
            faults.add(
                "originalTransactionId",
                Problem::new(FaultCode::Required, message),
            );
        }
        (false, true) => {
            let message = format!("Not allowed for {} events. Remove it.", kind.as_str());
            faults.add(
                "originalTransactionId",
                Problem::new(FaultCode::NotAllowed, message),
            );
        }
        _ => {}
    }
}

/// Which of amount, currency and parent were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebEventFields {
    /// The amount, if it was valid.
    pub revenue: Option<Amount>,
    /// Whether an amount was sent.
    pub has_revenue: bool,
    /// Whether a currency was sent.
    pub has_currency: bool,
    /// Whether a parent was sent.
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
                "Must be greater than 0. Send settled payments only.",
            ),
            Self::Negative => (
                amount < Amount::ZERO,
                FaultCode::MustBeNegative,
                "Must be less than 0 for a refund.",
            ),
            Self::NotNegative => (
                amount >= Amount::ZERO,
                FaultCode::MustNotBeNegative,
                "Must be 0 or more.",
            ),
            Self::Nothing => (
                amount == Amount::ZERO,
                FaultCode::MustBeZero,
                "Must be 0 or omitted.",
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
    #[case::purchase_of_zero(WebEventKind::Purchase, Some("0"), true, false, &["revenue must_be_positive"])]
    #[case::purchase_without_money(WebEventKind::Purchase, None, false, false, &["revenue required", "currency required"])]
    #[case::purchase_with_a_parent(WebEventKind::Purchase, Some("1"), true, true, &["originalTransactionId not_allowed"])]
    #[case::renewal(WebEventKind::Renewal, Some("1"), true, true, &[])]
    #[case::renewal_without_parent(WebEventKind::Renewal, Some("1"), true, false, &["originalTransactionId required"])]
    #[case::negative_renewal(WebEventKind::Renewal, Some("-1"), true, true, &["revenue must_be_positive"])]
    #[case::refund(WebEventKind::Refund, Some("-1"), true, true, &[])]
    #[case::positive_refund(WebEventKind::Refund, Some("1"), true, true, &["revenue must_be_negative"])]
    #[case::refund_of_zero(WebEventKind::Refund, Some("0"), true, true, &["revenue must_be_negative"])]
    #[case::refund_without_parent(WebEventKind::Refund, Some("-1"), true, false, &["originalTransactionId required"])]
    #[case::refund_without_currency(WebEventKind::Refund, Some("-1"), false, true, &["currency required"])]
    #[case::sign_up(WebEventKind::SignUp, None, false, false, &[])]
    #[case::sign_up_with_zero(WebEventKind::SignUp, Some("0"), false, false, &[])]
    #[case::sign_up_with_zero_dollars(WebEventKind::SignUp, Some("0"), true, false, &[])]
    #[case::sign_up_with_money(WebEventKind::SignUp, Some("1"), true, false, &["revenue must_be_zero"])]
    #[case::checkout(WebEventKind::CheckoutStarted, Some("9.99"), true, false, &[])]
    #[case::checkout_of_zero(WebEventKind::CheckoutStarted, Some("0"), true, false, &[])]
    #[case::negative_checkout(WebEventKind::CheckoutStarted, Some("-1"), true, false, &["revenue must_not_be_negative"])]
    #[case::checkout_without_price(WebEventKind::CheckoutStarted, None, true, false, &["revenue required"])]
    #[case::trial(WebEventKind::StartTrial, Some("9.99"), true, false, &[])]
    #[case::trial_without_currency(WebEventKind::StartTrial, Some("9.99"), false, false, &["currency required"])]
    #[case::trial_with_a_parent(WebEventKind::StartTrial, Some("1"), true, true, &["originalTransactionId not_allowed"])]
    fn fields_must_fit_the_kind(
        #[case] kind: WebEventKind,
        #[case] revenue: Option<&str>,
        #[case] has_currency: bool,
        #[case] has_parent: bool,
        #[case] expected: &[&str],
    ) {
        let fields = WebEventFields {
            revenue: revenue.map(|text| Amount::parse(text).unwrap()),
            has_revenue: revenue.is_some(),
            has_currency,
            has_parent,
        };
        let mut faults = Faults::new();
        check(kind, &fields, &mut faults);
        let found: Vec<String> = faults
            .iter()
            .map(|fault| format!("{} {}", fault.field, fault.code.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_invalid_field_is_not_reported_as_missing() {
        let fields = WebEventFields {
            revenue: None,
            has_revenue: true,
            has_currency: true,
            has_parent: false,
        };
        let mut faults = Faults::new();
        check(WebEventKind::Purchase, &fields, &mut faults);
        assert!(faults.is_empty());
    }
}
