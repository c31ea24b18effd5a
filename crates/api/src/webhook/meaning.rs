//! What notifications that use `RevenueCat`'s vocabulary mean.

use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::{NotificationMeaning, PaymentClaim, TRIAL_CANCELLED};
use tributary_domain::vocabulary::money::Amount;

/// Fields that determine what a notification means.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NotificationTraits<'a> {
    /// Notification type in upper case.
    pub(super) kind: &'a str,
    pub(super) period: Option<&'a str>,
    pub(super) store: Option<&'a str>,
    pub(super) cancel_reason: Option<&'a str>,
    pub(super) is_family_share: bool,
    pub(super) is_conversion: bool,
}

/// Types that become events with the same name.
const LIFECYCLE: &[&str] = &[
    "UNCANCELLATION",
    "EXPIRATION",
    "BILLING_ISSUE",
    "PRODUCT_CHANGE",
    "SUBSCRIPTION_PAUSED",
    "SUBSCRIPTION_EXTENDED",
];

/// Returns what a notification means, and the price that applies to it.
pub(super) fn meaning(
    traits: &NotificationTraits<'_>,
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
    let is_trial = traits.period == Some("TRIAL");
    let is_grant = traits.period == Some("PROMOTIONAL") || traits.store == Some("PROMOTIONAL");
    match traits.kind {
        "INITIAL_PURCHASE" if is_trial => (NotificationMeaning::TrialStart, zero_price(price)),
        "INITIAL_PURCHASE" if is_grant => free("promotional_grant"),
        "INITIAL_PURCHASE" if traits.is_family_share && price.is_zero() => free("family_share"),
        "INITIAL_PURCHASE" => (NotificationMeaning::Payment(PaymentClaim::Start), price),
        "RENEWAL" if traits.is_conversion => (
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
        // A refund whose amount is unknown.
        "CANCELLATION" if traits.cancel_reason == Some("CUSTOMER_SUPPORT") => {
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

/// Returns zero in the same currency. For a trial, some providers send the price that applies after
/// the trial.
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
    #[case::unknown_type("PAYWALL_IMPRESSION", None, None, None, None, "Receipt")]
    fn types(
        #[case] kind: &str,
        #[case] period: Option<&str>,
        #[case] store: Option<&str>,
        #[case] cancel_reason: Option<&str>,
        #[case] price: Option<&str>,
        #[case] expected: &str,
    ) {
        let traits = NotificationTraits {
            kind,
            period,
            store,
            cancel_reason,
            ..NotificationTraits::default()
        };
        let (found, money) = meaning(&traits, usd(price));
        assert_eq!(named(&found), expected);
        if expected == "TrialStart" {
            assert!(money.is_zero(), "a trial costs nothing");
        }
    }

    #[test]
    fn family_sharing_is_free_for_members_but_not_for_the_payer() {
        let traits = |kind| NotificationTraits {
            kind,
            is_family_share: true,
            is_conversion: true,
            ..NotificationTraits::default()
        };
        let (member, _) = meaning(&traits("INITIAL_PURCHASE"), usd(Some("0")));
        assert_eq!(named(&member), "family_share");
        let (payer, _) = meaning(&traits("INITIAL_PURCHASE"), usd(Some("9")));
        assert_eq!(payer, NotificationMeaning::Payment(PaymentClaim::Start));
        let (converted, _) = meaning(&traits("RENEWAL"), usd(Some("9")));
        assert_eq!(
            converted,
            NotificationMeaning::Payment(PaymentClaim::Conversion)
        );
    }
}
