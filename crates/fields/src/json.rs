//! JSON as received: numbers keep their digits, and duplicate fields are detected.
//!
//! `serde_json::Value` would parse numbers as floats and keep only the last of two fields with the
//! same name. Money is never a float here, and a duplicate field is a fault.

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// Maximum nesting depth. The bodies of this API need seven levels.
const DEPTH_MAX: usize = 32;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonNode {
    /// `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number, with its digits as received.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<JsonNode>),
    /// An object, with its members in the order received.
    Object(Vec<(String, JsonNode)>),
}

impl JsonNode {
    /// Returns the first member of an object with this name.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else {
            return None;
        };
        let found = members.iter().find(|(member, _)| member == name);
        found.map(|(_, node)| node)
    }

    /// Compares values. The order of members and trailing zeros in a fraction do not matter.
    pub fn same_value(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(two)) => {
                trim_fraction_zeros(one) == trim_fraction_zeros(two)
            }
            (Self::List(one), Self::List(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(a, b)| a.same_value(b))
            }
            (Self::Object(one), Self::Object(two)) => {
                let is_same = |(name, node): &(String, Self)| {
                    two.iter()
                        .any(|(other, value)| other == name && node.same_value(value))
                };
                // If `one` has a duplicate name, `two` could have a member that `one` lacks.
                one.len() == two.len() && one.iter().all(is_same) && has_distinct_names(one)
            }
            _ => self == other,
        }
    }
}

fn has_distinct_names(members: &[(String, JsonNode)]) -> bool {
    let names: BTreeSet<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.len() == members.len()
}

/// Drops trailing zeros from a fraction. A number with an exponent is not changed.
fn trim_fraction_zeros(digits: &str) -> &str {
    if digits.contains('.') && !digits.contains(['e', 'E']) {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

/// Not JSON, or nested too deeply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotJson;

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// Parses one JSON value, and rejects anything after it.
pub fn parse(text: &str) -> Result<JsonNode, NotJson> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r']);
    if text.starts_with('{') {
        // Nearly all bodies are objects. Reading the members checks the text, so it is read once
        // less than other values.
        return read(text, DEPTH_MAX);
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|_| NotJson)?;
    read(raw.get(), DEPTH_MAX)
}

/// Reads an object, or another value that is known to be valid JSON.
fn read(text: &str, depth: usize) -> Result<JsonNode, NotJson> {
    let depth = depth.checked_sub(1).ok_or(NotJson)?;
    match text.as_bytes().first() {
        Some(b'n') => Ok(JsonNode::Null),
        Some(b't') => Ok(JsonNode::Flag(true)),
        Some(b'f') => Ok(JsonNode::Flag(false)),
        Some(b'"') => read_text(text).map(JsonNode::Text),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| NotJson)?;
            let items = items.into_iter().map(|item| read(item.get(), depth));
            items.collect::<Result<_, _>>().map(JsonNode::List)
        }
        Some(b'{') => {
            let Members(members) = serde_json::from_str(text).map_err(|_| NotJson)?;
            let members = members
                .into_iter()
                .map(|(name, raw)| Ok((name, read(raw.get(), depth)?)));
            members.collect::<Result<_, _>>().map(JsonNode::Object)
        }
        Some(_) => Ok(JsonNode::Number(text.to_owned())),
        None => Err(NotJson),
    }
}

/// Reads a string that is known to be valid JSON.
fn read_text(text: &str) -> Result<String, NotJson> {
    let without_quotes = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    match without_quotes {
        Some(plain) if !plain.contains('\\') => Ok(plain.to_owned()),
        _ => serde_json::from_str(text).map_err(|_| NotJson),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[test]
    fn numbers_keep_their_digits() {
        assert_eq!(
            parse("9007199254740993.10"),
            Ok(JsonNode::Number("9007199254740993.10".to_owned()))
        );
    }

    #[rstest]
    #[case::plain(r#""a b""#, "a b")]
    #[case::empty(r#""""#, "")]
    #[case::escapes(r#""a\n\"\u00e9\\""#, "a\n\"é\\")]
    fn texts(#[case] text: &str, #[case] expected: &str) {
        let object = format!(" {{\"a\": {text}}}\n");
        let expected = JsonNode::Text(expected.to_owned());
        assert_eq!(parse(&object).unwrap().member("a"), Some(&expected));
        assert_eq!(parse(text), Ok(expected));
    }

    #[test]
    fn duplicate_names_are_both_kept() {
        let Ok(JsonNode::Object(members)) = parse(r#"{"a": 1, "a": 2}"#) else {
            panic!("an object")
        };
        assert_eq!(members.len(), 2);
    }

    #[rstest]
    #[case::order_of_members(r#"{"a": 1, "b": [2]}"#, r#"{"b": [2], "a": 1}"#, true)]
    #[case::zeros("49.90", "49.9", true)]
    #[case::whole("50.0", "50", true)]
    #[case::another_number("50", "5", false)]
    #[case::order_of_items("[1, 2]", "[2, 1]", false)]
    #[case::fewer_members(r#"{"a": 1}"#, r#"{"a": 1, "b": null}"#, false)]
    #[case::repeated_member(r#"{"a": 1, "a": 1}"#, r#"{"a": 1, "b": 1}"#, false)]
    #[case::another_type("1", r#""1""#, false)]
    #[case::null("null", "false", false)]
    fn compares_values(#[case] one: &str, #[case] two: &str, #[case] same: bool) {
        let (one, two) = (parse(one).unwrap(), parse(two).unwrap());
        assert_eq!((one.same_value(&two), two.same_value(&one)), (same, same));
    }

    #[rstest]
    #[case::empty("")]
    #[case::open_object("{")]
    #[case::trailing_comma("[1,]")]
    #[case::two_values("1 2")]
    #[case::bare_word("nothing")]
    #[case::not_a_number("[NaN]")]
    #[case::leading_zero("01")]
    #[case::half_a_surrogate(r#""\ud800""#)]
    #[case::half_a_surrogate_in_an_object(r#"{"a": "\ud800"}"#)]
    #[case::raw_control_character_in_an_object("{\"a\": \"\u{1}\"}")]
    #[case::text_after_an_object("{} x")]
    #[case::form_feed("\u{c}{}")]
    #[case::raw_control_character("\"\u{1}\"")]
    fn rejects_invalid_json(#[case] text: &str) {
        assert_eq!(parse(text), Err(NotJson));
    }

    #[test]
    fn deep_nesting_is_rejected_without_overflowing_the_stack() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        assert_eq!(parse(&nested(DEPTH_MAX + 1)), Err(NotJson));
        assert_eq!(parse(&nested(500_000)), Err(NotJson));
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".*") {
            let _any_outcome_is_fine = parse(&text);
        }
    }
}
