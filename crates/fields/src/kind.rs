//! Declares how a value is read and how it is described, both in one place.
//!
//! `text_as(Name::parse).size(1..=200).about("…")` reads a string with a domain function and
//! describes it for OpenAPI.

use super::value::InputValue;
use std::collections::BTreeMap;
use std::num::IntErrorKind;
use std::ops::RangeInclusive;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::number::parse_whole;

/// Declaration of a value: how to read it, and how to describe it.
pub struct FieldKind<R> {
    pub(super) shape: ValueSchema,
    pub(super) read: R,
}

/// OpenAPI description of a value.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueSchema {
    pub(super) of: ValueType,
    pub(super) about: &'static str,
    /// Allowed keywords; empty if any text is allowed.
    pub(super) words: Vec<&'static str>,
    /// Minimum of the number, or of the length of the text or list.
    pub(super) min: Option<i64>,
    /// Maximum of the number, or of the length of the text or list.
    pub(super) max: Option<i64>,
    pub(super) pattern: Option<&'static str>,
    pub(super) format: Option<&'static str>,
    pub(super) write_only: bool,
    /// Whether an empty form field means absent instead of null.
    pub(super) may_be_blank: bool,
}

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ValueType {
    #[default]
    Text,
    Integer,
    Number,
    Flag,
    /// A number, or a string that preserves the exact digits.
    Amount,
    Texts,
    TextMap,
    /// An object with declared fields.
    Object,
    /// A list of objects with declared fields.
    Objects,
    /// An object with any fields.
    AnyObject,
    /// An object with any fields, each a string or null.
    AnyTexts,
}

impl ValueSchema {
    pub(super) fn of(of: ValueType) -> Self {
        Self {
            of,
            ..Self::default()
        }
    }
}

impl<R> FieldKind<R> {
    /// Sets the description.
    #[must_use]
    pub fn about(mut self, about: &'static str) -> Self {
        self.shape.about = about;
        self
    }

    /// Sets the length in characters, for the API description only; not enforced here.
    #[must_use]
    pub fn size(mut self, size: RangeInclusive<usize>) -> Self {
        self.shape.min = i64::try_from(*size.start()).ok().filter(|min| *min > 0);
        self.shape.max = i64::try_from(*size.end()).ok();
        self
    }

    /// Sets the minimum, for the API description only; not enforced here.
    #[must_use]
    pub fn at_least(mut self, min: i64) -> Self {
        self.shape.min = Some(min);
        self
    }

    /// Sets the range of a number, for the API description only; a domain rule enforces it.
    #[must_use]
    pub fn within(mut self, range: RangeInclusive<i64>) -> Self {
        (self.shape.min, self.shape.max) = (Some(*range.start()), Some(*range.end()));
        self
    }

    /// Sets the keywords, for the API description only; a domain rule enforces them.
    #[must_use]
    pub fn words(mut self, words: impl IntoIterator<Item = &'static str>) -> Self {
        self.shape.words = words.into_iter().collect();
        self
    }

    /// Sets the pattern of a string, for the API description only; not enforced here.
    #[must_use]
    pub fn pattern(mut self, pattern: &'static str) -> Self {
        self.shape.pattern = Some(pattern);
        self
    }

    /// Sets the JSON Schema format of a string, for the API description only; not enforced here.
    #[must_use]
    pub fn format(mut self, format: &'static str) -> Self {
        self.shape.format = Some(format);
        self
    }

    /// Treats an empty form field as absent instead of null, so that the reader can choose a value.
    #[must_use]
    pub fn may_be_blank(mut self) -> Self {
        self.shape.may_be_blank = true;
        self
    }

    /// Marks the value as write-only: no response contains it.
    #[must_use]
    pub fn write_only(mut self) -> Self {
        self.shape.write_only = true;
        self
    }

    /// Reads a value.
    pub fn parse_value<'a, T>(self, value: InputValue<'a>) -> Result<T, Problem>
    where
        R: FnOnce(InputValue<'a>) -> Result<T, Problem>,
    {
        (self.read)(value)
    }

    /// Replaces the message of every fault in this value.
    pub fn expecting<T>(
        self,
        message: String,
    ) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>>
    where
        R: FnOnce(InputValue<'_>) -> Result<T, Problem>,
    {
        let read = self.read;
        FieldKind {
            shape: self.shape,
            read: move |value: InputValue<'_>| {
                read(value).map_err(|problem| Problem { message, ..problem })
            },
        }
    }

    /// Applies a further check or conversion.
    pub fn then<T, U>(
        self,
        further: impl FnOnce(T) -> Result<U, Problem>,
    ) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<U, Problem>>
    where
        R: FnOnce(InputValue<'_>) -> Result<T, Problem>,
    {
        let read = self.read;
        FieldKind {
            shape: self.shape,
            read: move |value: InputValue<'_>| further(read(value)?),
        }
    }
}

fn kind<T, R: FnOnce(InputValue<'_>) -> Result<T, Problem>>(
    of: ValueType,
    read: R,
) -> FieldKind<R> {
    FieldKind {
        shape: ValueSchema::of(of),
        read,
    }
}

/// Declares an object with fields, for [`super::Fields::section_as`].
pub fn object() -> FieldKind<()> {
    FieldKind {
        shape: ValueSchema::of(ValueType::Object),
        read: (),
    }
}

/// Declares an object with any fields, for [`super::Fields::section_as`].
pub fn any_object() -> FieldKind<()> {
    FieldKind {
        shape: ValueSchema::of(ValueType::AnyObject),
        read: (),
    }
}

/// Like [`any_object`], but every value is a string or null.
pub fn any_text_object() -> FieldKind<()> {
    FieldKind {
        shape: ValueSchema::of(ValueType::AnyTexts),
        read: (),
    }
}

/// Returns the problem for a value of the wrong type.
pub fn wrong_type(expected: &str) -> Problem {
    Problem::new(FaultCode::WrongType, format!("Must be {expected}."))
}

/// Declares a value that `read` parses itself: an object with any fields, or a value without an
/// OpenAPI description.
pub fn value_as<T>(
    read: impl FnOnce(InputValue<'_>) -> Result<T, Problem>,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>> {
    kind(ValueType::AnyObject, read)
}

/// Declares a string.
pub fn text() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<String, Problem>> {
    text_as(|text| Ok(text.to_owned()))
}

/// Declares a string that is parsed by `read`.
pub fn text_as<T>(
    read: impl FnOnce(&str) -> Result<T, Problem>,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>> {
    kind(ValueType::Text, move |value: InputValue<'_>| {
        read(&value.text().ok_or_else(|| wrong_type("a string"))?)
    })
}

/// Declares one of several keywords.
pub fn choice<T: Copy>(
    all: &[T],
    word: fn(T) -> &'static str,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>> {
    let all = all.to_vec();
    let words: Vec<&'static str> = all.iter().map(|one| word(*one)).collect();
    let mut kind = text_as(move |text| {
        let found = all.iter().find(|one| word(**one) == text).copied();
        found.ok_or_else(|| {
            let words: Vec<&str> = all.iter().map(|one| word(*one)).collect();
            let message = format!("Must be one of {}.", words.join(", "));
            Problem::new(FaultCode::UnknownValue, message)
        })
    });
    kind.shape.words = words;
    kind
}

/// Declares a boolean.
pub fn flag() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<bool, Problem>> {
    kind(ValueType::Flag, |value: InputValue<'_>| {
        value.flag().ok_or_else(|| wrong_type("true or false"))
    })
}

/// Declares a whole number. In raw JSON text it may use any notation, such as `1e3`, and a number
/// that does not fit into 64 bits becomes the nearest one that does.
pub fn integer() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<i64, Problem>> {
    kind(ValueType::Integer, |value: InputValue<'_>| {
        let digits = value.digits().ok_or_else(|| wrong_type("a whole number"))?;
        match (digits.parse::<i64>(), value) {
            (Ok(number), _) => Ok(number),
            (Err(_), InputValue::Text(_)) => {
                parse_whole(digits).ok_or_else(|| wrong_type("a whole number"))
            }
            (Err(error), InputValue::Tree(_) | InputValue::Form(_)) => Err(match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow
                    if !digits.contains(['.', 'e', 'E']) =>
                {
                    Problem::new(FaultCode::OutOfRange, "Must fit 64 bits.")
                }
                _ => wrong_type("a whole number"),
            }),
        }
    })
}

/// Declares a number whose digits are parsed by `read`.
pub fn number_as<T>(
    read: impl FnOnce(&str) -> Result<T, Problem>,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>> {
    kind(ValueType::Number, move |value: InputValue<'_>| {
        read(value.digits().ok_or_else(|| wrong_type("a number"))?)
    })
}

/// Declares a list of objects that are read separately.
pub fn list_as<T>(
    expected: &'static str,
    read: impl FnOnce(Vec<InputValue<'_>>) -> Result<T, Problem>,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>> {
    kind(ValueType::Objects, move |value: InputValue<'_>| {
        read(value.items().ok_or_else(|| wrong_type(expected))?)
    })
}

/// Declares a whole number within a range.
pub fn integer_in(
    range: RangeInclusive<i64>,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<i64, Problem>> {
    let (min, max) = (*range.start(), *range.end());
    let message = format!("Must be a whole number from {min} to {max}.");
    let out_of_range = Problem::new(FaultCode::OutOfRange, message.clone());
    let kind = integer().expecting(message);
    kind.then(move |number| {
        range
            .contains(&number)
            .then_some(number)
            .ok_or(out_of_range)
    })
    .within(min..=max)
}

/// Declares an amount: a number, in which floating-point noise is rounded away, or a string with
/// the exact decimal digits.
pub fn amount() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Amount, Problem>> {
    kind(ValueType::Amount, |value: InputValue<'_>| {
        match (value.text(), value.digits()) {
            (Some(text), _) => Amount::parse_text(&text),
            (None, Some(digits)) => Amount::parse_number(digits),
            (None, None) => Err(wrong_type("a number or a decimal string")),
        }
    })
}

/// Declares a list of strings, each parsed by `read`.
pub fn text_list<T>(
    items_max: usize,
    read: impl Fn(&str) -> Result<T, Problem>,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Vec<T>, Problem>> {
    let kind = kind(ValueType::Texts, move |value: InputValue<'_>| {
        let items = value.items();
        let items = items.ok_or_else(|| wrong_type("a list of strings"))?;
        if items.len() > items_max {
            let message = format!("Must have at most {items_max} items.");
            return Err(Problem::new(FaultCode::TooLong, message));
        }
        let item = |item: InputValue<'_>| {
            let text = item.text().ok_or_else(|| wrong_type("a string"))?;
            read(&text)
        };
        items.into_iter().map(item).collect()
    });
    kind.size(0..=items_max)
}

/// Declares an object of strings.
pub fn text_map()
-> FieldKind<impl FnOnce(InputValue<'_>) -> Result<BTreeMap<String, String>, Problem>> {
    kind(ValueType::TextMap, |value: InputValue<'_>| {
        let mut map = BTreeMap::new();
        for (key, value) in pairs(value)? {
            if map.insert(key, value).is_some() {
                return Err(Problem::new(FaultCode::DuplicateField, "Duplicate key."));
            }
        }
        Ok(map)
    })
}

fn pairs(value: InputValue<'_>) -> Result<Vec<(String, String)>, Problem> {
    if let InputValue::Form(text) = value {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        return lines.map(pair).collect();
    }
    let wrong = || wrong_type("an object of strings");
    let members = value.members().ok_or_else(wrong)?;
    let pair = |(key, value): (&str, InputValue<'_>)| {
        let text = value.text().ok_or_else(wrong)?;
        Ok((key.to_owned(), text.into_owned()))
    };
    members.each().into_iter().map(pair).collect()
}

/// Reads a line of `key = value`.
fn pair(line: &str) -> Result<(String, String), Problem> {
    let (key, value) = line.split_once('=').ok_or_else(|| {
        let message = "Each line must be `key = value`.";
        Problem::new(FaultCode::InvalidFormat, message)
    })?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
