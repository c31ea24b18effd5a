//! Whether an amount counts. It is kept in any case.

use crate::app::{App, BillingProvider, SdkRevenue};
use crate::exchange::{Day, Exchanged};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// 2,000 USD. Above it an amount is kept, but neither counted nor forwarded.
pub const COUNTABLE_USD_MAX: Amount = Amount::from_micros(2_000 * MICROS_PER_UNIT);

/// Why an amount does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncounted {
    /// There is no rate for its currency, or no currency.
    Unconvertible,
    /// Less than nothing.
    Negative,
    /// More than [`COUNTABLE_USD_MAX`].
    OverLimit,
    /// Nothing, or only a prediction.
    Zero,
    /// The app takes no money from its SDK.
    SdkIgnored,
    /// A billing provider reports the same payments.
    BillingSource,
    /// The payment that it belongs to did not count.
    PaymentNotCounted,
}

impl Uncounted {
    /// Every reason.
    pub const ALL: &'static [Self] = &[
        Self::Unconvertible,
        Self::Negative,
        Self::OverLimit,
        Self::Zero,
        Self::SdkIgnored,
        Self::BillingSource,
        Self::PaymentNotCounted,
    ];

    /// As stored and answered.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unconvertible => "unconvertible",
            Self::Negative => "negative",
            Self::OverLimit => "over_limit",
            Self::Zero => "zero",
            Self::SdkIgnored => "sdk_ignored",
            Self::BillingSource => "billing_source",
            Self::PaymentNotCounted => "payment_not_counted",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == text)
    }
}

/// The money on a recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revenue {
    /// As sent.
    pub amount: Amount,
    /// As sent; nothing when the sender named none.
    pub currency: Option<Currency>,
    /// In USD, by the rate of the event's day.
    pub usd: Option<Amount>,
    /// The day of that rate.
    pub rate_day: Option<Day>,
    /// That rate, as it was used.
    pub rate: Option<String>,
    /// Whose rate it is.
    pub rate_source: Option<String>,
    /// Why it does not count; nothing when it does.
    pub uncounted: Option<Uncounted>,
}

impl Revenue {
    /// What it adds to reports.
    pub fn counted_usd(&self) -> Amount {
        match (self.uncounted, self.usd) {
            (None, Some(usd)) => usd,
            _ => Amount::ZERO,
        }
    }
}

/// What the app says about money from a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoneyPolicy {
    /// It counts.
    Count,
    /// It does not, for this reason.
    Ignore(Uncounted),
}

/// What the app says about its SDK's money. `auto` listens to the SDK until a billing provider is set up,
/// which then reports the same payments.
pub fn sdk_policy(app: &App) -> MoneyPolicy {
    let has_provider = BillingProvider::ALL
        .iter()
        .any(|provider| app.has_provider(*provider));
    match app.sdk.revenue {
        SdkRevenue::Ignore => MoneyPolicy::Ignore(Uncounted::SdkIgnored),
        SdkRevenue::Auto if has_provider => MoneyPolicy::Ignore(Uncounted::BillingSource),
        SdkRevenue::Auto | SdkRevenue::Count => MoneyPolicy::Count,
    }
}

/// Judges an amount. `predicted` is for prices that nobody has paid yet.
pub fn judge(
    amount: Amount,
    currency: Option<Currency>,
    exchanged: Option<Exchanged>,
    policy: MoneyPolicy,
    predicted: bool,
) -> Revenue {
    let uncounted = match (policy, &exchanged) {
        (MoneyPolicy::Ignore(reason), _) => Some(reason),
        (_, None) => Some(Uncounted::Unconvertible),
        _ if amount < Amount::ZERO => Some(Uncounted::Negative),
        _ if predicted || amount == Amount::ZERO => Some(Uncounted::Zero),
        (_, Some(exchanged)) if exchanged.usd > COUNTABLE_USD_MAX => Some(Uncounted::OverLimit),
        _ => None,
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

    fn usd(text: &str) -> Exchanged {
        Exchanged {
            usd: Amount::parse(text).unwrap(),
            rate_day: Day::parse("2024-03-18").unwrap(),
            rate: "1".to_owned(),
            source: "ecb".to_owned(),
        }
    }

    const COUNT: MoneyPolicy = MoneyPolicy::Count;
    const IGNORE: MoneyPolicy = MoneyPolicy::Ignore(Uncounted::SdkIgnored);

    #[rstest]
    #[case::a_payment("9.99", Some("9.99"), COUNT, false, None)]
    #[case::exactly_the_limit("2000", Some("2000"), COUNT, false, None)]
    #[case::a_cent_more("2000.01", Some("2000.01"), COUNT, false, Some(Uncounted::OverLimit))]
    #[case::the_limit_is_in_usd("200000", Some("1300"), COUNT, false, None)]
    #[case::no_rate("9.99", None, COUNT, false, Some(Uncounted::Unconvertible))]
    #[case::less_than_nothing("-1", Some("-1"), COUNT, false, Some(Uncounted::Negative))]
    #[case::far_less_than_nothing("-5000", Some("-5000"), COUNT, false, Some(Uncounted::Negative))]
    #[case::nothing("0", Some("0"), COUNT, false, Some(Uncounted::Zero))]
    #[case::a_prediction("9.99", Some("9.99"), COUNT, true, Some(Uncounted::Zero))]
    #[case::the_app_wants_none("9.99", Some("9.99"), IGNORE, false, Some(Uncounted::SdkIgnored))]
    #[case::the_app_wants_none_of_it("9.99", None, IGNORE, false, Some(Uncounted::SdkIgnored))]
    fn amounts(
        #[case] amount: &str,
        #[case] exchanged: Option<&str>,
        #[case] policy: MoneyPolicy,
        #[case] predicted: bool,
        #[case] expected: Option<Uncounted>,
    ) {
        let amount = Amount::parse(amount).unwrap();
        let revenue = judge(
            amount,
            Some(Currency::USD),
            exchanged.map(usd),
            policy,
            predicted,
        );
        assert_eq!(revenue.uncounted, expected);
        assert_eq!(revenue.amount, amount, "an amount is kept in any case");
        let counted = exchanged.filter(|_| expected.is_none());
        let counted = counted.map_or(Amount::ZERO, |text| Amount::parse(text).unwrap());
        assert_eq!(revenue.counted_usd(), counted);
    }

    #[rstest]
    #[case::auto_alone(SdkRevenue::Auto, false, MoneyPolicy::Count)]
    #[case::auto_beside_a_provider(
        SdkRevenue::Auto,
        true,
        MoneyPolicy::Ignore(Uncounted::BillingSource)
    )]
    #[case::always(SdkRevenue::Count, true, MoneyPolicy::Count)]
    #[case::never(SdkRevenue::Ignore, true, MoneyPolicy::Ignore(Uncounted::SdkIgnored))]
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
