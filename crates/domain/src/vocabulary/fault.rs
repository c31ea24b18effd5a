//! Faults in fields, and a collector for them, so that a sender learns of every fault at once.

use std::fmt::Write as _;

/// Machine-readable code for a fault. Never renamed once published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultCode {
    /// A required field is missing.
    Required,
    /// Wrong JSON type, such as a string for a number.
    WrongType,
    /// The field is unknown.
    UnknownField,
    /// The field occurs twice in the object.
    DuplicateField,
    /// More characters, items or bytes than the limit.
    TooLong,
    /// Fewer characters or items than the minimum.
    TooShort,
    /// A number outside its range.
    OutOfRange,
    /// Not in the format that the field requires.
    InvalidFormat,
    /// Not one of the values that the field can have.
    UnknownValue,
    /// NUL or another character that is not allowed in this text.
    InvalidCharacter,
    /// The same value occurs twice in the list.
    Duplicate,
    /// The field is not allowed here.
    NotAllowed,
    /// The value differs from the stored object with the same id.
    Different,
    /// The amount must be greater than zero.
    MustBePositive,
    /// The amount must be less than zero.
    MustBeNegative,
    /// The amount must not be less than zero.
    MustNotBeNegative,
    /// The amount must be zero.
    MustBeZero,
}

crate::keywords! {
    FaultCode {
        Required => "required",
        WrongType => "wrong_type",
        UnknownField => "unknown_field",
        DuplicateField => "duplicate_field",
        TooLong => "too_long",
        TooShort => "too_short",
        OutOfRange => "out_of_range",
        InvalidFormat => "invalid_format",
        UnknownValue => "unknown_value",
        InvalidCharacter => "invalid_character",
        Duplicate => "duplicate",
        NotAllowed => "not_allowed",
        Different => "different",
        MustBePositive => "must_be_positive",
        MustBeNegative => "must_be_negative",
        MustNotBeNegative => "must_not_be_negative",
        MustBeZero => "must_be_zero",
    }
}

/// A fault in a value whose field is not known yet.
///
/// The message says what is expected. It never repeats the rejected value, which may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Machine-readable code.
    pub code: FaultCode,
    /// Message for people.
    pub message: String,
}

impl Problem {
    /// Creates a problem.
    pub fn new(code: FaultCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// A fault in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Path of the field, such as `windows[0].values[2].fineValue`.
    pub field: String,
    /// Machine-readable code.
    pub code: FaultCode,
    /// Message for people.
    pub message: String,
}

/// Maximum number of faults in a response, because a body may have a million wrong fields.
pub const FAULTS_MAX: usize = 100;

/// Collected faults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Creates an empty collection.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a fault; drops it beyond [`FAULTS_MAX`].
    pub fn add(&mut self, field: impl Into<String>, problem: Problem) {
        if !self.is_full() {
            self.0.push(Fault {
                field: field.into(),
                code: problem.code,
                message: problem.message,
            });
        }
    }

    /// Returns a value, or adds its fault and returns `None`.
    pub fn check<T>(&mut self, field: &str, parsed: Result<T, Problem>) -> Option<T> {
        parsed.map_err(|problem| self.add(field, problem)).ok()
    }

    /// Returns whether there are no faults.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether further faults would be dropped.
    pub fn is_full(&self) -> bool {
        self.0.len() >= FAULTS_MAX
    }

    /// Returns the faults in the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }

    /// Returns `Ok` if there are no faults.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for fault in &self.0 {
            let separator = if text.is_empty() { "" } else { "; " };
            write!(text, "{separator}{}: {}", fault.field, fault.message)?;
        }
        formatter.write_str(&text)
    }
}
