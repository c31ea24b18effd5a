//! An event's `params`, stored as compact JSON.
//!
//! Only white space between tokens is removed, so numbers keep their exact digits. Unpaired
//! surrogates, which databases reject, are replaced.

use serde_json::value::RawValue;
use tributary_domain::event::PARAMS_BYTES_MAX;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};

/// Maximum nesting depth, so that recursive JSON parsers cannot overflow their stack.
const DEPTH_MAX: usize = 32;
/// Replaces the escape of an unpaired surrogate.
const REPLACEMENT: &str = "\\ufffd";

/// Returns the compact text of a JSON object.
pub(super) fn compact(raw: &RawValue) -> Result<String, Problem> {
    let mut writer = CompactWriter::default();
    let mut rest = raw.get();
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => writer.string(rest)?,
            '{' | '[' => writer.open(first)?,
            '}' | ']' => writer.close(first),
            ' ' | '\t' | '\n' | '\r' => 1,
            _ => writer.push(&rest[..first.len_utf8()]),
        };
        rest = &rest[taken..];
        // Checked in the loop, to stop early on oversized input.
        if writer.text.len() > PARAMS_BYTES_MAX {
            let message = format!("Must have at most {PARAMS_BYTES_MAX} bytes as compact JSON.");
            return Err(Problem::new(FaultCode::TooLong, message));
        }
    }
    Ok(writer.text)
}

#[derive(Default)]
struct CompactWriter {
    text: String,
    depth: usize,
}

impl CompactWriter {
    fn push(&mut self, text: &str) -> usize {
        self.text.push_str(text);
        text.len()
    }

    fn open(&mut self, bracket: char) -> Result<usize, Problem> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("Must be nested no deeper than {DEPTH_MAX} levels.");
            return Err(Problem::new(FaultCode::OutOfRange, message));
        }
        self.text.push(bracket);
        Ok(1)
    }

    fn close(&mut self, bracket: char) -> usize {
        self.depth = self.depth.saturating_sub(1);
        self.text.push(bracket);
        1
    }

    /// Copies a string with its quotes. Returns the number of bytes read.
    fn string(&mut self, rest: &str) -> Result<usize, Problem> {
        let mut at = self.push(&rest[..1]);
        while let Some(length) = rest[at..].find(['"', '\\']) {
            at += self.push(&rest[at..at + length]);
            if rest[at..].starts_with('"') {
                return Ok(at + self.push("\""));
            }
            at += self.escape(&rest[at..])?;
        }
        // Unreachable: the JSON was validated, so every string ends.
        Ok(rest.len())
    }

    /// Copies an escape sequence. Returns the number of bytes read.
    fn escape(&mut self, rest: &str) -> Result<usize, Problem> {
        let Some(unit) = parse_unicode_escape(rest) else {
            let length = rest.len().min(2);
            return Ok(self.push(&rest[..length]));
        };
        let is_low = |unit: u16| (0xdc00..0xe000).contains(&unit);
        match unit {
            0 => {
                let message = "Remove the NUL character (U+0000).";
                Err(Problem::new(FaultCode::InvalidCharacter, message))
            }
            0xd800..0xdc00
                if self::parse_unicode_escape(&rest[UNICODE_ESCAPE_CHARS..])
                    .is_some_and(is_low) =>
            {
                Ok(self.push(&rest[..2 * UNICODE_ESCAPE_CHARS]))
            }
            0xd800..0xe000 => {
                self.push(REPLACEMENT);
                Ok(UNICODE_ESCAPE_CHARS)
            }
            _ => Ok(self.push(&rest[..UNICODE_ESCAPE_CHARS])),
        }
    }
}

/// Length of an escape such as `\u00e9`.
const UNICODE_ESCAPE_CHARS: usize = 6;

/// Parses the code unit of an escape such as `\u00e9`.
fn parse_unicode_escape(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn compacted(json: &str) -> Result<String, FaultCode> {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        compact(raw).map_err(|problem| problem.code)
    }

    #[rstest]
    #[case::white_space("{ \"a\" : [ 1 , 2 ] ,\n\"b\":null }", r#"{"a":[1,2],"b":null}"#)]
    #[case::white_space_inside_a_text(r#"{"a b": " c  d "}"#, r#"{"a b":" c  d "}"#)]
    #[case::digits_stay(
        r#"{"n": 9007199254740993.10, "m": 1E5}"#,
        r#"{"n":9007199254740993.10,"m":1E5}"#
    )]
    #[case::escapes_stay(r#"{"a": "\"\\\/\n\u00e9"}"#, r#"{"a":"\"\\\/\n\u00e9"}"#)]
    #[case::brackets_in_a_text(r#"{"a": "]}{["}"#, r#"{"a":"]}{["}"#)]
    #[case::any_script("{\"ä\": \"走る\"}", "{\"ä\":\"走る\"}")]
    #[case::surrogate_pair(r#"{"a": "\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#)]
    #[case::unpaired_high_surrogate(r#"{"a": "\ud83dx"}"#, r#"{"a":"\ufffdx"}"#)]
    #[case::unpaired_low_surrogate(r#"{"a": "\ude00"}"#, r#"{"a":"\ufffd"}"#)]
    #[case::two_high_surrogates(r#"{"a": "\ud83d\ud83d\ude00"}"#, r#"{"a":"\ufffd\ud83d\ude00"}"#)]
    #[case::a_backslash_before_a_u(r#"{"a": "\\u0000"}"#, r#"{"a":"\\u0000"}"#)]
    fn removes_white_space_and_replaces_unpaired_surrogates(
        #[case] json: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(compacted(json).as_deref(), Ok(expected));
    }

    #[rstest]
    #[case::in_a_value(r#"{"a": "x\u0000"}"#)]
    #[case::in_a_name(r#"{"\u0000": 1}"#)]
    #[case::behind_a_backslash(r#"{"a": "\\\u0000"}"#)]
    fn nul_is_rejected(#[case] json: &str) {
        assert_eq!(compacted(json), Err(FaultCode::InvalidCharacter));
    }

    #[test]
    fn the_limit_applies_to_the_compact_text() {
        let of = |bytes: usize| format!("{{  \"a\": \"{}\"}}", "x".repeat(bytes - 8));
        assert_eq!(
            compacted(&of(PARAMS_BYTES_MAX)).map(|text| text.len()),
            Ok(PARAMS_BYTES_MAX)
        );
        assert_eq!(
            compacted(&of(PARAMS_BYTES_MAX + 1)),
            Err(FaultCode::TooLong)
        );
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| {
            let inner = depth - 1;
            format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner))
        };
        assert!(compacted(&nested(DEPTH_MAX)).is_ok());
        assert_eq!(
            compacted(&nested(DEPTH_MAX + 1)),
            Err(FaultCode::OutOfRange)
        );
    }

    proptest! {
        #[test]
        fn compaction_preserves_the_value(names in prop::collection::vec(".{0,10}", 0..5), value in ".{0,50}") {
            let object: serde_json::Map<String, serde_json::Value> = names
                .into_iter()
                .filter(|name| !name.contains('\0'))
                .map(|name| (name, serde_json::json!([value.replace('\0', ""), 1.5, null, {}])))
                .collect();
            let sent = serde_json::to_string_pretty(&object).unwrap();
            let compact = compacted(&sent).unwrap();
            prop_assert_eq!(serde_json::from_str::<serde_json::Map<_, _>>(&compact).unwrap(), object);
        }
    }
}
