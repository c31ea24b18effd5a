//! How often a stored object was changed, and what `If-Match` demands of it.

/// Counts the changes of one object, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(i64);

impl Revision {
    /// Just created.
    pub const FIRST: Self = Self(1);

    /// As stored.
    pub const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// As stored.
    pub const fn number(self) -> i64 {
        self.0
    }

    /// After one more change.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// What the sender of a change believes to be changing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Precondition {
    /// No `If-Match`: change whatever is there.
    #[default]
    None,
    /// `If-Match` named these tags (without their quotes); one of them has to be the present
    /// one. `*` stands for whatever is there.
    AnyOf(Vec<String>),
}

impl Precondition {
    /// Whether an object with this tag may be changed.
    pub fn admits(&self, tag: &str) -> bool {
        match self {
            Self::None => true,
            Self::AnyOf(tags) => tags
                .iter()
                .any(|candidate| candidate == tag || candidate == "*"),
        }
    }
}
