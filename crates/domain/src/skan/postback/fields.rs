//! The fields as the edge read them, and taking them out by Apple's rules.

use std::collections::BTreeMap;

use crate::skan::document::{CoarseValue, FINE_VALUE_MAX, WINDOW_INDEX_MAX};
use crate::skan::postback::message::SEPARATOR;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};

/// Characters of any text in a postback. Apple's longest is a domain name, of at most 253.
pub const TEXT_CHARS_MAX: usize = 255;
/// The campaigns that SKAdNetwork below 4.0 can tell apart.
const CAMPAIGN_ID_MAX: i64 = 100;
/// Digits of a source identifier; Apple withholds up to two of the four.
const SOURCE_DIGITS: std::ops::RangeInclusive<usize> = 2..=4;

/// A JSON value, as far as a postback has them. The types are strict: `"42"` joins to the same
/// signed bytes as `42`, and is none the less not what Apple signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// `null`, which is as good as nothing.
    Null,
    /// A string.
    Text(String),
    /// A number without fraction or exponent that fits.
    Integer(i64),
    /// A boolean.
    Boolean(bool),
    /// A list, an object, any other number.
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
    fn from(truth: bool) -> Self {
        Self::Boolean(truth)
    }
}

/// The top-level fields of a JSON object. Fields that nobody knows are welcome: ad networks that
/// pass a postback on add their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostbackFields(BTreeMap<String, Scalar>);

impl PostbackFields {
    /// A field that is there.
    pub fn get(&self, name: &str) -> Option<&Scalar> {
        self.0.get(name).filter(|value| **value != Scalar::Null)
    }

    /// The text of a field that is there and is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Scalar::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Puts a field in, or another value in its place.
    pub fn set(&mut self, name: &str, value: impl Into<Scalar>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}

impl FromIterator<(String, Scalar)> for PostbackFields {
    fn from_iter<I: IntoIterator<Item = (String, Scalar)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

/// Takes fields out one by one and keeps what is wrong with them.
#[derive(Debug)]
pub(super) struct PostbackReader<'a> {
    fields: &'a PostbackFields,
    prefix: &'static str,
    pub(super) faults: Faults,
}

impl<'a> PostbackReader<'a> {
    /// `prefix` stands before the names in faults.
    pub(super) fn new(fields: &'a PostbackFields, prefix: &'static str) -> Self {
        let faults = Faults::new();
        Self {
            fields,
            prefix,
            faults,
        }
    }

    /// A field that may be missing.
    pub(super) fn optional<T>(&mut self, name: &str, rule: FieldRule<T>) -> Option<T> {
        let value = self.fields.get(name)?;
        self.keep(name, rule(value))
    }

    /// A field that must be there. `None` is never without a fault.
    pub(super) fn required<T>(&mut self, name: &str, rule: FieldRule<T>) -> Option<T> {
        let missing = || Err(Problem::new(FaultCode::Required, "Must be given."));
        let value = self.fields.get(name).map_or_else(missing, rule);
        self.keep(name, value)
    }

    /// Two fields of which Apple sends at most one.
    pub(super) fn reject_both(&mut self, name: &str, other: &str) {
        if self.fields.get(name).is_some() && self.fields.get(other).is_some() {
            let message = format!("Must not be together with {other}.");
            let problem = Problem::new(FaultCode::NotAllowed, message);
            self.keep::<()>(name, Err(problem));
        }
    }

    fn keep<T>(&mut self, name: &str, value: Result<T, Problem>) -> Option<T> {
        self.faults.check(&format!("{}{name}", self.prefix), value)
    }
}

/// What a value must be.
pub(super) type FieldRule<T> = fn(&Scalar) -> Result<T, Problem>;

fn wrong_type<T>(expected: &str) -> Result<T, Problem> {
    let message = format!("Must be {expected}.");
    Err(Problem::new(FaultCode::WrongType, message))
}

fn out_of_range<T>(message: &str) -> Result<T, Problem> {
    Err(Problem::new(FaultCode::OutOfRange, message))
}

/// Text that can be shown and stored. One with the separator in it could be read as two fields of
/// the signed message, so it is none.
pub(super) fn text(value: &Scalar) -> Result<String, Problem> {
    let Scalar::Text(text) = value else {
        return wrong_type("a string");
    };
    if text.is_empty() {
        return Err(Problem::new(
            FaultCode::TooShort,
            "Must be at least 1 character.",
        ));
    }
    if text.chars().count() > TEXT_CHARS_MAX {
        let message = format!("Must be at most {TEXT_CHARS_MAX} characters.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    if text.chars().any(|one| one.is_control() || one == SEPARATOR) {
        let message = "Must not contain control characters or invisible separators.";
        return Err(Problem::new(FaultCode::InvalidCharacter, message));
    }
    Ok(text.clone())
}

/// Any text at all: a signature that is not base64 does not verify, which is not a fault.
pub(super) fn any_text(value: &Scalar) -> Result<String, Problem> {
    match value {
        Scalar::Text(text) => Ok(text.clone()),
        _ => wrong_type("a string"),
    }
}

/// An id of the App Store.
pub(super) fn store_id(value: &Scalar) -> Result<i64, Problem> {
    match value {
        Scalar::Integer(id) if *id >= 0 => Ok(*id),
        Scalar::Integer(_) => out_of_range("Must be 0 or more."),
        _ => wrong_type("an integer"),
    }
}

/// A campaign before SKAdNetwork 4.0.
pub(super) fn campaign_id(value: &Scalar) -> Result<i64, Problem> {
    match value {
        Scalar::Integer(id) if (1..=CAMPAIGN_ID_MAX).contains(id) => Ok(*id),
        Scalar::Integer(_) => out_of_range("Must be from 1 to 100."),
        _ => wrong_type("an integer"),
    }
}

/// A source identifier, whose zeros count.
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

/// A boolean.
pub(super) fn boolean(value: &Scalar) -> Result<bool, Problem> {
    match value {
        Scalar::Boolean(truth) => Ok(*truth),
        _ => wrong_type("true or false"),
    }
}

fn small(value: &Scalar, max: u8, message: &str) -> Result<u8, Problem> {
    let Scalar::Integer(number) = value else {
        return wrong_type("an integer");
    };
    let number = u8::try_from(*number).ok().filter(|number| *number <= max);
    number.map_or_else(|| out_of_range(message), Ok)
}

/// A fine conversion value.
pub(super) fn fine_value(value: &Scalar) -> Result<u8, Problem> {
    small(value, FINE_VALUE_MAX, "Must be from 0 to 63.")
}

/// 0 for a view, 1 for a tap.
pub(super) fn fidelity(value: &Scalar) -> Result<u8, Problem> {
    small(value, 1, "Must be 0 or 1.")
}

/// Which of the three windows.
pub(super) fn sequence_index(value: &Scalar) -> Result<u8, Problem> {
    small(value, WINDOW_INDEX_MAX, "Must be 0, 1 or 2.")
}

/// A coarse conversion value.
pub(super) fn coarse_value(value: &Scalar) -> Result<CoarseValue, Problem> {
    match value {
        Scalar::Text(word) => CoarseValue::read(word),
        _ => wrong_type("a string"),
    }
}

/// Two letters, in capitals.
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
