//! Decoding of text that may be encoded several times.

use crate::click::encoding::{self, PlusDecoding};

/// Maximum number of decodings. Some networks' links encode the referrer twice.
const DECODINGS_MAX: usize = 2;

/// Placeholders that analytics tools write for an empty field.
const EMPTY_VALUES: &[&str] = &["(not set)", "(none)", "(direct)"];

/// Returns the text, then the text decoded once more each time, as long as decoding changes it.
pub(super) fn decodings(text: &str) -> Vec<String> {
    let mut texts = vec![text.to_owned()];
    for _ in 0..DECODINGS_MAX {
        match texts.last().map(|last| {
            (
                encoding::decode(last, PlusDecoding::Itself).into_owned(),
                last,
            )
        }) {
            Some((decoded, last)) if decoded != *last => texts.push(decoded),
            _ => break,
        }
    }
    texts
}

/// Returns the first value of a parameter. The case of its name is ignored.
pub(super) fn parameter<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .into_iter()
        .find(|(key, _)| key.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// Cleans a value. Returns `None` if nothing is left or if the value is an unexpanded macro.
pub(super) fn cleaned(value: &str, chars_max: usize) -> Option<String> {
    let value = encoding::decode(value, PlusDecoding::Itself);
    let is_macro = value.contains(['{', '}']) || (value.starts_with("__") && value.ends_with("__"));
    let is_placeholder = EMPTY_VALUES
        .iter()
        .any(|word| value.trim().eq_ignore_ascii_case(word));
    if is_macro || is_placeholder {
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
    #[case::invalid_escapes_stay("50%&%zz%4", &["50%&%zz%4"])]
    #[case::not_unicode("%ff", &["%ff", "\u{fffd}"])]
    fn returns_the_text_and_its_decodings(#[case] text: &str, #[case] expected: &[&str]) {
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
    fn cleans_values(#[case] value: &str, #[case] expected: Option<&str>) {
        assert_eq!(cleaned(value, 10).as_deref(), expected);
    }
}
