//! Percent-encoding, and cleaning of external text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Meaning of `+`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlusDecoding {
    /// A space, as in form encoding.
    Space,
    /// A literal plus, because an opaque id may contain one.
    Itself,
}

/// Percent-decodes once. An invalid escape stays as it is, and invalid UTF-8 becomes the
/// replacement character.
pub(crate) fn decode(text: &str, plus: PlusDecoding) -> Cow<'_, str> {
    let is_coded = |byte: u8| byte == b'%' || (byte == b'+' && plus == PlusDecoding::Space);
    if !text.bytes().any(is_coded) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| escaped(after)).flatten();
        rest = escaped.map_or(after, |_| &after[2..]);
        bytes.push(match (first, escaped) {
            (_, Some(byte)) => byte,
            (b'+', None) if plus == PlusDecoding::Space => b' ',
            (byte, None) => *byte,
        });
    }
    let decoded = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Cow::Owned(decoded)
}

fn escaped(after: &[u8]) -> Option<u8> {
    let digit = |index: usize| char::from(*after.get(index)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

/// Percent-encodes every character with a special meaning in a URL.
pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .fold(String::with_capacity(text.len()), |mut encoded, byte| {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
                encoded.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _infallible = write!(encoded, "%{byte:02X}");
            }
            encoded
        })
}

/// Removes control characters and outer whitespace, and cuts the text. Returns `None` if nothing is
/// left.
pub(crate) fn cleaned(text: &str, chars_max: usize) -> Option<String> {
    let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
    // Nearly every text is printable ASCII, which needs only one copy.
    let is_plain = text.bytes().all(is_printable) || !text.contains(char::is_control);
    if !is_plain {
        let plain: String = text.chars().filter(|c| !c.is_control()).collect();
        return cleaned(&plain, chars_max);
    }
    let trimmed = text.trim();
    (!trimmed.is_empty()).then(|| cut(trimmed, chars_max).to_owned())
}

/// Returns the first characters of a text.
pub(crate) fn cut(text: &str, chars_max: usize) -> &str {
    // No text has more characters than bytes.
    if text.len() <= chars_max {
        return text;
    }
    let end = text.char_indices().nth(chars_max).map(|(end, _)| end);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("abc", "abc")]
    #[case::escaped("a%20b%2Fc", "a b/c")]
    #[case::once("%2525", "%25")]
    #[case::lower_case("%c3%a4", "ä")]
    #[case::half_an_escape("50%", "50%")]
    #[case::invalid_escape("%zz%4", "%zz%4")]
    #[case::sign_is_not_a_digit("%+1", "%+1")]
    #[case::not_utf_8("%ff", "\u{fffd}")]
    #[case::several("%41b+%2B", "Ab++")]
    fn decodes_once(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(decode(text, PlusDecoding::Itself), expected);
    }

    #[test]
    fn a_plus_is_a_space_only_in_form_encoding() {
        assert_eq!(decode("a+b%2Bc", PlusDecoding::Space), "a b+c");
        assert_eq!(decode("a+b%2Bc", PlusDecoding::Itself), "a+b+c");
    }

    #[rstest]
    #[case::whole(" abc ", 3, Some("abc"))]
    #[case::cut_by_characters("äöü", 2, Some("äö"))]
    #[case::control_characters("a\r\nb\0c\u{85}", 9, Some("abc"))]
    #[case::white_space_after_a_control_character("\0 a", 9, Some("a"))]
    #[case::cut_after_control_characters("\0äöü", 2, Some("äö"))]
    #[case::whole_by_characters("äöü", 3, Some("äöü"))]
    #[case::not_ascii_but_plain("\u{a0}ä\u{a0}", 9, Some("ä"))]
    #[case::nothing_left(" \t\0 ", 9, None)]
    fn cleans_text(#[case] text: &str, #[case] chars: usize, #[case] expected: Option<&str>) {
        assert_eq!(cleaned(text, chars).as_deref(), expected);
    }

    proptest! {
        #[test]
        fn encoding_round_trips(text in ".*") {
            let encoded = encode(&text);
            prop_assert_eq!(decode(&encoded, PlusDecoding::Space), text);
        }

        #[test]
        fn encoded_text_is_safe_in_urls(text in ".*") {
            let safe = |b: u8| b.is_ascii_alphanumeric() || b"-._~%".contains(&b);
            prop_assert!(encode(&text).bytes().all(safe));
        }
    }
}
