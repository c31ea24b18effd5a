//! Decides whether an amount counts as revenue. The amount is stored in any case.

use crate::app::{App, BillingProvider, SdkRevenue};
use crate::event::name;
use crate::exchange::ConvertedAmount;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// Maximum amount that counts: 2,000 USD. A larger amount is stored, but neither counted nor
/// forwarded.
pub const COUNTABLE_USD_MAX: Amount = Amount::from_micros(2_000 * MICROS_PER_UNIT);

/// Why an amount does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncountedReason {
    /// The currency is missing or has no rate.
    Unconvertible,
    /// Negative amount.
    Negative,
    /// More than [`COUNTABLE_USD_MAX`].
    OverLimit,
    /// An amount of 0.
    Zero,
    /// Price of a trial or checkout, not paid yet.
    Predicted,
    /// Amount on an event that is not income, such as `add_to_cart`.
    NotIncome,
    /// The app ignores revenue from its SDK.
    SdkIgnored,
    /// A billing provider reports the same payments.
    BillingSource,
    /// The refunded payment did not count.
    PaymentNotCounted,
    /// A verified source reports the same payment.
    DuplicateOfVerified,
}

crate::keywords! {
    UncountedReason {
        Unconvertible => "unconvertible",
        Negative => "negative",
        OverLimit => "over_limit",
        Zero => "zero",
        Predicted => "predicted",
        NotIncome => "not_income",
        SdkIgnored => "sdk_ignored",
        BillingSource => "billing_source",
        PaymentNotCounted => "payment_not_counted",
        DuplicateOfVerified => "duplicate_of_verified",
    }
}

impl UncountedReason {
    /// Parses a stored reason. Older versions stored `zero` for predicted amounts.
    pub fn parse_stored(text: &str, name: &str, amount: Amount) -> Option<Self> {
        let reason = Self::parse(text)?;
        let is_predicted = amount != Amount::ZERO && name::is_predicted(name);
        Some(if reason == Self::Zero && is_predicted {
            Self::Predicted
        } else {
            reason
        })
    }
}

/// Kind of amount on an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoneyKind {
    /// A payment.
    Income,
    /// A price that may be paid later.
    Predicted,
    /// Any other value.
    NotIncome,
}

/// Revenue of a recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revenue {
    /// Amount, as sent.
    pub amount: Amount,
    /// Currency, as sent, if any.
    pub currency: Option<Currency>,
    /// Amount in USD at the rate of the event's day.
    pub usd: Option<Amount>,
    /// Day of the rate.
    pub rate_day: Option<Day>,
    /// The rate used.
    pub rate: Option<String>,
    /// Source of the rate.
    pub rate_source: Option<String>,
    /// Why the amount does not count; `None` if it counts.
    pub uncounted: Option<UncountedReason>,
}

impl Revenue {
    /// Evaluates again whether a stored amount counts, after its kind may have changed. A reason
    /// that does not depend on the kind stays: the app's settings when the event was recorded, or
    /// another event.
    #[must_use]
    pub fn reclassified(self, kind: MoneyKind) -> Self {
        let depends_on_kind = matches!(
            self.uncounted,
            None | Some(
                UncountedReason::Predicted
                    | UncountedReason::NotIncome
                    | UncountedReason::OverLimit
            )
        );
        if !depends_on_kind {
            return self;
        }
        Self {
            uncounted: reason(self.amount, self.usd, kind),
            ..self
        }
    }

    /// Evaluates again whether a stored amount counts, regardless of the stored reason.
    #[must_use]
    pub fn reassessed(self, policy: MoneyPolicy, kind: MoneyKind) -> Self {
        let uncounted = match policy {
            MoneyPolicy::Ignore(reason) => Some(reason),
            MoneyPolicy::Count => reason(self.amount, self.usd, kind),
        };
        Self { uncounted, ..self }
    }

    /// Returns the amount that reports count.
    pub fn counted_usd(&self) -> Amount {
        match (self.uncounted, self.usd) {
            (None, Some(usd)) => usd,
            _ => Amount::ZERO,
        }
    }
}

/// Whether revenue from a source counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoneyPolicy {
    /// Revenue counts.
    Count,
    /// Revenue does not count, for this reason.
    Ignore(UncountedReason),
}

/// Returns whether the SDK's revenue counts. `auto` counts it until a billing provider is set up,
/// which then reports the same payments.
pub fn sdk_policy(app: &App) -> MoneyPolicy {
    let has_provider = BillingProvider::ALL
        .iter()
        .any(|provider| app.has_provider(*provider));
    match app.sdk.revenue {
        SdkRevenue::Ignore => MoneyPolicy::Ignore(UncountedReason::SdkIgnored),
        SdkRevenue::Auto if has_provider => MoneyPolicy::Ignore(UncountedReason::BillingSource),
        SdkRevenue::Auto | SdkRevenue::Count => MoneyPolicy::Count,
    }
}

/// Returns why an amount does not count, based on amount and kind alone.
fn reason(amount: Amount, usd: Option<Amount>, kind: MoneyKind) -> Option<UncountedReason> {
    match (usd, kind) {
        (None, _) => Some(UncountedReason::Unconvertible),
        _ if amount < Amount::ZERO => Some(UncountedReason::Negative),
        _ if amount == Amount::ZERO => Some(UncountedReason::Zero),
        (_, MoneyKind::Predicted) => Some(UncountedReason::Predicted),
        (_, MoneyKind::NotIncome) => Some(UncountedReason::NotIncome),
        (Some(usd), MoneyKind::Income) if usd > COUNTABLE_USD_MAX => {
            Some(UncountedReason::OverLimit)
        }
        (Some(_), MoneyKind::Income) => None,
    }
}

/// Decides whether an amount counts and builds the revenue to store.
pub fn assess_revenue(
    amount: Amount,
    currency: Option<Currency>,
    exchanged: Option<ConvertedAmount>,
    policy: MoneyPolicy,
    kind: MoneyKind,
) -> Revenue {
    let uncounted = match policy {
        MoneyPolicy::Ignore(reason) => Some(reason),
        MoneyPolicy::Count => reason(amount, exchanged.as_ref().map(|one| one.usd), kind),
    };
    let (usd, rate_day, rate, rate_source) = match exchanged {
        Some(exchanged) => (
            Some(exchanged.usd),
            Some(exchanged.rate_day),
            Some(exchanged.rate),
            Some(exchanged.source),
        ),
        None => (None, None, None, None),
    };
    Revenue {
        amount,
        currency,
        usd,
        rate_day,
        rate,
        rate_source,
        uncounted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::AppSecret;
    use rstest::rstest;

    fn usd(text: &str) -> ConvertedAmount {
        ConvertedAmount {
            usd: Amount::parse(text).unwrap(),
            rate_day: Day::parse("2024-03-18").unwrap(),
            rate: "1".to_owned(),
            source: "ecb".to_owned(),
        }
    }

    const COUNT: MoneyPolicy = MoneyPolicy::Count;
    const IGNORE: MoneyPolicy = MoneyPolicy::Ignore(UncountedReason::SdkIgnored);

    const INCOME: MoneyKind = MoneyKind::Income;
    const PREDICTED: MoneyKind = MoneyKind::Predicted;
    const NOT_INCOME: MoneyKind = MoneyKind::NotIncome;

    #[rstest]
    #[case::a_payment("9.99", Some("9.99"), COUNT, INCOME, None)]
    #[case::exactly_the_limit("2000", Some("2000"), COUNT, INCOME, None)]
    #[case::a_cent_above_the_limit(
        "2000.01",
        Some("2000.01"),
        COUNT,
        INCOME,
        Some(UncountedReason::OverLimit)
    )]
    #[case::the_limit_is_in_usd("200000", Some("1300"), COUNT, INCOME, None)]
    #[case::no_rate("9.99", None, COUNT, INCOME, Some(UncountedReason::Unconvertible))]
    #[case::negative("-1", Some("-1"), COUNT, INCOME, Some(UncountedReason::Negative))]
    #[case::very_negative("-5000", Some("-5000"), COUNT, INCOME, Some(UncountedReason::Negative))]
    #[case::zero("0", Some("0"), COUNT, INCOME, Some(UncountedReason::Zero))]
    #[case::a_prediction(
        "9.99",
        Some("9.99"),
        COUNT,
        PREDICTED,
        Some(UncountedReason::Predicted)
    )]
    #[case::a_prediction_of_zero("0", Some("0"), COUNT, PREDICTED, Some(UncountedReason::Zero))]
    #[case::a_value(
        "500",
        Some("500"),
        COUNT,
        NOT_INCOME,
        Some(UncountedReason::NotIncome)
    )]
    #[case::a_value_of_zero("0", Some("0"), COUNT, NOT_INCOME, Some(UncountedReason::Zero))]
    #[case::a_large_value(
        "5000",
        Some("5000"),
        COUNT,
        NOT_INCOME,
        Some(UncountedReason::NotIncome)
    )]
    #[case::ignored_by_the_app(
        "9.99",
        Some("9.99"),
        IGNORE,
        INCOME,
        Some(UncountedReason::SdkIgnored)
    )]
    #[case::ignored_without_a_rate("9.99", None, IGNORE, INCOME, Some(UncountedReason::SdkIgnored))]
    fn which_amounts_count(
        #[case] amount: &str,
        #[case] exchanged: Option<&str>,
        #[case] policy: MoneyPolicy,
        #[case] kind: MoneyKind,
        #[case] expected: Option<UncountedReason>,
    ) {
        let amount = Amount::parse(amount).unwrap();
        let revenue = assess_revenue(
            amount,
            Some(Currency::USD),
            exchanged.map(usd),
            policy,
            kind,
        );
        assert_eq!(revenue.uncounted, expected);
        assert_eq!(revenue.amount, amount, "the amount is always stored");
        let counted = exchanged.filter(|_| expected.is_none());
        let counted = counted.map_or(Amount::ZERO, |text| Amount::parse(text).unwrap());
        assert_eq!(revenue.counted_usd(), counted);
        assert_eq!(
            revenue.clone().reclassified(kind),
            revenue,
            "a stored amount gets the same decision"
        );
    }

    #[rstest]
    #[case::counted_once(INCOME, NOT_INCOME, Some(UncountedReason::NotIncome))]
    #[case::listed_since(NOT_INCOME, INCOME, None)]
    fn a_stored_amount_is_reclassified(
        #[case] before: MoneyKind,
        #[case] now: MoneyKind,
        #[case] expected: Option<UncountedReason>,
    ) {
        let stored = |policy| {
            assess_revenue(
                Amount::parse("5").unwrap(),
                Some(Currency::USD),
                Some(usd("5")),
                policy,
                before,
            )
        };
        assert_eq!(stored(COUNT).reclassified(now).uncounted, expected);
        let ignored = stored(IGNORE).reclassified(now).uncounted;
        assert_eq!(ignored, Some(UncountedReason::SdkIgnored));
    }

    #[rstest]
    #[case::from_an_older_version("zero", "start_trial", "9.99", UncountedReason::Predicted)]
    #[case::zero("zero", "start_trial", "0", UncountedReason::Zero)]
    #[case::less_than_a_millionth_in_dollars("zero", "purchase", "0.000001", UncountedReason::Zero)]
    #[case::unchanged("over_limit", "start_trial", "9.99", UncountedReason::OverLimit)]
    fn stored_reasons(
        #[case] text: &str,
        #[case] name: &str,
        #[case] amount: &str,
        #[case] expected: UncountedReason,
    ) {
        let amount = Amount::parse(amount).unwrap();
        assert_eq!(
            UncountedReason::parse_stored(text, name, amount),
            Some(expected)
        );
    }

    #[rstest]
    #[case::auto_alone(SdkRevenue::Auto, false, MoneyPolicy::Count)]
    #[case::auto_with_a_provider(
        SdkRevenue::Auto,
        true,
        MoneyPolicy::Ignore(UncountedReason::BillingSource)
    )]
    #[case::always(SdkRevenue::Count, true, MoneyPolicy::Count)]
    #[case::never(
        SdkRevenue::Ignore,
        true,
        MoneyPolicy::Ignore(UncountedReason::SdkIgnored)
    )]
    fn policies(
        #[case] setting: SdkRevenue,
        #[case] has_provider: bool,
        #[case] expected: MoneyPolicy,
    ) {
        let mut app = crate::app::samples::any_app();
        app.sdk.revenue = setting;
        if has_provider {
            app.secrets
                .insert(AppSecret::Billing(BillingProvider::Superwall));
        }
        assert_eq!(sdk_policy(&app), expected);
    }
}
