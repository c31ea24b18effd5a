//! Amounts as people and spreadsheets write them: `1,212.50`, `1.212,50`, `$1,212.50`, `1 212,50`.

use crate::vocabulary::currency::Currency;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::money::Amount;

/// Digits between two thousands separators.
const GROUP_DIGITS: usize = 3;
/// Most characters of a currency mark, as in `CA$`.
const MARK_CHARS_MAX: usize = 3;
/// Currency symbols. Those that several currencies share name no currency.
const SYMBOLS: [(char, Option<&str>); 12] = [
    ('$', None),
    ('¥', None),
    ('€', Some("EUR")),
    ('£', Some("GBP")),
    ('₹', Some("INR")),
    ('₩', Some("KRW")),
    ('₽', Some("RUB")),
    ('₺', Some("TRY")),
    ('₫', Some("VND")),
    ('₴', Some("UAH")),
    ('₪', Some("ILS")),
    ('฿', Some("THB")),
];
/// Characters that only ever separate thousands: spaces of four widths and two apostrophes.
const GROUP_MARKS: [char; 6] = [' ', '\u{a0}', '\u{202f}', '\u{2009}', '\'', '’'];

/// The character between whole units and decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalMark {
    /// `1,212.50`.
    Point,
    /// `1.212,50`.
    Comma,
}

impl DecimalMark {
    const fn as_char(self) -> char {
        match self {
            Self::Point => '.',
            Self::Comma => ',',
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Point => Self::Comma,
            Self::Comma => Self::Point,
        }
    }
}

/// An amount, with the currency that its symbol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenAmount {
    /// The amount.
    pub amount: Amount,
    /// The currency of a symbol or code beside the digits. `$` names none, because several
    /// currencies use it.
    pub currency: Option<Currency>,
}

/// What the separators of one amount say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separators {
    /// No point and no comma.
    None,
    /// The decimal mark is certain, even if this amount has no decimals.
    Certain(DecimalMark),
    /// One mark before exactly three digits: thousands or decimals.
    Either(DecimalMark),
}

/// Returns the decimal mark of a column of amounts, if some amounts show it and none contradicts.
/// So `1,212` can be read in a file that also contains `12.50`.
pub fn decimal_mark<'a>(amounts: impl IntoIterator<Item = &'a str>) -> Option<DecimalMark> {
    let mut found = None;
    for text in amounts {
        let Some(parts) = split(text) else { continue };
        if let Separators::Certain(mark) = separators(parts.digits) {
            if found.is_some_and(|earlier| earlier != mark) {
                return None;
            }
            found = Some(mark);
        }
    }
    found
}

/// Parses an amount. `column` is the decimal mark of the other amounts in its column, if known.
///
/// The last of two different marks separates the decimals; a mark that occurs twice separates
/// thousands. A single point separates decimals, as in the REST API, unless the column uses commas.
/// A single comma before exactly three digits is refused unless the column says what it means.
pub fn parse_written_amount(
    text: &str,
    column: Option<DecimalMark>,
) -> Result<WrittenAmount, Problem> {
    let invalid = || {
        Problem::new(
            FaultCode::InvalidFormat,
            "Must be an amount, for example 1212.50, 1,212.50 or 1.212,50.",
        )
    };
    let parts = split(text).ok_or_else(invalid)?;
    let currency = parts.currency().map_err(|UnknownMark| invalid())?;
    let mark = match (separators(parts.digits), column) {
        (Separators::Certain(mark), _) | (Separators::Either(_), Some(mark)) => mark,
        (Separators::None, _) | (Separators::Either(DecimalMark::Point), None) => {
            DecimalMark::Point
        }
        (Separators::Either(DecimalMark::Comma), None) => {
            let message = "The comma may separate thousands or decimals. Write the amount with two \
                           decimals, such as 1,212.50 or 1212,50.";
            return Err(Problem::new(FaultCode::InvalidFormat, message));
        }
    };
    let (whole, fraction) = match parts.digits.rsplit_once(mark.as_char()) {
        Some((whole, fraction)) => (whole, fraction),
        None => (parts.digits, "0"),
    };
    let whole = ungrouped(whole, mark.other()).ok_or_else(invalid)?;
    let sign = if parts.is_negative { "-" } else { "" };
    let amount = Amount::parse_text(&format!("{sign}{whole}.{fraction}"))?;
    Ok(WrittenAmount { amount, currency })
}

/// An amount's text: digits with separators, and what surrounds them.
struct AmountParts<'a> {
    before: &'a str,
    digits: &'a str,
    after: &'a str,
    is_negative: bool,
}

fn split(text: &str) -> Option<AmountParts<'_>> {
    let text = text.trim();
    let first = text.find(|c: char| c.is_ascii_digit())?;
    let last = text.rfind(|c: char| c.is_ascii_digit())?;
    let (before, digits) = (&text[..first], &text[first..=last]);
    let (unsigned, is_negative) = match before.strip_prefix(['-', '−']) {
        Some(rest) => (rest, true),
        None => match before.strip_suffix(['-', '−']) {
            Some(rest) => (rest, true),
            None => (before, false),
        },
    };
    Some(AmountParts {
        before: unsigned.trim(),
        digits,
        after: text[last + 1..].trim(),
        is_negative,
    })
}

/// The text beside the digits is no currency.
struct UnknownMark;

impl AmountParts<'_> {
    /// Returns the currency beside the digits.
    fn currency(&self) -> Result<Option<Currency>, UnknownMark> {
        match (currency_of(self.before)?, currency_of(self.after)?) {
            (Some(one), Some(other)) if one != other => Err(UnknownMark),
            (found, other) => Ok(found.or(other)),
        }
    }
}

/// Reads a currency mark: nothing, a code, or a symbol with up to two letters.
fn currency_of(mark: &str) -> Result<Option<Currency>, UnknownMark> {
    let Some(symbol) = mark.chars().next_back() else {
        return Ok(None);
    };
    if let Ok(code) = Currency::parse(mark) {
        return Ok(Some(code));
    }
    let mut letters = mark.chars().rev().skip(1);
    let fits =
        mark.chars().count() <= MARK_CHARS_MAX && letters.all(|letter| letter.is_ascii_uppercase());
    let mut symbols = SYMBOLS.iter().filter(|(known, _)| *known == symbol && fits);
    let (_, code) = symbols.next().ok_or(UnknownMark)?;
    let code = if mark == "US$" { Some("USD") } else { *code };
    Ok(code.and_then(Currency::from_stored))
}

fn separators(digits: &str) -> Separators {
    let count = |mark: DecimalMark| digits.matches(mark.as_char()).count();
    let has_group_marks = digits.contains(GROUP_MARKS);
    let last = digits.rfind(['.', ',']);
    let last = last.map(|at| {
        if digits[at..].starts_with('.') {
            (at, DecimalMark::Point)
        } else {
            (at, DecimalMark::Comma)
        }
    });
    let Some((at, mark)) = last else {
        return Separators::None;
    };
    if count(mark.other()) > 0 || (has_group_marks && count(mark) == 1) {
        return Separators::Certain(mark);
    }
    if count(mark) > 1 {
        return Separators::Certain(mark.other());
    }
    let (whole, decimals) = (&digits[..at], &digits[at + 1..]);
    let may_be_group = decimals.len() == GROUP_DIGITS
        && (1..=GROUP_DIGITS).contains(&whole.len())
        && !whole.starts_with('0');
    if may_be_group {
        Separators::Either(mark)
    } else {
        Separators::Certain(mark)
    }
}

/// Removes thousands separators. Groups must have three digits, and all separators must be equal.
fn ungrouped(whole: &str, group: DecimalMark) -> Option<String> {
    let is_separator = |c: char| c == group.as_char() || GROUP_MARKS.contains(&c);
    let Some(separator) = whole.chars().find(|c| is_separator(*c)) else {
        return Some(whole.to_owned());
    };
    let groups: Vec<&str> = whole.split(separator).collect();
    let (first, others) = groups.split_first()?;
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=GROUP_DIGITS).contains(&first.len())
        && is_digits(first)
        && others
            .iter()
            .all(|part| part.len() == GROUP_DIGITS && is_digits(part));
    fits.then(|| groups.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("1212.50", "1212.5", "")]
    #[case::whole("1212", "1212", "")]
    #[case::english("1,212.50", "1212.5", "")]
    #[case::german("1.212,50", "1212.5", "")]
    #[case::decimal_comma("12,5", "12.5", "")]
    #[case::dollars("$1,212.50", "1212.5", "")]
    #[case::us_dollars("US$1,212.50", "1212.5", "USD")]
    #[case::canadian_dollars("CA$ 1,212.50", "1212.5", "")]
    #[case::euros("1.212,50 €", "1212.5", "EUR")]
    #[case::pounds("£0.99", "0.99", "GBP")]
    #[case::code_before("EUR 1 212,50", "1212.5", "EUR")]
    #[case::code_behind("1,212.50 CHF", "1212.5", "CHF")]
    #[case::symbol_and_code("$5.00 AUD", "5", "AUD")]
    #[case::french("1 212,50", "1212.5", "")]
    #[case::no_break_space("1\u{a0}212,50", "1212.5", "")]
    #[case::narrow_space("1\u{202f}212\u{202f}000,50", "1212000.5", "")]
    #[case::swiss("1’212.50", "1212.5", "")]
    #[case::apostrophe("1'212'000.5", "1212000.5", "")]
    #[case::millions("1,212,000", "1212000", "")]
    #[case::german_millions("1.212.000", "1212000", "")]
    #[case::german_millions_with_cents("1.212.000,05", "1212000.05", "")]
    #[case::grouped_by_spaces_alone("1 212", "1212", "")]
    #[case::point_before_three_digits("1.212", "1.212", "")]
    #[case::comma_after_zero("0,212", "0.212", "")]
    #[case::comma_after_four_digits("1234,567", "1234.567", "")]
    #[case::six_decimals("0.000001", "0.000001", "")]
    #[case::surrounded("  12.50 ", "12.5", "")]
    #[case::negative("-$5.25", "-5.25", "")]
    #[case::negative_inside("$-5.25", "-5.25", "")]
    #[case::minus_sign("−5", "-5", "")]
    #[case::leading_zeros("0012.50", "12.5", "")]
    fn parses_what_people_write(#[case] text: &str, #[case] amount: &str, #[case] currency: &str) {
        let found = parse_written_amount(text, None).unwrap();
        assert_eq!(found.amount.to_string(), amount);
        assert_eq!(
            found.currency.as_ref().map_or("", Currency::as_str),
            currency
        );
    }

    #[rstest]
    #[case::ambiguous("1,212")]
    #[case::ambiguous_with_a_symbol("$12,000")]
    #[case::uneven_groups("1,21,000")]
    #[case::short_group("1,2.50")]
    #[case::long_group("1,2125.50")]
    #[case::groups_after_the_decimals("1.212,500,00")]
    #[case::two_kinds_of_groups("1 212'000.50")]
    #[case::group_of_four_first("1212,000.50")]
    #[case::two_decimal_marks("1,212.50.10")]
    #[case::empty("")]
    #[case::words("none")]
    #[case::dashes("--")]
    #[case::percent("12.5%")]
    #[case::two_numbers("12 / 5")]
    #[case::exponent("1e3")]
    #[case::unknown_mark("XXQ 5")]
    #[case::two_currencies("€5 GBP")]
    #[case::minus_behind("5-")]
    #[case::parentheses("(5.00)")]
    #[case::no_whole(".50,1")]
    #[case::other_digits("٣")]
    #[case::thirteen_digits("1,000,000,000,000.00")]
    #[case::seven_decimals("0.0000001")]
    fn refuses_what_is_no_amount_or_ambiguous(#[case] text: &str) {
        let found = parse_written_amount(text, None);
        assert!(found.is_err(), "{found:?}");
    }

    #[rstest]
    #[case::english(&["12.50", "1,212"], Some(DecimalMark::Point))]
    #[case::german(&["12,50", "1.212"], Some(DecimalMark::Comma))]
    #[case::grouped_by_commas(&["1,212,000"], Some(DecimalMark::Point))]
    #[case::grouped_by_spaces(&["1 212,50"], Some(DecimalMark::Comma))]
    #[case::nothing_certain(&["1,212", "5", "--", ""], None)]
    #[case::both(&["12,50", "12.50"], None)]
    fn a_column_shows_its_decimal_mark(
        #[case] amounts: &[&str],
        #[case] expected: Option<DecimalMark>,
    ) {
        assert_eq!(decimal_mark(amounts.iter().copied()), expected);
    }

    #[rstest]
    #[case("1,212", DecimalMark::Point, "1212")]
    #[case("1,212", DecimalMark::Comma, "1.212")]
    #[case("1.212", DecimalMark::Point, "1.212")]
    #[case("1.212", DecimalMark::Comma, "1212")]
    #[case("1212", DecimalMark::Comma, "1212")]
    fn the_column_decides_an_ambiguous_amount(
        #[case] text: &str,
        #[case] column: DecimalMark,
        #[case] expected: &str,
    ) {
        let found = parse_written_amount(text, Some(column)).unwrap();
        assert_eq!(found.amount.to_string(), expected);
    }

    /// Writes an amount with two decimals and separators.
    fn written(cents: u64, group: &str, mark: char) -> String {
        let whole = (cents / 100).to_string();
        let mut grouped = String::new();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index).is_multiple_of(GROUP_DIGITS) {
                grouped.push_str(group);
            }
            grouped.push(digit);
        }
        format!("{grouped}{mark}{:02}", cents % 100)
    }

    proptest! {
        #[test]
        fn all_styles_mean_the_same(cents in 0..=99_999_999_999_999_u64) {
            let expected = Amount::from_micros(i64::try_from(cents * 10_000).unwrap());
            for (group, mark) in [("", '.'), (",", '.'), (".", ','), (" ", ','), ("’", '.')] {
                let text = written(cents, group, mark);
                let found = parse_written_amount(&text, None).map(|found| found.amount);
                prop_assert_eq!(found, Ok(expected), "{}", text);
            }
        }

        #[test]
        fn nothing_panics(text in ".{0,20}", digits in "[-$€ 0-9.,']{0,20}") {
            for text in [text, digits] {
                let _any = parse_written_amount(&text, decimal_mark([&*text]));
            }
        }
    }
}
