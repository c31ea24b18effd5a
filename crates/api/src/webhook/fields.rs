//! Field readers for notifications. They are lenient: an invalid field counts as absent.

use crate::fields::{
    FieldKind, Fields, InputValue, list_as, number_as, text_as, value_as, wrong_type,
};
use crate::json::JsonNode;
use std::borrow::Cow;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::check_external_id;
use tributary_domain::vocabulary::time::Timestamp;

/// Longest share (such as 0.3) in characters. A share is stored as text, and no float needs this
/// many characters.
const SHARE_CHARS_MAX: usize = 32;
/// Milliseconds per second.
const MILLIS_PER_SECOND: i64 = 1_000;
/// Number of letters in a country code.
const COUNTRY_CHARS: usize = 2;

/// Reads an object and ignores faults: an invalid field counts as absent.
pub(super) fn read<T>(node: &JsonNode, read: impl FnOnce(&mut Fields<'_>) -> T) -> T {
    let mut faults = Faults::new();
    read(&mut Fields::lenient(InputValue::Tree(node), &mut faults))
}

/// Reads a provider's id: a string.
pub(super) fn id() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<String, Problem>> {
    text_as(|text| check_external_id(text).map(str::to_owned))
}

/// Reads an id or name: a string or a number, neither blank nor too long.
pub(super) fn name() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<String, Problem>> {
    value_as(read_name)
}

/// Reads the valid names in a list.
pub(super) fn names() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Vec<String>, Problem>> {
    list_as("a list", |items| {
        Ok(items
            .into_iter()
            .filter_map(|item| read_name(item).ok())
            .collect())
    })
}

fn read_name(value: InputValue<'_>) -> Result<String, Problem> {
    let text = value.text().or_else(|| value.digits().map(Cow::Borrowed));
    let text = text.ok_or_else(|| wrong_type("a string or a number"))?;
    check_external_id(text.trim()).map(str::to_owned)
}

/// Reads an amount: a number.
pub(super) fn amount() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Amount, Problem>> {
    number_as(Amount::parse_number)
}

/// Reads a currency code, case-insensitive.
pub(super) fn currency() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Currency, Problem>> {
    name().then(|name| {
        let found = Currency::from_stored(&name.to_ascii_uppercase());
        found.ok_or_else(|| Problem::new(FaultCode::UnknownValue, "Must be a currency code."))
    })
}

/// Reads a share, such as 0.3, as text with its exact digits.
pub(super) fn share() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<String, Problem>> {
    number_as(|digits| {
        if digits.len() > SHARE_CHARS_MAX {
            let message = format!("Must have at most {SHARE_CHARS_MAX} characters.");
            return Err(Problem::new(FaultCode::TooLong, message));
        }
        Ok(digits.to_owned())
    })
}

/// Reads a Unix time in milliseconds. Some providers send fractions.
pub(super) fn time() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Timestamp, Problem>> {
    number_as(|digits| {
        let whole = digits.split_once('.').map_or(digits, |(whole, _)| whole);
        let millis = whole.parse().map_err(|_| wrong_type("milliseconds"))?;
        Ok(Timestamp::from_millis(millis))
    })
}

/// Reads a Unix time in seconds.
pub(super) fn seconds() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Timestamp, Problem>> {
    number_as(|digits| {
        let seconds: i64 = digits.parse().map_err(|_| wrong_type("seconds"))?;
        Ok(Timestamp::from_millis(
            seconds.saturating_mul(MILLIS_PER_SECOND),
        ))
    })
}

/// Reads a two-letter country code, case-insensitive.
pub(super) fn country() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<String, Problem>> {
    name().then(|name| {
        let is_letter = |byte: u8| byte.is_ascii_alphabetic();
        if name.len() == COUNTRY_CHARS && name.bytes().all(is_letter) {
            return Ok(name.to_ascii_uppercase());
        }
        Err(Problem::new(
            FaultCode::InvalidFormat,
            "Must be two letters.",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use rstest::rstest;

    fn read_x<T>(
        body: &str,
        kind: FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>>,
    ) -> Option<T> {
        read(&parse(body).unwrap(), |fields| fields.optional("x", kind))
    }

    #[rstest]
    #[case::text(r#"{"x": "a"}"#, Some("a"))]
    #[case::number(r#"{"x": 12345678901234567890}"#, Some("12345678901234567890"))]
    #[case::trimmed(r#"{"x": " a "}"#, Some("a"))]
    #[case::blank(r#"{"x": "  "}"#, None)]
    #[case::empty(r#"{"x": ""}"#, None)]
    #[case::null(r#"{"x": null}"#, None)]
    #[case::list(r#"{"x": []}"#, None)]
    #[case::flag(r#"{"x": true}"#, None)]
    #[case::missing("{}", None)]
    #[case::nul(r#"{"x": "a\u0000"}"#, None)]
    #[case::not_an_object("[]", None)]
    fn names_of_any_type(#[case] body: &str, #[case] expected: Option<&str>) {
        assert_eq!(read_x(body, name()).as_deref(), expected);
    }

    #[rstest]
    #[case::text(r#"{"x": "a"}"#, Some("a"))]
    #[case::as_it_is(r#"{"x": " a "}"#, Some(" a "))]
    #[case::number(r#"{"x": 5}"#, None)]
    #[case::empty(r#"{"x": ""}"#, None)]
    fn ids_are_strings(#[case] body: &str, #[case] expected: Option<&str>) {
        assert_eq!(read_x(body, id()).as_deref(), expected);
    }

    #[rstest]
    #[case::those_that_can_be_read(r#"{"x": ["a", null, 5, "", {}, "b"]}"#, Some(&["a", "5", "b"][..]))]
    #[case::not_a_list(r#"{"x": "a"}"#, None)]
    fn lists(#[case] body: &str, #[case] expected: Option<&[&str]>) {
        let found = read_x(body, names());
        let found = found
            .as_ref()
            .map(|names| names.iter().map(String::as_str).collect());
        assert_eq!(found, expected.map(<[&str]>::to_vec));
    }

    #[rstest]
    #[case("1601258901000", Some(1_601_258_901_000))]
    #[case::a_fraction("1601258901000.5", Some(1_601_258_901_000))]
    #[case::absurd("99999999999999999999", None)]
    #[case::text("\"1601258901000\"", None)]
    fn times(#[case] number: &str, #[case] expected: Option<i64>) {
        let found = read_x(&format!("{{\"x\": {number}}}"), time());
        assert_eq!(found.map(Timestamp::as_millis), expected);
    }

    #[rstest]
    #[case::number("9.90", Some("9.9"))]
    #[case::negative("-1", Some("-1"))]
    #[case::text("\"9.90\"", None)]
    fn amounts(#[case] number: &str, #[case] expected: Option<&str>) {
        let found = read_x(&format!("{{\"x\": {number}}}"), amount());
        assert_eq!(found.map(|it| it.to_string()).as_deref(), expected);
    }

    #[rstest]
    #[case::number("0.30", Some("0.30"))]
    #[case::text("\"0.3\"", None)]
    #[case::longest(
        "0.123456789012345678901234567890",
        Some("0.123456789012345678901234567890")
    )]
    #[case::too_long("0.1234567890123456789012345678901", None)]
    fn shares(#[case] number: &str, #[case] expected: Option<&str>) {
        let found = read_x(&format!("{{\"x\": {number}}}"), share());
        assert_eq!(found.as_deref(), expected);
    }

    #[rstest]
    #[case::capitals("\"DE\"", Some("DE"))]
    #[case::small("\"de\"", Some("DE"))]
    #[case::three("\"DEU\"", None)]
    #[case::digits("12", None)]
    fn countries(#[case] value: &str, #[case] expected: Option<&str>) {
        let found = read_x(&format!("{{\"x\": {value}}}"), country());
        assert_eq!(found.as_deref(), expected);
    }
}
