//! Optional fields in a request.

/// A request field as read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FieldInput<T> {
    /// Missing or null.
    #[default]
    Absent,
    /// Present but of the wrong type. The fault is already recorded, so validation does not report
    /// it again.
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
