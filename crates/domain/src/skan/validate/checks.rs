//! Reads the fields of a draft, so that one pass finds every fault.

use crate::skan::field_path::FieldPath;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::field_input::FieldInput;

/// Marks a missing value whose fault is already recorded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AlreadyReported;

/// A validated value, or a fault that is already recorded.
pub(super) type FieldResult<T> = Result<T, AlreadyReported>;

/// Records a fault.
pub(super) fn report(
    path: FieldPath<'_>,
    problem: Problem,
    faults: &mut Faults,
) -> AlreadyReported {
    faults.add(path.to_string(), problem);
    AlreadyReported
}

/// Returns a required field.
pub(super) fn required<T>(
    input: FieldInput<T>,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<T> {
    match input {
        FieldInput::Value(value) => Ok(value),
        FieldInput::Invalid => Err(AlreadyReported),
        FieldInput::Absent => {
            let problem = Problem::new(FaultCode::Required, "Required.");
            Err(report(path, problem, faults))
        }
    }
}

/// Returns an optional field.
pub(super) fn optional<T>(input: FieldInput<T>) -> FieldResult<Option<T>> {
    match input {
        FieldInput::Value(value) => Ok(Some(value)),
        FieldInput::Invalid => Err(AlreadyReported),
        FieldInput::Absent => Ok(None),
    }
}

/// Validates an optional field if it is present.
pub(super) fn if_present<T, U>(
    input: FieldInput<T>,
    check: impl FnOnce(T) -> FieldResult<U>,
) -> FieldResult<Option<U>> {
    optional(input)?.map(check).transpose()
}

/// Returns a field or its default.
pub(super) fn or_default<T>(input: FieldInput<T>, default: T) -> FieldResult<T> {
    optional(input).map(|value| value.unwrap_or(default))
}

/// Records the fault in a parsed value, if any.
pub(super) fn check_field<T>(
    parsed: Result<T, Problem>,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<T> {
    parsed.map_err(|problem| report(path, problem, faults))
}

/// Validates the length of a list and each item. A list that is too long is still read to its end,
/// so that the sender learns of all faults.
pub(super) fn check_list<T, U>(
    items: Vec<FieldInput<T>>,
    (min, max): (usize, usize),
    path: FieldPath<'_>,
    faults: &mut Faults,
    mut check: impl FnMut(T, FieldPath<'_>, &mut Faults) -> FieldResult<U>,
) -> FieldResult<Vec<U>> {
    let length = check_field(length_within(items.len(), min, max), path, faults);
    let checked_items: Vec<FieldResult<U>> = items
        .into_iter()
        .enumerate()
        .map(|(position, item)| {
            let path = path.item(position);
            required(item, path, faults).and_then(|item| check(item, path, faults))
        })
        .collect();
    // Collected last, because collecting into a `Result` would stop at the first fault.
    length.and_then(|()| checked_items.into_iter().collect())
}

fn length_within(length: usize, min: usize, max: usize) -> Result<(), Problem> {
    if length < min {
        let message = format!("Must have at least {min} item.");
        return Err(Problem::new(FaultCode::TooShort, message));
    }
    if length > max {
        return Err(Problem::new(
            FaultCode::TooLong,
            format!("Must have at most {max} items."),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_value_is_taken(FieldInput::Value(7), Ok(7), 0)]
    #[case::a_missing_one_is_reported(FieldInput::Absent, Err(AlreadyReported), 1)]
    #[case::a_faulty_one_is_not_reported_again(FieldInput::Invalid, Err(AlreadyReported), 0)]
    fn a_required_field(
        #[case] input: FieldInput<i32>,
        #[case] expected: FieldResult<i32>,
        #[case] reported: usize,
    ) {
        let mut faults = Faults::new();
        assert_eq!(
            required(input, FieldPath::Root.field("index"), &mut faults),
            expected
        );
        assert_eq!(faults.iter().count(), reported);
    }

    #[rstest]
    #[case::a_value_is_taken(FieldInput::Value(7), Ok(7))]
    #[case::a_missing_one_has_its_default(FieldInput::Absent, Ok(1))]
    #[case::a_faulty_one_has_no_default(FieldInput::Invalid, Err(AlreadyReported))]
    fn a_field_with_a_default(#[case] input: FieldInput<i32>, #[case] expected: FieldResult<i32>) {
        assert_eq!(or_default(input, 1), expected);
    }

    #[test]
    fn a_list_is_read_to_its_end_despite_faults() {
        let mut faults = Faults::new();
        let items = vec![
            FieldInput::Absent,
            FieldInput::Invalid,
            FieldInput::Value(1),
            FieldInput::Value(2),
        ];
        let mut seen = Vec::new();
        let result = check_list(
            items,
            (0, 3),
            FieldPath::Root.field("l"),
            &mut faults,
            |item, path, _| {
                seen.push((item, path.to_string()));
                Ok(item)
            },
        );
        assert_eq!(result, Err(AlreadyReported));
        assert_eq!(seen, [(1, "l[2]".to_owned()), (2, "l[3]".to_owned())]);
        let found: Vec<_> = (&faults)
            .into_iter()
            .map(|f| (f.field.as_str(), f.code))
            .collect();
        assert_eq!(
            found,
            [("l", FaultCode::TooLong), ("l[0]", FaultCode::Required)]
        );
    }
}
