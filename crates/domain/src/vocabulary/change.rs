//! What a PATCH says about one field: nothing, "back to the default", or a new value.

/// Absent, null or a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Change<T> {
    /// The field was not mentioned: unchanged.
    #[default]
    Keep,
    /// The field was `null`: back to its default.
    Reset,
    /// The field was given.
    Set(T),
}

impl<T> Change<T> {
    /// Returns the same change with another value.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Change<U> {
        match self {
            Self::Keep => Change::Keep,
            Self::Reset => Change::Reset,
            Self::Set(value) => Change::Set(of(value)),
        }
    }

    /// Carries the change out on a field that has a default.
    pub fn apply(self, field: &mut T, default: T) {
        match self {
            Self::Keep => {}
            Self::Reset => *field = default,
            Self::Set(value) => *field = value,
        }
    }

    /// Carries the change out on a field whose default is "none".
    pub fn apply_optional(self, field: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Reset => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::absent_keeps(Change::Keep, Some(7))]
    #[case::null_resets(Change::Reset, None)]
    #[case::a_value_replaces(Change::Set(9), Some(9))]
    fn a_patch_of_an_optional_field(#[case] change: Change<i32>, #[case] expected: Option<i32>) {
        let mut field = Some(7);
        change.apply_optional(&mut field);
        assert_eq!(field, expected);
    }

    #[rstest]
    #[case::absent_keeps(Change::Keep, 7)]
    #[case::null_resets(Change::Reset, 1)]
    #[case::a_value_replaces(Change::Set(9), 9)]
    fn a_patch_of_a_field_with_a_default(#[case] change: Change<i32>, #[case] expected: i32) {
        let mut field = 7;
        change.apply(&mut field, 1);
        assert_eq!(field, expected);
    }
}
