//! Numbers, amounts and changes as people read them.

use crate::vocabulary::currency::Currency;
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// Formats a count: `12,345`.
pub fn count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    if number < 0 {
        text.push('−');
    }
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats dollars: `$1,234.56`, rounded to cents, halves away from zero.
pub fn usd(amount: Amount) -> String {
    let per_cent = MICROS_PER_UNIT / 100;
    let micros = amount.micros();
    let cents = (micros.unsigned_abs() + per_cent.unsigned_abs() / 2) / per_cent.unsigned_abs();
    let sign = if micros < 0 && cents > 0 { "−" } else { "" };
    let whole = count(i64::try_from(cents / 100).unwrap_or(i64::MAX));
    format!("{sign}${whole}.{:02}", cents % 100)
}

/// Formats an amount with its currency: `1,234.50 EUR`, with at least two decimals and as many as
/// it has.
pub fn money(amount: Amount, currency: Currency) -> String {
    let (micros, unit) = (
        amount.micros().unsigned_abs(),
        MICROS_PER_UNIT.unsigned_abs(),
    );
    let sign = if amount.micros() < 0 { "−" } else { "" };
    let whole = count(i64::try_from(micros / unit).unwrap_or(i64::MAX));
    let decimals = format!("{:06}", micros % unit);
    let rest = decimals[2..].trim_end_matches('0');
    format!(
        "{sign}{whole}.{}{rest} {}",
        &decimals[..2],
        currency.as_str()
    )
}

/// Formats dollars like [`usd`], but without cents from $1,000 up, for places with little space.
pub fn usd_brief(amount: Amount) -> String {
    if amount.micros().unsigned_abs() < 1_000 * MICROS_PER_UNIT.unsigned_abs() {
        return usd(amount);
    }
    let dollars =
        (amount.micros() + amount.micros().signum() * MICROS_PER_UNIT / 2) / MICROS_PER_UNIT;
    let sign = if dollars < 0 { "−" } else { "" };
    format!("{sign}${}", count(dollars.abs()))
}

/// Formats a relative change: `+12 %`, or `+3.4 %` below ten percent. Finer digits would claim a
/// precision that figures of a few days do not have. Returns `None` if `before` is not positive.
pub fn change(before: i64, now: i64) -> Option<String> {
    if before <= 0 {
        return None;
    }
    let difference = i128::from(now) - i128::from(before);
    let before = u128::from(before.unsigned_abs());
    let tenths = (difference.unsigned_abs() * 1_000 + before / 2) / before;
    let sign = match difference {
        _ if tenths == 0 => "±",
        1.. => "+",
        _ => "−",
    };
    Some(if (1..100).contains(&tenths) {
        format!("{sign}{}.{} %", tenths / 10, tenths % 10)
    } else {
        let whole = i64::try_from((tenths + 5) / 10).unwrap_or(i64::MAX);
        format!("{sign}{} %", count(whole))
    })
}

/// Formats a share in millionths: `12.5 %`, rounded, halves up.
pub fn share(micros: i64) -> String {
    let tenths = (micros.max(0) + 500) / 1_000;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Formats a part of a whole: `36.9 %`, rounded, halves away from zero. A whole below one counts as
/// one.
pub fn percent(part: i64, whole: i64) -> String {
    let whole = u128::from(whole.max(1).unsigned_abs());
    let tenths = (u128::from(part.unsigned_abs()) * 1_000 + whole / 2) / whole;
    let sign = if part < 0 && tenths > 0 { "−" } else { "" };
    format!("{sign}{}.{} %", tenths / 10, tenths % 10)
}

/// Formats a ratio: `2.51`, rounded, halves away from zero.
pub fn ratio(amount: Amount) -> String {
    usd(amount).replace('$', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(0, "0")]
    #[case(999, "999")]
    #[case(1_000, "1,000")]
    #[case(1_234_567, "1,234,567")]
    #[case(-1_234, "−1,234")]
    fn formats_counts(#[case] number: i64, #[case] expected: &str) {
        assert_eq!(count(number), expected);
    }

    #[rstest]
    #[case("120.5", "120.50 USD")]
    #[case("1212.505", "1,212.505 USD")]
    #[case("-0.000001", "−0.000001 USD")]
    #[case("35", "35.00 USD")]
    fn formats_amounts_with_their_currency(#[case] amount: &str, #[case] expected: &str) {
        assert_eq!(
            money(Amount::parse(amount).unwrap(), Currency::USD),
            expected
        );
    }

    #[rstest]
    #[case("999.99", "$999.99")]
    #[case("1000.5", "$1,001")]
    #[case("-123456.4", "−$123,456")]
    fn formats_brief_dollars(#[case] amount: &str, #[case] expected: &str) {
        assert_eq!(usd_brief(Amount::parse(amount).unwrap()), expected);
    }

    #[rstest]
    #[case(1_000_000, "100.0 %")]
    #[case(333_333, "33.3 %")]
    #[case(666_667, "66.7 %")]
    #[case(499, "0.0 %")]
    fn formats_shares(#[case] micros: i64, #[case] expected: &str) {
        assert_eq!(share(micros), expected);
    }

    #[rstest]
    #[case::rounded_up(292, 792, "36.9 %")]
    #[case::rounded_down(1, 3, "33.3 %")]
    #[case::half(1, 2_000, "0.1 %")]
    #[case::half_of_an_odd_whole(1, 16, "6.3 %")]
    #[case::below_half(1, 2_001, "0.0 %")]
    #[case::everything(7, 7, "100.0 %")]
    #[case::nearly_everything(9_999, 10_000, "100.0 %")]
    #[case::loss(-1, 2_000, "−0.1 %")]
    #[case::hardly_a_loss(-1, 2_001, "0.0 %")]
    #[case::nothing(0, 0, "0.0 %")]
    #[case::largest(i64::MAX, i64::MAX, "100.0 %")]
    fn formats_parts(#[case] part: i64, #[case] whole: i64, #[case] expected: &str) {
        assert_eq!(percent(part, whole), expected);
    }

    #[rstest]
    #[case::more(100, 150, Some("+50 %"))]
    #[case::rounded(81, 91, Some("+12 %"))]
    #[case::small(1_000, 1_034, Some("+3.4 %"))]
    #[case::less(3, 2, Some("−33 %"))]
    #[case::a_little_less(1_000, 996, Some("−0.4 %"))]
    #[case::many_times(4, 504, Some("+12,500 %"))]
    #[case::the_same(5, 5, Some("±0 %"))]
    #[case::hardly_different(1_000_000, 1_000_001, Some("±0 %"))]
    #[case::from_nothing(0, 5, None)]
    #[case::from_a_loss(-5, 5, None)]
    fn formats_changes(#[case] before: i64, #[case] now: i64, #[case] expected: Option<&str>) {
        assert_eq!(change(before, now).as_deref(), expected);
    }

    #[rstest]
    #[case("0", "$0.00")]
    #[case("1234.5", "$1,234.50")]
    #[case("0.005", "$0.01")]
    #[case("-3.999", "−$4.00")]
    #[case("-0.001", "$0.00")]
    fn formats_dollars(#[case] amount: &str, #[case] expected: &str) {
        assert_eq!(usd(Amount::parse(amount).unwrap()), expected);
    }
}
