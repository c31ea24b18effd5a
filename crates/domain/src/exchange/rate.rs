//! A published exchange rate: units of a currency per euro or dollar on a day.
//!
//! The rate is stored as published. Inverting it to dollars per unit would round it; only the final
//! amount is rounded, once.

use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::fault::{FaultCode, Problem};

/// Maximum decimals of a rate. The European Central Bank publishes at most five.
pub const RATE_DECIMALS_MAX: usize = 9;
/// Maximum units per euro or dollar. No currency in use comes near it, and it keeps the conversion
/// within an `i128`.
pub const RATE_UNITS_MAX: i64 = 1_000_000_000;
/// Billionths in one unit.
pub(super) const NANOS_PER_UNIT: i64 = 1_000_000_000;

/// Base currency of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateBase {
    /// Units per 1 EUR, as published by the European Central Bank.
    Eur,
    /// Units per 1 USD.
    Usd,
}

crate::keywords! {
    RateBase {
        Eur => "EUR",
        Usd => "USD",
    }
}

/// Units of the currency per unit of the base currency, in billionths; positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateValue(i64);

impl RateValue {
    /// A rate of 1: one unit of the currency per unit of the base currency.
    pub const ONE: Self = Self(NANOS_PER_UNIT);

    /// Creates a rate from billionths, if they are in range.
    pub fn from_nanos(nanos: i64) -> Option<Self> {
        let range = 1..=RATE_UNITS_MAX * NANOS_PER_UNIT;
        range.contains(&nanos).then_some(Self(nanos))
    }

    /// Returns the rate in billionths.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Parses a plain decimal exactly. Rejects a number that would have to be rounded.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return Err(malformed()),
            Some(parts) => parts,
            None => (text, ""),
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty() || leading_zero || !is_digits(whole) || !is_digits(fraction) {
            return Err(malformed());
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > RATE_DECIMALS_MAX {
            let message = format!("Must have at most {RATE_DECIMALS_MAX} decimals.");
            return Err(Problem::new(FaultCode::OutOfRange, message));
        }
        let digits = format!("{whole}{fraction:0<RATE_DECIMALS_MAX$}");
        let nanos = digits.parse().ok();
        nanos.and_then(Self::from_nanos).ok_or_else(|| {
            let message = format!("Must be greater than 0 and at most {RATE_UNITS_MAX}.");
            Problem::new(FaultCode::OutOfRange, message)
        })
    }
}

fn malformed() -> Problem {
    Problem::new(
        FaultCode::InvalidFormat,
        "Must be a decimal number, for example 1.0872.",
    )
}

impl std::fmt::Display for RateValue {
    /// Writes the shortest exact decimal: `1.0872`, `162.43`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, nanos) = (self.0 / NANOS_PER_UNIT, self.0 % NANOS_PER_UNIT);
        let text = format!("{whole}.{nanos:0RATE_DECIMALS_MAX$}");
        formatter.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A published rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rate {
    /// The currency. It may be retired, because old payments must still be converted.
    pub currency: Currency,
    /// Day that the rate was published for.
    pub day: Day,
    /// Base currency.
    pub base: RateBase,
    /// Units of the currency per unit of the base currency.
    pub units: RateValue,
    /// Source name.
    pub source: String,
}

impl Rate {
    /// Returns whether currency and base are the same. Such a rate is meaningless and not stored.
    pub fn is_against_itself(&self) -> bool {
        self.currency.as_str() == self.base.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::whole("162", Ok(162_000_000_000))]
    #[case::decimals("1.0872", Ok(1_087_200_000))]
    #[case::less_than_one("0.85445", Ok(854_450_000))]
    #[case::nine_decimals("0.000000001", Ok(1))]
    #[case::zeros_after_nine_decimals("1.5000000000000", Ok(1_500_000_000))]
    #[case::largest("1000000000", Ok(1_000_000_000_000_000_000))]
    #[case::past_the_largest("1000000000.000000001", Err(FaultCode::OutOfRange))]
    #[case::far_past_it("99999999999999999999", Err(FaultCode::OutOfRange))]
    #[case::ten_decimals("0.0000000001", Err(FaultCode::OutOfRange))]
    #[case::zero("0", Err(FaultCode::OutOfRange))]
    #[case::zero_with_decimals("0.000", Err(FaultCode::OutOfRange))]
    #[case::negative("-1.5", Err(FaultCode::InvalidFormat))]
    #[case::plus("+1.5", Err(FaultCode::InvalidFormat))]
    #[case::exponent("1e2", Err(FaultCode::InvalidFormat))]
    #[case::empty("", Err(FaultCode::InvalidFormat))]
    #[case::no_whole(".5", Err(FaultCode::InvalidFormat))]
    #[case::no_fraction("5.", Err(FaultCode::InvalidFormat))]
    #[case::two_points("1.0.1", Err(FaultCode::InvalidFormat))]
    #[case::leading_zero("01.5", Err(FaultCode::InvalidFormat))]
    #[case::comma("1,5", Err(FaultCode::InvalidFormat))]
    #[case::blank(" 1.5", Err(FaultCode::InvalidFormat))]
    #[case::missing("N/A", Err(FaultCode::InvalidFormat))]
    fn values(#[case] text: &str, #[case] expected: Result<i64, FaultCode>) {
        let found = RateValue::parse(text);
        assert_eq!(
            found.map(RateValue::nanos).map_err(|problem| problem.code),
            expected
        );
    }

    #[rstest]
    #[case(0, None)]
    #[case(-1, None)]
    #[case(1, Some("0.000000001"))]
    #[case(1_000_000_000, Some("1"))]
    #[case(10_000_000_000, Some("10"))]
    #[case(162_430_000_000, Some("162.43"))]
    #[case(1_000_000_000_000_000_000, Some("1000000000"))]
    #[case(1_000_000_000_000_000_001, None)]
    fn values_from_billionths(#[case] nanos: i64, #[case] text: Option<&str>) {
        let value = RateValue::from_nanos(nanos);
        assert_eq!(value.map(|value| value.to_string()).as_deref(), text);
    }

    #[test]
    fn bases_round_trip() {
        for base in [RateBase::Eur, RateBase::Usd] {
            assert_eq!(RateBase::parse(base.as_str()), Some(base));
        }
        assert_eq!(RateBase::parse("eur"), None);
        assert_eq!(RateBase::parse("GBP"), None);
    }

    proptest! {
        #[test]
        fn a_value_round_trips_through_text(nanos in 1..=1_000_000_000_000_000_000_i64) {
            let value = RateValue::from_nanos(nanos).unwrap();
            prop_assert_eq!(RateValue::parse(&value.to_string()), Ok(value));
        }
    }
}
