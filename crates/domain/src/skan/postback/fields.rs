//! The fields of a postback as read from JSON, and how they are parsed by Apple's rules.

use std::collections::BTreeMap;

use crate::skan::document::{CoarseValue, FINE_VALUE_MAX, WINDOW_INDEX_MAX};
use crate::skan::postback::message::SEPARATOR;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};

/// Maximum length of any text in a postback, in characters. Apple's longest is a domain name of at
/// most 253.
pub const TEXT_CHARS_MAX: usize = 255;
/// Highest campaign id in SKAdNetwork before 4.0.
const CAMPAIGN_ID_MAX: i64 = 100;
/// Number of digits in a source identifier; Apple withholds up to two of the four.
const SOURCE_DIGITS: std::ops::RangeInclusive<usize> = 2..=4;

/// A JSON value of the types that occur in postbacks. Types are strict: `"42"` gives the same
/// signed bytes as `42`, but Apple did not sign a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// `null`, treated as absent.
    Null,
    /// A string.
    Text(String),
    /// An integer without fraction or exponent that fits 64 bits.
    Integer(i64),
    /// A boolean.
    Boolean(bool),
    /// A list, an object or any other number.
    Other,
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for Scalar {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Scalar {
    fn from(flag: bool) -> Self {
        Self::Boolean(flag)
    }
}

/// The top-level fields of a JSON object. Unknown fields are allowed: ad networks that relay a
/// postback add their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostbackFields(BTreeMap<String, Scalar>);

impl PostbackFields {
    /// Returns a field, if present and not null.
    pub fn get(&self, name: &str) -> Option<&Scalar> {
        self.0.get(name).filter(|value| **value != Scalar::Null)
    }

    /// Returns the text of a field, if present and a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Scalar::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Sets a field.
    pub fn set(&mut self, name: &str, value: impl Into<Scalar>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Removes a field.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}

impl FromIterator<(String, Scalar)> for PostbackFields {
    fn from_iter<I: IntoIterator<Item = (String, Scalar)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

/// Reads fields one by one and collects their faults.
#[derive(Debug)]
pub(super) struct PostbackReader<'a> {
    fields: &'a PostbackFields,
    prefix: &'static str,
    pub(super) faults: Faults,
}

impl<'a> PostbackReader<'a> {
    /// Creates a reader. `prefix` is prepended to field names in faults.
    pub(super) fn new(fields: &'a PostbackFields, prefix: &'static str) -> Self {
        let faults = Faults::new();
        Self {
            fields,
            prefix,
            faults,
        }
    }

    /// Reads an optional field.
    pub(super) fn optional<T>(&mut self, name: &str, rule: FieldRule<T>) -> Option<T> {
        let value = self.fields.get(name)?;
        self.record(name, rule(value))
    }

    /// Reads a required field. `None` always comes with a fault.
    pub(super) fn required<T>(&mut self, name: &str, rule: FieldRule<T>) -> Option<T> {
        let missing = || Err(Problem::new(FaultCode::Required, "Required."));
        let value = self.fields.get(name).map_or_else(missing, rule);
        self.record(name, value)
    }

    /// Rejects `name` if `other` is also present; Apple sends at most one of them.
    pub(super) fn reject_both(&mut self, name: &str, other: &str) {
        if self.fields.get(name).is_some() && self.fields.get(other).is_some() {
            let message = format!("Must not be sent together with {other}.");
            let problem = Problem::new(FaultCode::NotAllowed, message);
            self.record::<()>(name, Err(problem));
        }
    }

    fn record<T>(&mut self, name: &str, value: Result<T, Problem>) -> Option<T> {
        self.faults.check(&format!("{}{name}", self.prefix), value)
    }
}

/// Rule that parses and checks one field.
pub(super) type FieldRule<T> = fn(&Scalar) -> Result<T, Problem>;

fn wrong_type<T>(expected: &str) -> Result<T, Problem> {
    let message = format!("Must be {expected}.");
    Err(Problem::new(FaultCode::WrongType, message))
}

fn out_of_range<T>(message: &str) -> Result<T, Problem> {
    Err(Problem::new(FaultCode::OutOfRange, message))
}

/// Parses text. Rejects the separator, because such text could be read as two fields of the signed
/// message.
pub(super) fn text(value: &Scalar) -> Result<String, Problem> {
    let Scalar::Text(text) = value else {
        return wrong_type("a string");
    };
    if text.is_empty() {
        return Err(Problem::new(FaultCode::TooShort, "Must not be empty."));
    }
    if text.chars().count() > TEXT_CHARS_MAX {
        let message = format!("Must have at most {TEXT_CHARS_MAX} characters.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    if text.chars().any(|one| one.is_control() || one == SEPARATOR) {
        let message = "Must not contain control characters or invisible separators.";
        return Err(Problem::new(FaultCode::InvalidCharacter, message));
    }
    Ok(text.clone())
}

/// Parses any text. A signature that is not base64 is invalid, but not a fault.
pub(super) fn any_text(value: &Scalar) -> Result<String, Problem> {
    match value {
        Scalar::Text(text) => Ok(text.clone()),
        _ => wrong_type("a string"),
    }
}

/// Parses an App Store id.
pub(super) fn store_id(value: &Scalar) -> Result<i64, Problem> {
    match value {
        Scalar::Integer(id) if *id >= 0 => Ok(*id),
        Scalar::Integer(_) => out_of_range("Must be 0 or more."),
        _ => wrong_type("an integer"),
    }
}

/// Parses a campaign id of SKAdNetwork before 4.0.
pub(super) fn campaign_id(value: &Scalar) -> Result<i64, Problem> {
    match value {
        Scalar::Integer(id) if (1..=CAMPAIGN_ID_MAX).contains(id) => Ok(*id),
        Scalar::Integer(_) => out_of_range("Must be from 1 to 100."),
        _ => wrong_type("an integer"),
    }
}

/// Parses a source identifier and keeps leading zeros.
pub(super) fn source_identifier(value: &Scalar) -> Result<String, Problem> {
    let Scalar::Text(digits) = value else {
        return wrong_type("a string of digits");
    };
    if SOURCE_DIGITS.contains(&digits.len()) && digits.bytes().all(|one| one.is_ascii_digit()) {
        return Ok(digits.clone());
    }
    Err(Problem::new(
        FaultCode::InvalidFormat,
        "Must be 2 to 4 digits.",
    ))
}

/// Parses a boolean.
pub(super) fn boolean(value: &Scalar) -> Result<bool, Problem> {
    match value {
        Scalar::Boolean(flag) => Ok(*flag),
        _ => wrong_type("true or false"),
    }
}

fn small_integer(value: &Scalar, max: u8, message: &str) -> Result<u8, Problem> {
    let Scalar::Integer(number) = value else {
        return wrong_type("an integer");
    };
    let number = u8::try_from(*number).ok().filter(|number| *number <= max);
    number.map_or_else(|| out_of_range(message), Ok)
}

/// Parses a fine conversion value.
pub(super) fn fine_value(value: &Scalar) -> Result<u8, Problem> {
    small_integer(value, FINE_VALUE_MAX, "Must be from 0 to 63.")
}

/// Parses the fidelity type: 0 is a view, 1 a tap.
pub(super) fn fidelity(value: &Scalar) -> Result<u8, Problem> {
    small_integer(value, 1, "Must be 0 or 1.")
}

/// Parses the index of the postback window.
pub(super) fn sequence_index(value: &Scalar) -> Result<u8, Problem> {
    small_integer(value, WINDOW_INDEX_MAX, "Must be 0, 1 or 2.")
}

/// Parses a coarse conversion value.
pub(super) fn coarse_value(value: &Scalar) -> Result<CoarseValue, Problem> {
    match value {
        Scalar::Text(word) => CoarseValue::read(word),
        _ => wrong_type("a string"),
    }
}

/// Parses a country code and returns it in upper case.
pub(super) fn country_code(value: &Scalar) -> Result<String, Problem> {
    let Scalar::Text(letters) = value else {
        return wrong_type("a string");
    };
    if letters.len() == 2 && letters.bytes().all(|one| one.is_ascii_alphabetic()) {
        return Ok(letters.to_ascii_uppercase());
    }
    Err(Problem::new(
        FaultCode::InvalidFormat,
        "Must be two letters.",
    ))
}
