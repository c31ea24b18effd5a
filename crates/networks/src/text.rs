//! Text encodings for URLs and bodies.

use std::fmt::Write as _;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;

const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

/// Percent-encodes everything except letters, digits and `-._~`.
pub(crate) fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _infallible = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

/// Encodes `name=value&…` for a query or a form.
pub(crate) fn form_encode(pairs: &[(&str, &str)]) -> String {
    let written: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
        .collect();
    written.join("&")
}

/// Formats a time as RFC 3339 in UTC, with milliseconds only if they are not zero.
pub(crate) fn rfc3339(moment: Timestamp) -> String {
    let millis = moment.as_millis().rem_euclid(MILLIS_PER_DAY);
    let (seconds, fraction) = (millis / 1_000, millis % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let fraction = match fraction {
        0 => String::new(),
        fraction => format!(".{fraction:03}"),
    };
    let day = Day::of(moment);
    format!("{day}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Returns all numbers between `before` and `after` in a text.
pub(crate) fn numbers_between<'a>(
    text: &'a str,
    before: &'a str,
    after: char,
) -> impl Iterator<Item = usize> {
    text.split(before).skip(1).filter_map(move |rest| {
        let (number, _) = rest.split_once(after)?;
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| number.parse().ok())?
    })
}

/// Returns the batch indexes that a network named: sorted, unique and within the batch.
pub(crate) fn valid_indexes(named: impl Iterator<Item = usize>, sent: usize) -> Vec<usize> {
    let indexes: std::collections::BTreeSet<usize> = named.filter(|index| *index < sent).collect();
    indexes.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("EAAB-1._~", "EAAB-1._~")]
    #[case::reserved("a b+c/d=e&f|g%", "a%20b%2Bc%2Fd%3De%26f%7Cg%25")]
    #[case::wide("é", "%C3%A9")]
    fn percent_encodes(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(percent_encoded(text), expected);
    }

    #[rstest]
    #[case::with_millis(1_794_657_600_123, "2026-11-14T12:00:00.123Z")]
    #[case::a_few_millis(1_794_657_600_007, "2026-11-14T12:00:00.007Z")]
    #[case::without(1_794_657_900_000, "2026-11-14T12:05:00Z")]
    #[case::the_last_of_a_day(1_794_700_799_999, "2026-11-14T23:59:59.999Z")]
    #[case::before_1970(-1, "1969-12-31T23:59:59.999Z")]
    fn formats_times(#[case] millis: i64, #[case] expected: &str) {
        assert_eq!(rfc3339(Timestamp::from_millis(millis)), expected);
    }

    #[rstest]
    #[case::one("events.events[3].currency", vec![3])]
    #[case::short_prefix("events[0]", vec![0])]
    #[case::several("events[1].a, events[2].b", vec![1, 2])]
    #[case::no_number("events[x]", vec![])]
    #[case::none("destinations[0]", vec![])]
    #[case::signed("events[+1]", vec![])]
    #[case::empty("events[]", vec![])]
    fn finds_numbers_between_delimiters(#[case] text: &str, #[case] expected: Vec<usize>) {
        let found: Vec<usize> = numbers_between(text, "events[", ']').collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn indexes_are_sorted_unique_and_in_range() {
        assert_eq!(valid_indexes([5, 1, 1, 0].into_iter(), 5), [0, 1]);
    }
}
