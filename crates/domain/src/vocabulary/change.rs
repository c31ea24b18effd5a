//! What a PATCH does to one field: nothing, reset to the default, or set a value.

/// Change to one field: absent, null or a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Change<T> {
    /// The field was absent: unchanged.
    #[default]
    Keep,
    /// The field was `null`: reset to its default.
    Reset,
    /// The field had a value.
    Set(T),
}

impl<T> Change<T> {
    /// Applies a function to the new value, if there is one.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Change<U> {
        match self {
            Self::Keep => Change::Keep,
            Self::Reset => Change::Reset,
            Self::Set(value) => Change::Set(of(value)),
        }
    }

    /// Returns the new value, if there is one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Keep | Self::Reset => None,
            Self::Set(value) => Some(value),
        }
    }

    /// Applies the change to a field with a default.
    pub fn apply(self, field: &mut T, default: T) {
        match self {
            Self::Keep => {}
            Self::Reset => *field = default,
            Self::Set(value) => *field = value,
        }
    }

    /// Applies the change to a field whose default is `None`.
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
