//! Violations and their paths.

use super::NodePath;
use std::fmt::Write as _;

/// Maximum number of violations per request, to limit the size of the response.
const VIOLATIONS_MAX: usize = 50;
/// Maximum length of an unknown field's name in a response.
const NAME_CHARS_MAX: usize = 64;

/// One step in a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    /// A field in an object.
    Field(String),
    /// An entry in a list.
    Index(usize),
}

/// Kind of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViolationKind {
    Missing,
    Unknown,
    /// The value does not have this type.
    Type(&'static str),
    Empty,
    NotHex,
    NotSha256,
    Money,
    Currency,
    Choice,
    TooOld,
    TooNew,
    /// More than this many items.
    TooMany(usize),
    Format(&'static str),
    /// No person can be identified.
    Identity,
    /// Contradicts another field.
    Conflict(&'static str),
}

impl ViolationKind {
    /// Describes the violation without repeating the value.
    pub(crate) fn description(self) -> String {
        match self {
            Self::Missing => "is required".to_owned(),
            Self::Unknown => "is not a known field".to_owned(),
            Self::Type(kind) => format!("must be a {kind}"),
            Self::Empty => "must not be empty".to_owned(),
            Self::NotHex => "must be hexadecimal".to_owned(),
            Self::NotSha256 => "must be a SHA-256 in 64 lower-case hexadecimal digits".to_owned(),
            Self::Money => "must be a non-negative decimal number".to_owned(),
            Self::Currency => "must be an ISO 4217 currency code".to_owned(),
            Self::Choice => "must be one of the documented values".to_owned(),
            Self::TooOld => "is too far in the past".to_owned(),
            Self::TooNew => "is in the future".to_owned(),
            Self::TooMany(most) => format!("must have at most {most} entries"),
            Self::Format(message) | Self::Conflict(message) => message.to_owned(),
            Self::Identity => "contains no identifier that can match a person".to_owned(),
        }
    }
}

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) steps: Vec<PathStep>,
    pub(crate) kind: ViolationKind,
}

impl Violation {
    /// Formats the path as `data[3].custom_data.value`.
    pub(crate) fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                PathStep::Index(index) => push(&mut path, format_args!("[{index}]")),
                PathStep::Field(name) if path.is_empty() => path.push_str(shortened(name)),
                PathStep::Field(name) => push(&mut path, format_args!(".{}", shortened(name))),
            }
        }
        path
    }

    /// Returns the index of the event that the violation is about.
    pub(crate) fn event(&self) -> Option<usize> {
        match self.steps.get(1) {
            Some(PathStep::Index(index)) => Some(*index),
            _ => None,
        }
    }

    /// Returns the path and the description.
    pub(crate) fn sentence(&self) -> String {
        match self.path() {
            path if path.is_empty() => format!("the body {}", self.kind.description()),
            path => format!("{path} {}", self.kind.description()),
        }
    }
}

fn push(path: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    path.write_fmt(what).unwrap_or_default();
}

fn shortened(name: &str) -> &str {
    let end = name.char_indices().nth(NAME_CHARS_MAX);
    end.map_or(name, |(end, _)| &name[..end])
}

/// All violations in a request.
#[derive(Debug, Default)]
pub(crate) struct Violations {
    list: Vec<Violation>,
}

impl Violations {
    pub(super) fn note(&mut self, at: &NodePath<'_>, wrong: ViolationKind) {
        if self.list.len() < VIOLATIONS_MAX {
            let steps = at.steps();
            self.list.push(Violation { steps, kind: wrong });
        }
    }

    /// Returns whether there are no violations.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn into_list(self) -> Vec<Violation> {
        self.list
    }
}
