//! Revenue of a single notification.

use crate::exchange::ConvertedAmount;
use crate::ledger::{COUNTABLE_USD_MAX, Revenue, UncountedReason};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;

/// Name of the rate source if the provider sent both amounts.
pub const RATE_OF_PROVIDER: &str = "provider";

/// Price as the provider reports it. An unknown amount is `None` and never estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportedPrice {
    /// Amount and currency as paid.
    pub paid: Option<(Amount, Currency)>,
    /// Amount in USD, at the provider's own rate.
    pub usd: Option<Amount>,
}

impl ReportedPrice {
    /// Returns whether the price is negative.
    pub fn is_negative(&self) -> bool {
        let paid = self.paid.map(|(amount, _)| amount);
        self.usd.or(paid).is_some_and(|it| it < Amount::ZERO)
    }

    /// Returns whether the price is zero.
    pub fn is_zero(&self) -> bool {
        let paid = self.paid.map(|(amount, _)| amount);
        self.usd.or(paid).is_some_and(|it| it == Amount::ZERO)
    }

    /// Returns the amount, currency and day for the exchange rate, if the provider sent no amount
    /// in USD.
    pub fn exchange_day(&self, at: Timestamp) -> Option<(Amount, Currency, Day)> {
        let (amount, currency) = self.paid.filter(|_| self.usd.is_none())?;
        Some((amount, currency, Day::of(at)))
    }

    /// Converts the price to revenue, with the amount in USD and whether it counts. `flow` sets the
    /// sign, because providers differ in whether a refund is negative.
    pub fn to_revenue(
        &self,
        flow: MoneyFlow,
        exchanged: Option<ConvertedAmount>,
    ) -> Option<Revenue> {
        let dollars = self.usd.map(|usd| (usd, Currency::USD));
        let (amount, currency) = self.paid.or(dollars)?;
        let (amount, usd) = (flow.signed(amount), self.usd.map(|usd| flow.signed(usd)));
        let provided = usd.map(|usd| Revenue {
            usd: Some(usd),
            rate_source: Some(RATE_OF_PROVIDER.to_owned()),
            ..unconverted(amount, currency)
        });
        let mut revenue = provided.unwrap_or_else(|| match exchanged {
            Some(exchanged) => Revenue {
                usd: Some(flow.signed(exchanged.usd)),
                rate_day: Some(exchanged.rate_day),
                rate: Some(exchanged.rate),
                rate_source: Some(exchanged.source),
                ..unconverted(amount, currency)
            },
            None => unconverted(amount, currency),
        });
        revenue.uncounted = match revenue.usd {
            None => Some(UncountedReason::Unconvertible),
            Some(usd) if usd < Amount::ZERO && flow == MoneyFlow::In => {
                Some(UncountedReason::Negative)
            }
            Some(usd) if usd == Amount::ZERO => Some(UncountedReason::Zero),
            Some(usd) if usd > COUNTABLE_USD_MAX => Some(UncountedReason::OverLimit),
            Some(_) => None,
        };
        Some(revenue)
    }
}

/// Direction of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoneyFlow {
    /// To the app, with the provider's sign. A negative payment does not count.
    In,
    /// To the app, after a refund was reversed.
    RefundReversed,
    /// Back to the user.
    Out,
}

impl MoneyFlow {
    const fn signed(self, amount: Amount) -> Amount {
        let size = amount.micros().saturating_abs();
        Amount::from_micros(match self {
            Self::In => amount.micros(),
            Self::RefundReversed => size,
            Self::Out => -size,
        })
    }
}

const fn unconverted(amount: Amount, currency: Currency) -> Revenue {
    Revenue {
        amount,
        currency: Some(currency),
        usd: None,
        rate_day: None,
        rate: None,
        rate_source: None,
        uncounted: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn price(paid: Option<(&str, &str)>, usd: Option<&str>) -> ReportedPrice {
        let amount = |text: &str| Amount::parse(text).unwrap();
        ReportedPrice {
            paid: paid.map(|(it, currency)| (amount(it), Currency::from_stored(currency).unwrap())),
            usd: usd.map(amount),
        }
    }

    #[rstest]
    #[case::both(Some(("7.99", "EUR")), Some("8.14"), "7.99", Some("8.14"), None)]
    #[case::dollars_alone(None, Some("4.99"), "4.99", Some("4.99"), None)]
    #[case::three_decimals(Some(("1.234", "KWD")), Some("4.021"), "1.234", Some("4.021"), None)]
    #[case::nothing(Some(("0", "PHP")), Some("0"), "0", Some("0"), Some(UncountedReason::Zero))]
    #[case::the_limit(None, Some("2000"), "2000", Some("2000"), None)]
    #[case::over_it(
        None,
        Some("2000.01"),
        "2000.01",
        Some("2000.01"),
        Some(UncountedReason::OverLimit)
    )]
    #[case::no_rate(Some(("5", "XYZ")), None, "5", None, Some(UncountedReason::Unconvertible))]
    #[case::negative_payment(Some(("-5", "EUR")), Some("-6"), "-5", Some("-6"), Some(UncountedReason::Negative))]
    fn converts_payments(
        #[case] paid: Option<(&str, &str)>,
        #[case] dollars: Option<&str>,
        #[case] amount: &str,
        #[case] usd: Option<&str>,
        #[case] uncounted: Option<UncountedReason>,
    ) {
        let revenue = price(paid, dollars)
            .to_revenue(MoneyFlow::In, None)
            .unwrap();
        assert_eq!(revenue.amount.to_string(), amount);
        assert_eq!(revenue.usd.map(|it| it.to_string()).as_deref(), usd);
        assert_eq!(revenue.uncounted, uncounted);
    }

    #[rstest]
    #[case::negative("-9.99")]
    #[case::positive("9.99")]
    fn a_refund_is_negative_whatever_the_provider_writes(#[case] usd: &str) {
        let revenue = price(None, Some(usd))
            .to_revenue(MoneyFlow::Out, None)
            .unwrap();
        assert_eq!(revenue.amount.to_string(), "-9.99");
        assert_eq!(revenue.usd, Some(revenue.amount));
    }

    #[rstest]
    #[case::negative("-9.99")]
    #[case::positive("9.99")]
    fn a_reversed_refund_is_positive_whatever_the_provider_writes(#[case] usd: &str) {
        let revenue = price(None, Some(usd))
            .to_revenue(MoneyFlow::RefundReversed, None)
            .unwrap();
        assert_eq!(revenue.amount.to_string(), "9.99");
        assert_eq!(revenue.uncounted, None);
    }

    #[test]
    fn unknown_amounts_are_not_estimated() {
        assert_eq!(
            ReportedPrice::default().to_revenue(MoneyFlow::In, None),
            None
        );
        assert!(!ReportedPrice::default().is_zero() && !ReportedPrice::default().is_negative());
    }
}
