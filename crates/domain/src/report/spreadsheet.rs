//! CSV files: their names, and fields that are safe to open in a spreadsheet.

use super::range::DayRange;
use std::borrow::Cow;

/// Maximum length of an app's name in a file name.
const APP_CHARS_MAX: usize = 40;

/// Returns the name of a report's file: `lantern-explore-2026-10-20_2026-11-18.csv`. The app's name
/// keeps its ASCII letters and digits, because browsers and file systems treat others differently.
pub fn report_file_name(app: &str, report: &str, days: &DayRange) -> String {
    let mut name = String::new();
    for character in app.chars() {
        if name.len() >= APP_CHARS_MAX {
            break;
        }
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_end_matches('-');
    let dash = if name.is_empty() { "" } else { "-" };
    format!("{name}{dash}{report}-{}_{}.csv", days.from, days.to)
}

/// Characters that begin a formula. Spreadsheets read the full-width forms like the ASCII ones.
const FORMULA_SIGNS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// Escapes a field. Text that a spreadsheet would run as a formula gets a leading quote; numbers
/// stay as they are.
pub fn spreadsheet_field(text: &str) -> Cow<'_, str> {
    if begins_like_formula(text) && !is_number(text) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns whether text begins with a formula sign. Spreadsheets drop leading white space and
/// control characters, so the sign may follow them. A leading tab or line break is escaped in any
/// case, because it can move what follows into another cell.
fn begins_like_formula(text: &str) -> bool {
    text.starts_with(['\t', '\r', '\n'])
        || text
            .trim_start_matches(is_dropped)
            .starts_with(FORMULA_SIGNS)
}

/// Returns whether spreadsheets may drop a character at the start of a field.
fn is_dropped(character: char) -> bool {
    // Invisible characters that are neither white space nor control characters: zero-width
    // characters, direction marks, word joiner and byte order mark.
    let is_invisible = matches!(
        character,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    );
    character.is_whitespace() || character.is_control() || is_invisible
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    !digits.is_empty() && digits.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::day::Day;
    use crate::vocabulary::timezone::Timezone;
    use rstest::rstest;

    #[rstest]
    #[case::word("Lantern", "lantern-explore-2026-10-20_2026-11-18.csv")]
    #[case::words("My App: “Pro”!", "my-app-pro-explore-2026-10-20_2026-11-18.csv")]
    #[case::header_injection("a\"\r\nb;", "a-b-explore-2026-10-20_2026-11-18.csv")]
    #[case::path("../etc", "etc-explore-2026-10-20_2026-11-18.csv")]
    #[case::no_ascii("ランタン", "explore-2026-10-20_2026-11-18.csv")]
    fn files_are_named_by_app_report_and_days(#[case] app: &str, #[case] expected: &str) {
        let days = DayRange {
            from: Day::parse("2026-10-20").unwrap(),
            to: Day::parse("2026-11-18").unwrap(),
            zone: Timezone::UTC,
        };
        assert_eq!(report_file_name(app, "explore", &days), expected);
        let long = report_file_name(&"x".repeat(200), "explore", &days);
        assert!(long.starts_with(&"x".repeat(APP_CHARS_MAX)) && long.len() < 80);
    }

    #[rstest]
    #[case::plain("a b", "a b")]
    #[case::empty("", "")]
    #[case::formula("=1+1", "'=1+1")]
    #[case::mention("@x", "'@x")]
    #[case::tab("\tx", "'\tx")]
    #[case::negative("-9.99", "-9.99")]
    #[case::minus_alone("-", "'-")]
    #[case::minus_formula("-1+cmd", "'-1+cmd")]
    #[case::line_feed("\n=1+1", "'\n=1+1")]
    #[case::line_feed_alone("\nx", "'\nx")]
    #[case::carriage_return("\rx", "'\rx")]
    #[case::space(" =1+1", "' =1+1")]
    #[case::spaces_and_tab("  \t@x", "'  \t@x")]
    #[case::no_break_space("\u{a0}=1", "'\u{a0}=1")]
    #[case::wide_space("\u{3000}=1", "'\u{3000}=1")]
    #[case::byte_order_mark("\u{feff}=1", "'\u{feff}=1")]
    #[case::zero_width("\u{200b}+1", "'\u{200b}+1")]
    #[case::wide_equals("＝1+1", "'＝1+1")]
    #[case::wide_plus("＋1", "'＋1")]
    #[case::wide_minus("－1", "'－1")]
    #[case::wide_at("＠x", "'＠x")]
    #[case::wide_after_space(" ＝1", "' ＝1")]
    #[case::space_alone(" x", " x")]
    #[case::sign_inside("a=b", "a=b")]
    fn formulas_are_escaped(#[case] text: &str, #[case] written: &str) {
        assert_eq!(spreadsheet_field(text), written);
    }
}
