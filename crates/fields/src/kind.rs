//! How a value is read and described, in one declaration.
//!
//! `text_as(Name::parse).size(1..=200).about("…")` reads a string with a domain function and
//! describes it.

use super::value::InputValue;
use std::collections::BTreeMap;
use std::num::IntErrorKind;
use std::ops::RangeInclusive;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::number::parse_whole;

/// Declaration of a value: how it is read and described.
pub struct FieldKind<R> {
    pub(super) shape: Shape,
    pub(super) read: R,
}

/// OpenAPI description of a value.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    pub(super) of: Type,
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
pub(super) enum Type {
    #[default]
    Text,
    Integer,
    Number,
    Flag,
    /// A number, or a string with its exact digits.
    Amount,
    Texts,
    TextMap,
    /// An object with declared fields.
    Object,
    /// A list of such objects.
    Objects,
    /// An object with any fields.
    AnyObject,
    /// An object with any fields, each a string or null.
    AnyTexts,
}

impl Shape {
    pub(super) fn of(of: Type) -> Self {
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

    /// Sets the length in characters. Only described, not checked.
    #[must_use]
    pub fn size(mut self, size: RangeInclusive<usize>) -> Self {
        self.shape.min = i64::try_from(*size.start()).ok().filter(|min| *min > 0);
        self.shape.max = i64::try_from(*size.end()).ok();
        self
    }

    /// Sets the minimum. Only described, not checked.
    #[must_use]
    pub fn at_least(mut self, min: i64) -> Self {
        self.shape.min = Some(min);
        self
    }

    /// Sets the range of numbers. Only described; a domain rule checks it.
    #[must_use]
    pub fn within(mut self, range: RangeInclusive<i64>) -> Self {
        (self.shape.min, self.shape.max) = (Some(*range.start()), Some(*range.end()));
        self
    }

    /// Sets the keywords. Only described; a domain rule checks them.
    #[must_use]
    pub fn words(mut self, words: impl IntoIterator<Item = &'static str>) -> Self {
        self.shape.words = words.into_iter().collect();
        self
    }

    /// Sets the pattern of the text. Only described, not checked.
    #[must_use]
    pub fn pattern(mut self, pattern: &'static str) -> Self {
        self.shape.pattern = Some(pattern);
        self
    }

    /// Sets the JSON Schema format of the text. Only described, not checked.
    #[must_use]
    pub fn format(mut self, format: &'static str) -> Self {
        self.shape.format = Some(format);
        self
    }

    /// Treats an empty form field as absent, so that the value is chosen elsewhere.
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

    /// Replaces the message of every fault.
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

fn kind<T, R: FnOnce(InputValue<'_>) -> Result<T, Problem>>(of: Type, read: R) -> FieldKind<R> {
    FieldKind {
        shape: Shape::of(of),
        read,
    }
}

/// Declares an object with fields, for [`super::Fields::section_as`].
pub fn object() -> FieldKind<()> {
    FieldKind {
        shape: Shape::of(Type::Object),
        read: (),
    }
}

/// Declares an object with any fields, for [`super::Fields::section_as`].
pub fn any_object() -> FieldKind<()> {
    FieldKind {
        shape: Shape::of(Type::AnyObject),
        read: (),
    }
}

/// As [`any_object`], with strings or nulls.
pub fn any_text_object() -> FieldKind<()> {
    FieldKind {
        shape: Shape::of(Type::AnyTexts),
        read: (),
    }
}

/// Returns the problem of a value of the wrong type.
pub fn wrong_type(expected: &str) -> Problem {
    Problem::new(FaultCode::WrongType, format!("Must be {expected}."))
}

/// Declares an object with any fields, or a value that is not described.
pub fn value_as<T>(
    read: impl FnOnce(InputValue<'_>) -> Result<T, Problem>,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>> {
    kind(Type::AnyObject, read)
}

/// Declares a string.
pub fn text() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<String, Problem>> {
    text_as(|text| Ok(text.to_owned()))
}

/// Declares a string that is parsed by `read`.
pub fn text_as<T>(
    read: impl FnOnce(&str) -> Result<T, Problem>,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>> {
    kind(Type::Text, move |value: InputValue<'_>| {
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
    kind(Type::Flag, |value: InputValue<'_>| {
        value.flag().ok_or_else(|| wrong_type("true or false"))
    })
}

/// Declares a whole number. Raw JSON text may use any notation and saturates at 64 bits.
pub fn integer() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<i64, Problem>> {
    kind(Type::Integer, |value: InputValue<'_>| {
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
    kind(Type::Number, move |value: InputValue<'_>| {
        read(value.digits().ok_or_else(|| wrong_type("a number"))?)
    })
}

/// Declares a list of objects that are read separately.
pub fn list_as<T>(
    expected: &'static str,
    read: impl FnOnce(Vec<InputValue<'_>>) -> Result<T, Problem>,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>> {
    kind(Type::Objects, move |value: InputValue<'_>| {
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

/// Declares an amount: a number, whose float noise is rounded, or an exact decimal string.
pub fn amount() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<Amount, Problem>> {
    kind(Type::Amount, |value: InputValue<'_>| {
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
    let kind = kind(Type::Texts, move |value: InputValue<'_>| {
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
    kind(Type::TextMap, |value: InputValue<'_>| {
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
