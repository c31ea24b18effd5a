//! What is wrong with a field, and a collector, because a sender wants to hear of every fault at once.

use std::fmt::Write as _;

/// What is wrong, for programs. Never renamed once published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultCode {
    /// The field must be there.
    Required,
    /// A string where a number belongs, and the like.
    WrongType,
    /// No such field.
    UnknownField,
    /// The field stands in the object twice.
    DuplicateField,
    /// More characters, items or bytes than the limit.
    TooLong,
    /// Fewer characters or items than needed.
    TooShort,
    /// A number outside its range.
    OutOfRange,
    /// Not of the form that the field has.
    InvalidFormat,
    /// None of the values that the field can have.
    UnknownValue,
    /// A NUL or another character that this text cannot hold.
    InvalidCharacter,
    /// The same value stands in the list twice.
    Duplicate,
    /// The field has no place here.
    NotAllowed,
    /// Another value than in the stored object of the same id.
    Different,
    /// An amount that must be more than nothing.
    MustBePositive,
    /// An amount that must be less than nothing.
    MustBeNegative,
    /// An amount that must not be less than nothing.
    MustNotBeNegative,
    /// An amount that must be nothing.
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

/// A fault of a value, not yet knowing in which field it stands.
///
/// The message says what is expected. It never repeats the refused value, which may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// For programs.
    pub code: FaultCode,
    /// For people.
    pub message: String,
}

impl Problem {
    /// A problem with its sentence.
    pub fn new(code: FaultCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// A fault of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The path of the field: `windows[0].values[2].fineValue`.
    pub field: String,
    /// For programs.
    pub code: FaultCode,
    /// For people.
    pub message: String,
}

/// As many faults as an answer lists. A body of a million wrong fields is not answered with a million
/// sentences.
pub const FAULTS_MAX: usize = 100;

/// Faults, collected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// No faults yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Notes a fault; past [`FAULTS_MAX`] it is dropped.
    pub fn add(&mut self, field: impl Into<String>, problem: Problem) {
        if !self.is_full() {
            self.0.push(Fault {
                field: field.into(),
                code: problem.code,
                message: problem.message,
            });
        }
    }

    /// Keeps a value, or notes why there is none.
    pub fn check<T>(&mut self, field: &str, parsed: Result<T, Problem>) -> Option<T> {
        parsed.map_err(|problem| self.add(field, problem)).ok()
    }

    /// True when nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when no further fault would be kept.
    pub fn is_full(&self) -> bool {
        self.0.len() >= FAULTS_MAX
    }

    /// The faults in the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }

    /// `Ok` when nothing was found.
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
