//! Numbers as JSON writes them, read exactly and rounded where that is meant.
//!
//! A program that computes with floats sends `9.990000000000002` and means 9.99. Such digits are noise, and
//! are rounded away; what was written with few digits is never changed.

use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::money::{AMOUNT_DECIMALS_MAX, AMOUNT_INTEGER_DIGITS_MAX, Amount};

/// Digits of what fits 64 bits for certain.
const DIGITS_MAX: usize = AMOUNT_INTEGER_DIGITS_MAX + AMOUNT_DECIMALS_MAX;

/// An amount in a JSON number.
pub(super) fn amount(digits: &str) -> Result<Amount, Problem> {
    Amount::parse(digits).or_else(|problem| {
        let micros = rounded(digits, AMOUNT_DECIMALS_MAX).ok_or(problem)?;
        // Rounding may have made one digit more of it.
        Amount::parse(&Amount::from_micros(micros).to_string())
    })
}

/// A JSON number in units of its `decimals`-th decimal, rounded half to even. Nothing when it has more than
/// [`DIGITS_MAX`] digits.
pub(super) fn rounded(digits: &str, decimals: usize) -> Option<i64> {
    let (is_negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits),
    };
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    // The number is the significant digits times ten to this.
    let power = exponent_of(exponent)
        .saturating_sub(i64::try_from(fraction.len()).ok()?)
        .saturating_add(i64::try_from(decimals).ok()?);
    let magnitude = if power >= 0 {
        let zeros = usize::try_from(power).ok()?;
        if significant.len().saturating_add(zeros) > DIGITS_MAX {
            return None;
        }
        format!("{significant}{}", "0".repeat(zeros)).parse().ok()?
    } else {
        cut(significant, usize::try_from(power.unsigned_abs()).ok()?)?
    };
    Some(if is_negative { -magnitude } else { magnitude })
}

/// An exponent; one that no number needs is as good as the largest.
fn exponent_of(text: &str) -> i64 {
    let end = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    text.parse().unwrap_or(end)
}

/// The digits without the last few, rounded half to even.
fn cut(significant: &str, last: usize) -> Option<i64> {
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
    let is_up = match dropped.cmp(half.as_str()) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => number % 2 == 1,
        std::cmp::Ordering::Greater => true,
    };
    Some(number + i64::from(is_up))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

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
    fn amounts(#[case] digits: &str, #[case] expected: Option<&str>) {
        let found = amount(digits).ok().map(|amount| amount.to_string());
        assert_eq!(found.as_deref(), expected);
    }

    #[rstest]
    #[case::whole("390", 0, Some(390))]
    #[case::to_the_nearest("392.72727272727275", 0, Some(393))]
    #[case::hundredths("2.625", 2, Some(262))]
    #[case::hundredths_of_a_whole("3", 2, Some(300))]
    #[case::negative("-1", 0, Some(-1))]
    #[case::too_many("1e30", 0, None)]
    fn roundings(#[case] digits: &str, #[case] decimals: usize, #[case] expected: Option<i64>) {
        assert_eq!(rounded(digits, decimals), expected);
    }

    proptest! {
        #[test]
        fn what_fits_is_not_changed(micros in -999_999_999_999_999_999..=999_999_999_999_999_999_i64) {
            let digits = Amount::from_micros(micros).to_string();
            prop_assert_eq!(rounded(&digits, AMOUNT_DECIMALS_MAX), Some(micros));
        }

        #[test]
        fn nothing_panics(digits in "-?[0-9]{1,30}(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,25})?", decimals in 0..7_usize) {
            let _any = (rounded(&digits, decimals), amount(&digits));
        }
    }
}
