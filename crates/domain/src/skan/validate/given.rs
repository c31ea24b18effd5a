//! Taking fields out of a draft, so that one pass finds every fault.

use crate::skan::place::Place;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::given::Given;

/// There is no value, and the reason already stands among the faults.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reported;

/// A checked value, or nothing more to say about it.
pub(super) type Checked<T> = Result<T, Reported>;

/// Notes a fault.
pub(super) fn report(place: Place<'_>, problem: Problem, faults: &mut Faults) -> Reported {
    faults.add(place.to_string(), problem);
    Reported
}

/// A field that must be there.
pub(super) fn required<T>(given: Given<T>, place: Place<'_>, faults: &mut Faults) -> Checked<T> {
    match given {
        Given::Value(value) => Ok(value),
        Given::Faulty => Err(Reported),
        Given::Absent => {
            let problem = Problem::new(FaultCode::Required, "Must be given.");
            Err(report(place, problem, faults))
        }
    }
}

/// A field that may be missing.
pub(super) fn optional<T>(given: Given<T>) -> Checked<Option<T>> {
    match given {
        Given::Value(value) => Ok(Some(value)),
        Given::Faulty => Err(Reported),
        Given::Absent => Ok(None),
    }
}

/// A field that may be missing, put to a rule when it is there.
pub(super) fn if_there<T, U>(
    given: Given<T>,
    check: impl FnOnce(T) -> Checked<U>,
) -> Checked<Option<U>> {
    optional(given)?.map(check).transpose()
}

/// A field with a default.
pub(super) fn or_default<T>(given: Given<T>, default: T) -> Checked<T> {
    optional(given).map(|value| value.unwrap_or(default))
}

/// A value put to a rule.
pub(super) fn checked<T>(
    parsed: Result<T, Problem>,
    place: Place<'_>,
    faults: &mut Faults,
) -> Checked<T> {
    parsed.map_err(|problem| report(place, problem, faults))
}

/// A list within its length, each item checked. A list that is too long is read to its end all the
/// same, so that the sender hears of the faults in what will remain.
pub(super) fn list<T, U>(
    items: Vec<Given<T>>,
    (min, max): (usize, usize),
    place: Place<'_>,
    faults: &mut Faults,
    mut check: impl FnMut(T, Place<'_>, &mut Faults) -> Checked<U>,
) -> Checked<Vec<U>> {
    let length = checked(length_within(items.len(), min, max), place, faults);
    let checked_items: Vec<Checked<U>> = items
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
    #[case::a_value_is_taken(Given::Value(7), Ok(7), 0)]
    #[case::a_missing_one_is_reported(Given::Absent, Err(Reported), 1)]
    #[case::a_faulty_one_is_not_reported_again(Given::Faulty, Err(Reported), 0)]
    fn a_required_field(
        #[case] given: Given<i32>,
        #[case] expected: Checked<i32>,
        #[case] reported: usize,
    ) {
        let mut faults = Faults::new();
        assert_eq!(
            required(given, Place::Root.field("index"), &mut faults),
            expected
        );
        assert_eq!(faults.iter().count(), reported);
    }

    #[rstest]
    #[case::a_value_is_taken(Given::Value(7), Ok(7))]
    #[case::a_missing_one_has_its_default(Given::Absent, Ok(1))]
    #[case::a_faulty_one_has_no_default(Given::Faulty, Err(Reported))]
    fn a_field_with_a_default(#[case] given: Given<i32>, #[case] expected: Checked<i32>) {
        assert_eq!(or_default(given, 1), expected);
    }

    #[test]
    fn a_list_is_read_to_its_end_whatever_is_found() {
        let mut faults = Faults::new();
        let items = vec![
            Given::Absent,
            Given::Faulty,
            Given::Value(1),
            Given::Value(2),
        ];
        let mut seen = Vec::new();
        let result = list(
            items,
            (0, 3),
            Place::Root.field("l"),
            &mut faults,
            |item, place, _| {
                seen.push((item, place.to_string()));
                Ok(item)
            },
        );
        assert_eq!(result, Err(Reported));
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
