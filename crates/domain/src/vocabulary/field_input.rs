//! Optional fields of a request.

/// A field of a request as read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FieldInput<T> {
    /// Missing or null.
    #[default]
    Absent,
    /// Present but of the wrong type. The fault is already recorded, so no rule reports it again.
    Invalid,
    /// Present.
    Value(T),
}

impl<T> FieldInput<T> {
    /// Returns whether the field is present, valid or not.
    pub const fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    /// Returns the value; `None` if the field is missing or invalid.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Invalid => None,
        }
    }
}
