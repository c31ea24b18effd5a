//! Decimals on their way out: digit by digit, so that no float is ever between us and the reader.

use serde_json::value::RawValue;
use tributary_domain::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// Hundredths in one.
const HUNDREDTHS: i64 = 100;

/// An amount as a JSON number.
pub(crate) fn number(amount: Amount) -> Option<Box<RawValue>> {
    RawValue::from_string(amount.to_string()).ok()
}

/// Hundredths as a JSON number: 85 is `0.85`.
pub(crate) fn hundredths(hundredths: u32) -> Option<Box<RawValue>> {
    let micros = i64::from(hundredths) * (MICROS_PER_UNIT / HUNDREDTHS);
    number(Amount::from_micros(micros))
}

/// Millionths divided by a number, rounded to the nearest; nothing where there is nothing to divide by.
pub(crate) fn ratio(micros: i64, by: i64) -> Option<Amount> {
    quotient(i128::from(micros), i128::from(by))
}

/// As [`ratio`], for numbers that an `i64` does not hold.
pub(crate) fn quotient(micros: i128, by: i128) -> Option<Amount> {
    if by <= 0 {
        return None;
    }
    let half = if micros < 0 { -by / 2 } else { by / 2 };
    let rounded = (micros + half) / by;
    i64::try_from(rounded).ok().map(Amount::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_rounded_once_and_never_divide_by_nothing() {
        let written = |micros, by| ratio(micros, by).map(|amount| amount.to_string());
        assert_eq!(written(1_000_000, 3).as_deref(), Some("0.333333"));
        assert_eq!(written(2_000_000, 3).as_deref(), Some("0.666667"));
        assert_eq!(written(-2_000_000, 3).as_deref(), Some("-0.666667"));
        assert_eq!(written(5, 0), None);
        assert_eq!(written(5, -1), None);
    }

    #[test]
    fn hundredths_are_written_exactly() {
        let written = |value| hundredths(value).map(|raw| raw.get().to_owned());
        assert_eq!(written(85).as_deref(), Some("0.85"));
        assert_eq!(written(100).as_deref(), Some("1"));
        assert_eq!(written(262).as_deref(), Some("2.62"));
        assert_eq!(written(0).as_deref(), Some("0"));
    }
}
