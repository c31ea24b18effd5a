//! What providers that follow `RevenueCat`'s words mean by them.

use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::{NotificationMeaning, PaymentClaim, TRIAL_CANCELLED};
use tributary_domain::vocabulary::money::Amount;

/// What decides about the meaning of a notification.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NotificationTraits<'a> {
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
pub(super) fn meaning(
    words: &NotificationTraits<'_>,
    price: ReportedPrice,
) -> (NotificationMeaning, ReportedPrice) {
    let free = |name: &str| {
        (
            NotificationMeaning::Free(name.to_owned()),
            zero_price(price),
        )
    };
    let lifecycle = |name: &str| {
        (
            NotificationMeaning::Lifecycle(name.to_owned()),
            ReportedPrice::default(),
        )
    };
    let is_trial = words.period == Some("TRIAL");
    let is_grant = words.period == Some("PROMOTIONAL") || words.store == Some("PROMOTIONAL");
    match words.kind {
        "INITIAL_PURCHASE" if is_trial => (NotificationMeaning::TrialStart, zero_price(price)),
        "INITIAL_PURCHASE" if is_grant => free("promotional_grant"),
        "INITIAL_PURCHASE" if words.is_family_share && price.is_zero() => free("family_share"),
        "INITIAL_PURCHASE" => (NotificationMeaning::Payment(PaymentClaim::Start), price),
        "RENEWAL" if words.is_conversion => (
            NotificationMeaning::Payment(PaymentClaim::Conversion),
            price,
        ),
        "RENEWAL" => (
            NotificationMeaning::Payment(PaymentClaim::Continuation),
            price,
        ),
        "NON_RENEWING_PURCHASE" => (NotificationMeaning::Payment(PaymentClaim::OneOff), price),
        "CANCELLATION" if price.is_negative() => (NotificationMeaning::Refund, price),
        "CANCELLATION" if is_trial => lifecycle(TRIAL_CANCELLED),
        // Money went back, and nobody says how much.
        "CANCELLATION" if words.cancel_reason == Some("CUSTOMER_SUPPORT") => {
            (NotificationMeaning::Refund, ReportedPrice::default())
        }
        "CANCELLATION" => lifecycle("cancellation"),
        "REFUND" if price.is_zero() => (NotificationMeaning::Refund, ReportedPrice::default()),
        "REFUND" => (NotificationMeaning::Refund, price),
        "REFUND_REVERSED" => (NotificationMeaning::RefundReversed, price),
        kind if LIFECYCLE.contains(&kind) => lifecycle(&kind.to_ascii_lowercase()),
        _ => (NotificationMeaning::Receipt, ReportedPrice::default()),
    }
}

/// Nothing, in the same currency. Some providers name the price of what a trial may become.
fn zero_price(price: ReportedPrice) -> ReportedPrice {
    ReportedPrice {
        paid: price.paid.map(|(_, currency)| (Amount::ZERO, currency)),
        usd: Some(Amount::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn usd(text: Option<&str>) -> ReportedPrice {
        ReportedPrice {
            paid: None,
            usd: text.map(|text| Amount::parse(text).unwrap()),
        }
    }

    fn named(meaning: &NotificationMeaning) -> String {
        match meaning {
            NotificationMeaning::Free(name) | NotificationMeaning::Lifecycle(name) => name.clone(),
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
        let words = NotificationTraits {
            kind,
            period,
            store,
            cancel_reason,
            ..NotificationTraits::default()
        };
        let (found, money) = meaning(&words, usd(price));
        assert_eq!(named(&found), expected);
        if expected == "TrialStart" {
            assert!(money.is_zero(), "a trial costs nothing");
        }
    }

    #[test]
    fn whoever_pays_for_a_family_pays() {
        let words = |kind| NotificationTraits {
            kind,
            is_family_share: true,
            is_conversion: true,
            ..NotificationTraits::default()
        };
        let (member, _) = meaning(&words("INITIAL_PURCHASE"), usd(Some("0")));
        assert_eq!(named(&member), "family_share");
        let (payer, _) = meaning(&words("INITIAL_PURCHASE"), usd(Some("9")));
        assert_eq!(payer, NotificationMeaning::Payment(PaymentClaim::Start));
        let (converted, _) = meaning(&words("RENEWAL"), usd(Some("9")));
        assert_eq!(
            converted,
            NotificationMeaning::Payment(PaymentClaim::Conversion)
        );
    }
}
