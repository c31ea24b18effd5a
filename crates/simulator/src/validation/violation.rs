//! What is wrong, and where.

use super::NodePath;
use std::fmt::Write as _;

/// Violations that are noted per request; the rest would only make the answer longer.
const VIOLATIONS_MAX: usize = 50;
/// Characters of an unknown field's name that are repeated.
const NAME_CHARS_MAX: usize = 64;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    /// A field of an object.
    Field(String),
    /// An entry of a list.
    Index(usize),
}

/// What can be wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViolationKind {
    Missing,
    Unknown,
    /// Of another type than the named one.
    Type(&'static str),
    Empty,
    NotHex,
    NotSha256,
    Money,
    Currency,
    Choice,
    TooOld,
    TooNew,
    /// More than so many.
    TooMany(usize),
    Format(&'static str),
    /// Nobody can be recognised by this.
    Identity,
    /// Does not go with something else.
    Conflict(&'static str),
}

impl ViolationKind {
    /// In plain words, without the refused value.
    pub(crate) fn description(self) -> String {
        match self {
            Self::Missing => "is required".to_owned(),
            Self::Unknown => "is not a known field".to_owned(),
            Self::Type(kind) => format!("must be a {kind}"),
            Self::Empty => "must not be empty".to_owned(),
            Self::NotHex => "must be hexadecimal".to_owned(),
            Self::NotSha256 => "must be a SHA-256 in 64 lower-case hexadecimal digits".to_owned(),
            Self::Money => "must be a decimal number that is not negative".to_owned(),
            Self::Currency => "must be a currency code of ISO 4217".to_owned(),
            Self::Choice => "must be one of the documented values".to_owned(),
            Self::TooOld => "lies too far in the past".to_owned(),
            Self::TooNew => "lies in the future".to_owned(),
            Self::TooMany(most) => format!("must not have more than {most} entries"),
            Self::Format(words) | Self::Conflict(words) => words.to_owned(),
            Self::Identity => "holds nothing that a person can be matched by".to_owned(),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) steps: Vec<PathStep>,
    pub(crate) kind: ViolationKind,
}

impl Violation {
    /// `data[3].custom_data.value`.
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

    /// Which event of the request it is about.
    pub(crate) fn event(&self) -> Option<usize> {
        match self.steps.get(1) {
            Some(PathStep::Index(index)) => Some(*index),
            _ => None,
        }
    }

    /// The path and the words, for people.
    pub(crate) fn sentence(&self) -> String {
        match self.path() {
            path if path.is_empty() => format!("the body {}", self.kind.description()),
            path => format!("{path} {}", self.kind.description()),
        }
    }
}

fn push(path: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    path.write_fmt(what).unwrap_or_default();
}

fn shortened(name: &str) -> &str {
    let end = name.char_indices().nth(NAME_CHARS_MAX);
    end.map_or(name, |(end, _)| &name[..end])
}

/// All that was found wrong.
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

    /// Whether nothing was.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn into_list(self) -> Vec<Violation> {
        self.list
    }
}
