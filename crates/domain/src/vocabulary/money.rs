//! Amounts as whole millionths of the major unit. Money is never a float.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::number::parse_rounded;

/// Millionths per major unit.
pub const MICROS_PER_UNIT: i64 = 1_000_000;
/// Maximum number of decimals of an amount.
pub const AMOUNT_DECIMALS_MAX: usize = 6;
/// Maximum number of digits before the decimal point.
pub const AMOUNT_INTEGER_DIGITS_MAX: usize = 12;

/// An amount in the major unit of a currency, which is stored separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(i64);

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Creates an amount from millionths.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the amount in millionths.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Parses a JSON number (`49.9`, `-3`, `1e2`) exactly. Rejects numbers that would have to be
    /// rounded.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let invalid = || {
            Problem::new(
                FaultCode::InvalidFormat,
                "Must be a decimal number, for example 49.99.",
            )
        };
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent).ok_or_else(invalid)?),
            None => (digits, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return Err(invalid()),
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty() || leading_zero || !is_digits(whole) || !is_digits(fraction) {
            return Err(invalid());
        }
        let micros = scaled(whole, fraction, exponent)?;
        Ok(Self(if negative { -micros } else { micros }))
    }
}

impl Amount {
    /// Parses a JSON number. Programs that compute with floats send `0.30000000000000004` for 0.3,
    /// so decimals beyond [`AMOUNT_DECIMALS_MAX`] are rounded, half to even.
    pub fn parse_number(digits: &str) -> Result<Self, Problem> {
        Self::parse(digits).or_else(|problem| {
            let micros = parse_rounded(digits, AMOUNT_DECIMALS_MAX).ok_or(problem)?;
            // Rounding may have added a digit.
            Self::parse(&Self(micros).to_string())
        })
    }

    /// Parses a decimal written as text, from any endpoint, table or form: digits, a point, digits.
    /// Accepts leading zeros and a minus sign, but no exponent. Never rounds, because a string is
    /// exact.
    pub fn parse_text(text: &str) -> Result<Self, Problem> {
        let problem = |code| {
            let message = format!(
                "Must be a decimal such as 9.99: at most {AMOUNT_INTEGER_DIGITS_MAX} digits before the \
                 point and {AMOUNT_DECIMALS_MAX} after it."
            );
            Problem::new(code, message)
        };
        let invalid = || problem(FaultCode::InvalidFormat);
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", text),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((_, "")) => return Err(invalid()),
            Some((whole, fraction)) => (whole, fraction),
            None => (digits, "0"),
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return Err(invalid());
        }
        if whole.len() > AMOUNT_INTEGER_DIGITS_MAX || fraction.len() > AMOUNT_DECIMALS_MAX {
            return Err(problem(FaultCode::OutOfRange));
        }
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            significant => significant,
        };
        Self::parse(&format!("{sign}{whole}.{fraction}"))
    }
}

/// Parses the exponent of `1e2`. Exponents of more than four digits are rejected: only zero would
/// be in range with such an exponent, and this is not worth supporting.
fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Returns `whole.fraction × 10^exponent` in millionths.
fn scaled(whole: &str, fraction: &str, exponent: i32) -> Result<i64, Problem> {
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let zeros = digits.len() - significant.len();
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    let limit = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    // Power of ten of the last significant digit.
    let power = i64::from(exponent) - limit(fraction.len()) + limit(zeros);
    if power < -limit(AMOUNT_DECIMALS_MAX) {
        let message = format!("Must have at most {AMOUNT_DECIMALS_MAX} decimals.");
        return Err(Problem::new(FaultCode::OutOfRange, message));
    }
    if limit(significant.len()) + power > limit(AMOUNT_INTEGER_DIGITS_MAX) {
        let message =
            format!("Must have at most {AMOUNT_INTEGER_DIGITS_MAX} digits before the point.");
        return Err(Problem::new(FaultCode::OutOfRange, message));
    }
    let shift = u32::try_from(power + limit(AMOUNT_DECIMALS_MAX)).unwrap_or(0);
    let number = significant.parse::<i64>().ok();
    number
        .and_then(|number| number.checked_mul(10_i64.checked_pow(shift)?))
        .ok_or_else(|| Problem::new(FaultCode::OutOfRange, "Must be a smaller amount."))
}

impl std::fmt::Display for Amount {
    /// Formats the shortest exact decimal: `49.99`, `-3`, `0.000001`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = self.0.unsigned_abs();
        let per_unit = MICROS_PER_UNIT.unsigned_abs();
        let (whole, fraction) = (micros / per_unit, micros % per_unit);
        if fraction == 0 {
            return write!(formatter, "{sign}{whole}");
        }
        let fraction = format!("{fraction:06}");
        write!(
            formatter,
            "{sign}{whole}.{}",
            fraction.trim_end_matches('0')
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::whole("49", Ok(49_000_000))]
    #[case::decimals("49.99", Ok(49_990_000))]
    #[case::trailing_zeros("49.900000000", Ok(49_900_000))]
    #[case::six_decimals("0.000001", Ok(1))]
    #[case::negative("-3.5", Ok(-3_500_000))]
    #[case::zero("0", Ok(0))]
    #[case::minus_zero("-0.0", Ok(0))]
    #[case::exponent("1e2", Ok(100_000_000))]
    #[case::negative_exponent("125E-2", Ok(1_250_000))]
    #[case::largest("999999999999.999999", Ok(999_999_999_999_999_999))]
    #[case::past_two_to_the_53("9007199254.740993", Ok(9_007_199_254_740_993))]
    #[case::seven_decimals("0.0000001", Err(FaultCode::OutOfRange))]
    #[case::thirteen_digits("1000000000000", Err(FaultCode::OutOfRange))]
    #[case::absurd("1e9999", Err(FaultCode::OutOfRange))]
    #[case::absurd_exponent("1e99999", Err(FaultCode::InvalidFormat))]
    #[case::empty("", Err(FaultCode::InvalidFormat))]
    #[case::sign_alone("-", Err(FaultCode::InvalidFormat))]
    #[case::plus("+1", Err(FaultCode::InvalidFormat))]
    #[case::no_whole(".5", Err(FaultCode::InvalidFormat))]
    #[case::no_fraction("5.", Err(FaultCode::InvalidFormat))]
    #[case::leading_zero("05", Err(FaultCode::InvalidFormat))]
    #[case::comma("1,5", Err(FaultCode::InvalidFormat))]
    #[case::space(" 1", Err(FaultCode::InvalidFormat))]
    #[case::not_a_number("NaN", Err(FaultCode::InvalidFormat))]
    #[case::other_digits("٣", Err(FaultCode::InvalidFormat))]
    fn parses_exact_amounts(#[case] text: &str, #[case] expected: Result<i64, FaultCode>) {
        assert_eq!(
            Amount::parse(text).map(Amount::micros).map_err(|p| p.code),
            expected
        );
    }

    #[rstest]
    #[case::as_written("9.99", Some("9.99"))]
    #[case::whole("5", Some("5"))]
    #[case::negative("-3.5", Some("-3.5"))]
    #[case::exponent("1e2", Some("100"))]
    #[case::six_decimals("0.000001", Some("0.000001"))]
    #[case::noise_above("9.990000000000002", Some("9.99"))]
    #[case::noise_below("0.30000000000000004", Some("0.3"))]
    #[case::noise_of_another_kind("29.989999999999998", Some("29.99"))]
    #[case::half_to_the_even_below("0.0000005", Some("0"))]
    #[case::half_to_the_even_above("0.0000015", Some("0.000002"))]
    #[case::more_than_half("0.00000050000000001", Some("0.000001"))]
    #[case::negative_half("-0.0000015", Some("-0.000002"))]
    #[case::tiny("1e-300", Some("0"))]
    #[case::absurdly_tiny("1e-99999999999999999999", Some("0"))]
    #[case::zero_with_an_absurd_exponent("0e99999999999999999999", Some("0"))]
    #[case::largest("999999999999.999999", Some("999999999999.999999"))]
    #[case::rounded_past_the_largest("999999999999.9999999", None)]
    #[case::thirteen_digits("1000000000000", None)]
    #[case::thirteen_digits_and_noise("1000000000000.0000001", None)]
    #[case::huge("1e300", None)]
    #[case::absurdly_huge("1e99999999999999999999", None)]
    fn rounds_json_numbers(#[case] digits: &str, #[case] expected: Option<&str>) {
        let found = Amount::parse_number(digits).ok().map(|it| it.to_string());
        assert_eq!(found.as_deref(), expected);
    }

    #[rstest]
    #[case::decimal("9.99", Ok("9.99"))]
    #[case::whole("5", Ok("5"))]
    #[case::leading_zeros("0009.90", Ok("9.9"))]
    #[case::negative("-3.5", Ok("-3.5"))]
    #[case::minus_zero("-0", Ok("0"))]
    #[case::twelve_digits_with_zeros("000000000001", Ok("1"))]
    #[case::thirteen_digits_with_zeros("0000000000001", Err(FaultCode::OutOfRange))]
    #[case::seven_decimals_with_zeros("9.9000000", Err(FaultCode::OutOfRange))]
    #[case::capital_exponent("1E3", Err(FaultCode::InvalidFormat))]
    #[case::largest("999999999999.999999", Ok("999999999999.999999"))]
    #[case::exponent("1e3", Err(FaultCode::InvalidFormat))]
    #[case::grouped("1_000", Err(FaultCode::InvalidFormat))]
    #[case::plus("+5", Err(FaultCode::InvalidFormat))]
    #[case::no_whole(".5", Err(FaultCode::InvalidFormat))]
    #[case::no_fraction("5.", Err(FaultCode::InvalidFormat))]
    #[case::comma("9,99", Err(FaultCode::InvalidFormat))]
    #[case::blank(" 9.99", Err(FaultCode::InvalidFormat))]
    #[case::thirteen_digits("1000000000000", Err(FaultCode::OutOfRange))]
    #[case::seven_decimals("0.0000001", Err(FaultCode::OutOfRange))]
    #[case::empty("", Err(FaultCode::InvalidFormat))]
    #[case::sign_alone("-", Err(FaultCode::InvalidFormat))]
    #[case::other_digits("٣", Err(FaultCode::InvalidFormat))]
    #[case::two_points("1.2.3", Err(FaultCode::InvalidFormat))]
    fn parses_amounts_in_text(#[case] text: &str, #[case] expected: Result<&str, FaultCode>) {
        let found = Amount::parse_text(text).map(|it| it.to_string());
        assert_eq!(
            found.map_err(|problem| problem.code),
            expected.map(str::to_owned)
        );
    }

    proptest! {
        #[test]
        fn no_number_panics(digits in "-?[0-9]{1,30}(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,25})?") {
            let _any = Amount::parse_number(&digits);
        }

        #[test]
        fn amounts_round_trip_through_text(micros in -999_999_999_999_999_999..=999_999_999_999_999_999_i64) {
            let amount = Amount::from_micros(micros);
            let text = amount.to_string();
            prop_assert_eq!(Amount::parse(&text), Ok(amount));
            prop_assert_eq!(Amount::parse_number(&text), Ok(amount));
            prop_assert_eq!(Amount::parse_text(&text), Ok(amount));
        }
    }
}
