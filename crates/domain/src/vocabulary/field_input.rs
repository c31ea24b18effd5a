//! Fields that a reader may not have found.

/// A field of a request as a reader found it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FieldInput<T> {
    /// Missing or null.
    #[default]
    Absent,
    /// Present but of the wrong type. The reader has already reported it, so no rule reports it again or misses it.
    Invalid,
    /// Present.
    Value(T),
}

impl<T> FieldInput<T> {
    /// Returns whether the sender wrote anything here, right or wrong.
    pub const fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    /// Returns the value; `None` if the field is missing or faulty.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Invalid => None,
        }
    }
}
