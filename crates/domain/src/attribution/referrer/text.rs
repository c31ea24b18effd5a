//! Reading what passed through several hands, each of which may have encoded it once more.

use crate::click::encoding::{self, Plus};

/// Times a referrer is decoded: the links of some networks encode it twice.
const DECODINGS_MAX: usize = 2;

/// How the usual tools say that a field has no value.
const EMPTY_VALUES: &[&str] = &["(not set)", "(none)", "(direct)"];

/// The text as it is, then decoded once more, and once more, as long as that changes anything.
pub(super) fn decodings(text: &str) -> Vec<String> {
    let mut readings = vec![text.to_owned()];
    for _ in 0..DECODINGS_MAX {
        match readings
            .last()
            .map(|last| (encoding::decode(last, Plus::Itself), last))
        {
            Some((decoded, last)) if decoded != *last => readings.push(decoded),
            _ => break,
        }
    }
    readings
}

/// The first value of a parameter; names are compared without case.
pub(super) fn parameter<'a>(reading: &'a str, name: &str) -> Option<&'a str> {
    let pairs = reading.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .into_iter()
        .find(|(key, _)| key.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// A value without what is no part of it. Nothing when that leaves nothing, or a macro that nobody replaced.
pub(super) fn cleaned(value: &str, chars_max: usize) -> Option<String> {
    let value = encoding::decode(value, Plus::Itself);
    let macro_left =
        value.contains(['{', '}']) || (value.starts_with("__") && value.ends_with("__"));
    let empty = EMPTY_VALUES
        .iter()
        .any(|word| value.trim().eq_ignore_ascii_case(word));
    if macro_left || empty {
        None
    } else {
        encoding::cleaned(&value, chars_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::nothing_to_decode("a=b", &["a=b"])]
    #[case::once("a%3Db", &["a%3Db", "a=b"])]
    #[case::twice("a%253Db", &["a%253Db", "a%3Db", "a=b"])]
    #[case::not_more_than_twice("a%25253Db", &["a%25253Db", "a%253Db", "a%3Db"])]
    #[case::what_is_no_escape_stays("50%&%zz%4", &["50%&%zz%4"])]
    #[case::not_unicode("%ff", &["%ff", "\u{fffd}"])]
    fn a_text_is_read_as_it_is_and_decoded(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(decodings(text), expected);
    }

    #[rstest]
    #[case::plain("spring", Some("spring"))]
    #[case::still_encoded("a%20sale", Some("a sale"))]
    #[case::blank("  ", None)]
    #[case::not_set("(Not Set)", None)]
    #[case::macro_in_braces("{campaignid}", None)]
    #[case::macro_in_underscores("__CAMPAIGN_ID__", None)]
    #[case::control_characters("a%00b\u{7}", Some("ab"))]
    #[case::cut("0123456789abc", Some("0123456789"))]
    fn a_value_is_cleaned(#[case] value: &str, #[case] expected: Option<&str>) {
        assert_eq!(cleaned(value, 10).as_deref(), expected);
    }
}
