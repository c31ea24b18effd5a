//! CSV fields that are safe to open in a spreadsheet.

use std::borrow::Cow;

/// Escapes a field. Text that a spreadsheet would run as a formula gets a leading quote; numbers
/// stay as they are.
pub fn spreadsheet_field(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number(text) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    !digits.is_empty() && digits.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("a b", "a b")]
    #[case::empty("", "")]
    #[case::formula("=1+1", "'=1+1")]
    #[case::mention("@x", "'@x")]
    #[case::tab("\tx", "'\tx")]
    #[case::negative("-9.99", "-9.99")]
    #[case::minus_alone("-", "'-")]
    #[case::minus_formula("-1+cmd", "'-1+cmd")]
    fn formulas_are_escaped(#[case] text: &str, #[case] written: &str) {
        assert_eq!(spreadsheet_field(text), written);
    }
}
