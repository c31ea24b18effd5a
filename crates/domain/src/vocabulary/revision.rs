//! Revisions of stored objects, and `If-Match` preconditions.

/// Number of changes to an object, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(i64);

impl Revision {
    /// Revision of a new object.
    pub const FIRST: Self = Self(1);

    /// Reads the stored form.
    pub const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// Returns the stored form.
    pub const fn number(self) -> i64 {
        self.0
    }

    /// Returns the next revision.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Precondition for a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Precondition {
    /// No `If-Match`: any state may be changed.
    #[default]
    None,
    /// Tags from `If-Match` without quotes; one of them must be the current tag. `*` matches any.
    AnyOf(Vec<String>),
}

impl Precondition {
    /// Returns whether an object with this tag may be changed.
    pub fn admits(&self, tag: &str) -> bool {
        match self {
            Self::None => true,
            Self::AnyOf(tags) => tags
                .iter()
                .any(|candidate| candidate == tag || candidate == "*"),
        }
    }
}
