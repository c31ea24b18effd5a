//! JSON numbers, parsed digit by digit without a float.

use crate::vocabulary::money::{AMOUNT_DECIMALS_MAX, AMOUNT_INTEGER_DIGITS_MAX};

/// Number of digits that always fit 64 bits.
const DIGITS_MAX: usize = AMOUNT_INTEGER_DIGITS_MAX + AMOUNT_DECIMALS_MAX;
/// Number of digits of the largest 64-bit integer.
const WHOLE_DIGITS_MAX: usize = 19;

/// Parses a JSON number in units of its `decimals`-th decimal, rounded half to even; `None` beyond
/// `DIGITS_MAX` digits.
pub fn parse_rounded(digits: &str, decimals: usize) -> Option<i64> {
    let number = Number::parse(digits)?;
    let significant = number.significant.as_str();
    if significant.is_empty() {
        return Some(0);
    }
    let power = number.power.saturating_add(i64::try_from(decimals).ok()?);
    let magnitude = if power >= 0 {
        let zeros = usize::try_from(power).ok()?;
        if significant.len().saturating_add(zeros) > DIGITS_MAX {
            return None;
        }
        format!("{significant}{}", "0".repeat(zeros)).parse().ok()?
    } else {
        round_off(significant, usize::try_from(power.unsigned_abs()).ok()?)?
    };
    Some(if number.is_negative {
        -magnitude
    } else {
        magnitude
    })
}

/// Parses a whole JSON number in any notation: languages without integers send `1.0` and
/// `1.794727e12`. Saturates at 64 bits; `None` if it has a fraction.
pub fn parse_whole(digits: &str) -> Option<i64> {
    let number = Number::parse(digits)?;
    let significant = number.significant.as_str();
    let (sign, end) = if number.is_negative {
        ("-", i64::MIN)
    } else {
        ("", i64::MAX)
    };
    if significant.is_empty() {
        return Some(0);
    }
    let shift = usize::try_from(number.power.unsigned_abs()).ok()?;
    if number.power < 0 {
        let (kept, fraction) = significant.split_at(significant.len().checked_sub(shift)?);
        let is_whole = fraction.bytes().all(|digit| digit == b'0');
        return is_whole.then(|| format!("{sign}{kept}").parse().unwrap_or(end));
    }
    if significant.len().saturating_add(shift) > WHOLE_DIGITS_MAX {
        return Some(end);
    }
    let text = format!("{sign}{significant}{}", "0".repeat(shift));
    Some(text.parse().unwrap_or(end))
}

/// A parsed JSON number: the significant digits times ten to the power.
struct Number {
    is_negative: bool,
    /// Digits without leading zeros; empty for zero.
    significant: String,
    power: i64,
}

impl Number {
    fn parse(digits: &str) -> Option<Self> {
        let unsigned = digits.strip_prefix('-');
        let rest = unsigned.unwrap_or(digits);
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        Some(Self {
            is_negative: unsigned.is_some(),
            significant: all.trim_start_matches('0').to_owned(),
            power: exponent_of(exponent).saturating_sub(i64::try_from(fraction.len()).ok()?),
        })
    }
}

/// Parses an exponent and saturates.
fn exponent_of(text: &str) -> i64 {
    let end = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    text.parse().unwrap_or(end)
}

/// Drops the last digits, rounded half to even.
fn round_off(significant: &str, last: usize) -> Option<i64> {
    let Some(kept) = significant.len().checked_sub(last) else {
        return Some(0);
    };
    if kept > DIGITS_MAX {
        return None;
    }
    let (kept, dropped) = significant.split_at(kept);
    let number: i64 = if kept.is_empty() {
        0
    } else {
        kept.parse().ok()?
    };
    let half = format!("5{}", "0".repeat(dropped.len() - 1));
    let rounds_up = match dropped.cmp(half.as_str()) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => number % 2 == 1,
        std::cmp::Ordering::Greater => true,
    };
    Some(number + i64::from(rounds_up))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::whole("390", 0, Some(390))]
    #[case::to_the_nearest("392.72727272727275", 0, Some(393))]
    #[case::hundredths("2.625", 2, Some(262))]
    #[case::hundredths_of_a_whole("3", 2, Some(300))]
    #[case::negative("-1", 0, Some(-1))]
    #[case::too_many("1e30", 0, None)]
    fn rounds_half_to_even(
        #[case] digits: &str,
        #[case] decimals: usize,
        #[case] expected: Option<i64>,
    ) {
        assert_eq!(parse_rounded(digits, decimals), expected);
    }

    #[rstest]
    #[case::zero("0", Some(0))]
    #[case::zero_of_a_float("-0.0", Some(0))]
    #[case::zero_with_an_absurd_exponent("0e99999999999999999999", Some(0))]
    #[case::float("1794727000000.0", Some(1_794_727_000_000))]
    #[case::negative_float("-1.0", Some(-1))]
    #[case::exponent("1.794727e12", Some(1_794_727_000_000))]
    #[case::exponent_with_a_sign("1E+3", Some(1_000))]
    #[case::negative_exponent("1000e-3", Some(1))]
    #[case::largest("9223372036854775807", Some(i64::MAX))]
    #[case::smallest("-9223372036854775808", Some(i64::MIN))]
    #[case::too_large("9223372036854775808", Some(i64::MAX))]
    #[case::too_large_and_a_float("99999999999999999999999.00", Some(i64::MAX))]
    #[case::too_small("-1e300", Some(i64::MIN))]
    #[case::absurdly_huge("1e99999999999999999999", Some(i64::MAX))]
    #[case::fraction("1.5", None)]
    #[case::fraction_behind_an_exponent("1.7947271e6", None)]
    #[case::small("0.5", None)]
    #[case::tiny("1e-300", None)]
    #[case::absurdly_tiny("1e-99999999999999999999", None)]
    fn parses_whole_numbers_in_any_notation(#[case] digits: &str, #[case] expected: Option<i64>) {
        assert_eq!(parse_whole(digits), expected);
    }

    proptest! {
        #[test]
        fn integers_are_parsed_exactly(number: i64) {
            prop_assert_eq!(parse_whole(&number.to_string()), Some(number));
            prop_assert_eq!(parse_whole(&format!("{number}.0")), Some(number));
        }

        #[test]
        fn amounts_that_fit_are_not_rounded(micros in -999_999_999_999_999_999..=999_999_999_999_999_999_i64) {
            let digits = crate::vocabulary::money::Amount::from_micros(micros).to_string();
            prop_assert_eq!(parse_rounded(&digits, AMOUNT_DECIMALS_MAX), Some(micros));
        }

        #[test]
        fn nothing_panics(digits in "-?[0-9]{1,30}(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,25})?", decimals in 0..7_usize) {
            let _any = (parse_rounded(&digits, decimals), parse_whole(&digits));
        }
    }
}
