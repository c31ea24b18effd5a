//! What providers that follow `RevenueCat`'s words mean by them.

use tributary_domain::billing::money::Price;
use tributary_domain::billing::{Claim, Meaning, TRIAL_CANCELLED};
use tributary_domain::vocabulary::money::Amount;

/// What decides about the meaning of a notification.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Words<'a> {
    /// The type, in capitals.
    pub(super) kind: &'a str,
    pub(super) period: Option<&'a str>,
    pub(super) store: Option<&'a str>,
    pub(super) cancel_reason: Option<&'a str>,
    pub(super) is_family_share: bool,
    pub(super) is_conversion: bool,
}

/// Types that are events by the same name.
const LIFECYCLE: &[&str] = &[
    "UNCANCELLATION",
    "EXPIRATION",
    "BILLING_ISSUE",
    "PRODUCT_CHANGE",
    "SUBSCRIPTION_PAUSED",
    "SUBSCRIPTION_EXTENDED",
];

/// What a notification means, and the money that goes with that.
pub(super) fn meaning(words: &Words<'_>, price: Price) -> (Meaning, Price) {
    let free = |name: &str| (Meaning::Free(name.to_owned()), nothing(price));
    let lifecycle = |name: &str| (Meaning::Lifecycle(name.to_owned()), Price::default());
    let is_trial = words.period == Some("TRIAL");
    let is_grant = words.period == Some("PROMOTIONAL") || words.store == Some("PROMOTIONAL");
    match words.kind {
        "INITIAL_PURCHASE" if is_trial => (Meaning::TrialStart, nothing(price)),
        "INITIAL_PURCHASE" if is_grant => free("promotional_grant"),
        "INITIAL_PURCHASE" if words.is_family_share && price.is_zero() => free("family_share"),
        "INITIAL_PURCHASE" => (Meaning::Payment(Claim::Start), price),
        "RENEWAL" if words.is_conversion => (Meaning::Payment(Claim::Conversion), price),
        "RENEWAL" => (Meaning::Payment(Claim::Continuation), price),
        "NON_RENEWING_PURCHASE" => (Meaning::Payment(Claim::OneOff), price),
        "CANCELLATION" if price.is_negative() => (Meaning::Refund, price),
        "CANCELLATION" if is_trial => lifecycle(TRIAL_CANCELLED),
        // Money went back, and nobody says how much.
        "CANCELLATION" if words.cancel_reason == Some("CUSTOMER_SUPPORT") => {
            (Meaning::Refund, Price::default())
        }
        "CANCELLATION" => lifecycle("cancellation"),
        "REFUND" if price.is_zero() => (Meaning::Refund, Price::default()),
        "REFUND" => (Meaning::Refund, price),
        "REFUND_REVERSED" => (Meaning::RefundReversed, price),
        kind if LIFECYCLE.contains(&kind) => lifecycle(&kind.to_ascii_lowercase()),
        _ => (Meaning::Receipt, Price::default()),
    }
}

/// Nothing, in the same currency. Some providers name the price of what a trial may become.
fn nothing(price: Price) -> Price {
    Price {
        paid: price.paid.map(|(_, currency)| (Amount::ZERO, currency)),
        usd: Some(Amount::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn usd(text: Option<&str>) -> Price {
        Price {
            paid: None,
            usd: text.map(|text| Amount::parse(text).unwrap()),
        }
    }

    fn named(meaning: &Meaning) -> String {
        match meaning {
            Meaning::Free(name) | Meaning::Lifecycle(name) => name.clone(),
            other => format!("{other:?}"),
        }
    }

    #[rstest]
    #[case::trial("INITIAL_PURCHASE", Some("TRIAL"), None, None, Some("0"), "TrialStart")]
    #[case::trial_with_a_price(
        "INITIAL_PURCHASE",
        Some("TRIAL"),
        None,
        None,
        Some("9"),
        "TrialStart"
    )]
    #[case::grant(
        "INITIAL_PURCHASE",
        Some("PROMOTIONAL"),
        None,
        None,
        Some("0"),
        "promotional_grant"
    )]
    #[case::grant_by_store(
        "INITIAL_PURCHASE",
        None,
        Some("PROMOTIONAL"),
        None,
        None,
        "promotional_grant"
    )]
    #[case::paid(
        "INITIAL_PURCHASE",
        Some("NORMAL"),
        None,
        None,
        Some("9"),
        "Payment(Start)"
    )]
    #[case::renewal(
        "RENEWAL",
        Some("NORMAL"),
        None,
        None,
        Some("9"),
        "Payment(Continuation)"
    )]
    #[case::one_off(
        "NON_RENEWING_PURCHASE",
        None,
        None,
        None,
        Some("9"),
        "Payment(OneOff)"
    )]
    #[case::refund("CANCELLATION", None, None, Some("UNSUBSCRIBE"), Some("-9"), "Refund")]
    #[case::refund_in_a_trial("CANCELLATION", Some("TRIAL"), None, None, Some("-9"), "Refund")]
    #[case::trial_cancelled(
        "CANCELLATION",
        Some("TRIAL"),
        None,
        Some("CUSTOMER_SUPPORT"),
        Some("0"),
        "trial_cancelled"
    )]
    #[case::refund_of_no_known_amount(
        "CANCELLATION",
        Some("NORMAL"),
        None,
        Some("CUSTOMER_SUPPORT"),
        Some("0"),
        "Refund"
    )]
    #[case::cancelled(
        "CANCELLATION",
        Some("NORMAL"),
        None,
        Some("UNSUBSCRIBE"),
        Some("0"),
        "cancellation"
    )]
    #[case::legacy_refund("REFUND", None, None, None, Some("9"), "Refund")]
    #[case::reversed("REFUND_REVERSED", None, None, None, Some("9"), "RefundReversed")]
    #[case::issue("BILLING_ISSUE", None, None, None, None, "billing_issue")]
    #[case::extended(
        "SUBSCRIPTION_EXTENDED",
        None,
        None,
        None,
        None,
        "subscription_extended"
    )]
    #[case::invoice("INVOICE_ISSUANCE", None, None, None, Some("9"), "Receipt")]
    #[case::test("TEST", None, None, None, None, "Receipt")]
    #[case::of_tomorrow("PAYWALL_IMPRESSION", None, None, None, None, "Receipt")]
    fn types(
        #[case] kind: &str,
        #[case] period: Option<&str>,
        #[case] store: Option<&str>,
        #[case] cancel_reason: Option<&str>,
        #[case] price: Option<&str>,
        #[case] expected: &str,
    ) {
        let words = Words {
            kind,
            period,
            store,
            cancel_reason,
            ..Words::default()
        };
        let (found, money) = meaning(&words, usd(price));
        assert_eq!(named(&found), expected);
        if expected == "TrialStart" {
            assert!(money.is_zero(), "a trial costs nothing");
        }
    }

    #[test]
    fn whoever_pays_for_a_family_pays() {
        let words = |kind| Words {
            kind,
            is_family_share: true,
            is_conversion: true,
            ..Words::default()
        };
        let (member, _) = meaning(&words("INITIAL_PURCHASE"), usd(Some("0")));
        assert_eq!(named(&member), "family_share");
        let (payer, _) = meaning(&words("INITIAL_PURCHASE"), usd(Some("9")));
        assert_eq!(payer, Meaning::Payment(Claim::Start));
        let (converted, _) = meaning(&words("RENEWAL"), usd(Some("9")));
        assert_eq!(converted, Meaning::Payment(Claim::Conversion));
    }
}
