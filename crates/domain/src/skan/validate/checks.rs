//! Taking fields out of a draft, so that one pass finds every fault.

use crate::skan::field_path::FieldPath;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::field_input::FieldInput;

/// There is no value, and the reason already stands among the faults.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AlreadyReported;

/// A checked value, or nothing more to say about it.
pub(super) type FieldResult<T> = Result<T, AlreadyReported>;

/// Notes a fault.
pub(super) fn report(
    place: FieldPath<'_>,
    problem: Problem,
    faults: &mut Faults,
) -> AlreadyReported {
    faults.add(place.to_string(), problem);
    AlreadyReported
}

/// A field that must be there.
pub(super) fn required<T>(
    given: FieldInput<T>,
    place: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<T> {
    match given {
        FieldInput::Value(value) => Ok(value),
        FieldInput::Invalid => Err(AlreadyReported),
        FieldInput::Absent => {
            let problem = Problem::new(FaultCode::Required, "Must be given.");
            Err(report(place, problem, faults))
        }
    }
}

/// A field that may be missing.
pub(super) fn optional<T>(given: FieldInput<T>) -> FieldResult<Option<T>> {
    match given {
        FieldInput::Value(value) => Ok(Some(value)),
        FieldInput::Invalid => Err(AlreadyReported),
        FieldInput::Absent => Ok(None),
    }
}

/// A field that may be missing, put to a rule when it is there.
pub(super) fn if_present<T, U>(
    given: FieldInput<T>,
    check: impl FnOnce(T) -> FieldResult<U>,
) -> FieldResult<Option<U>> {
    optional(given)?.map(check).transpose()
}

/// A field with a default.
pub(super) fn or_default<T>(given: FieldInput<T>, default: T) -> FieldResult<T> {
    optional(given).map(|value| value.unwrap_or(default))
}

/// A value put to a rule.
pub(super) fn check_field<T>(
    parsed: Result<T, Problem>,
    place: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<T> {
    parsed.map_err(|problem| report(place, problem, faults))
}

/// A list within its length, each item checked. A list that is too long is read to its end all the
/// same, so that the sender hears of the faults in what will remain.
pub(super) fn check_list<T, U>(
    items: Vec<FieldInput<T>>,
    (min, max): (usize, usize),
    place: FieldPath<'_>,
    faults: &mut Faults,
    mut check: impl FnMut(T, FieldPath<'_>, &mut Faults) -> FieldResult<U>,
) -> FieldResult<Vec<U>> {
    let length = check_field(length_within(items.len(), min, max), place, faults);
    let checked_items: Vec<FieldResult<U>> = items
        .into_iter()
        .enumerate()
        .map(|(position, item)| {
            let place = place.item(position);
            required(item, place, faults).and_then(|item| check(item, place, faults))
        })
        .collect();
    // Only now, because collecting into a `Result` would stop at the first fault.
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
        #[case] given: FieldInput<i32>,
        #[case] expected: FieldResult<i32>,
        #[case] reported: usize,
    ) {
        let mut faults = Faults::new();
        assert_eq!(
            required(given, FieldPath::Root.field("index"), &mut faults),
            expected
        );
        assert_eq!(faults.iter().count(), reported);
    }

    #[rstest]
    #[case::a_value_is_taken(FieldInput::Value(7), Ok(7))]
    #[case::a_missing_one_has_its_default(FieldInput::Absent, Ok(1))]
    #[case::a_faulty_one_has_no_default(FieldInput::Invalid, Err(AlreadyReported))]
    fn a_field_with_a_default(#[case] given: FieldInput<i32>, #[case] expected: FieldResult<i32>) {
        assert_eq!(or_default(given, 1), expected);
    }

    #[test]
    fn a_list_is_read_to_its_end_whatever_is_found() {
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
            |item, place, _| {
                seen.push((item, place.to_string()));
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
