//! Validates a window: its index and contents.

use std::collections::HashSet;

use crate::skan::document::{VALUES_PER_WINDOW_MAX, WINDOW_INDEX_MAX, Window};
use crate::skan::draft::DraftWindow;
use crate::skan::field_path::FieldPath;
use crate::skan::validate::checks::{
    FieldResult, check_list, if_present, or_default, report, required,
};
use crate::skan::validate::lock::lock_on;
use crate::skan::validate::value::value;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::field_input::FieldInput;

/// Validates a window; `taken` holds the indexes of earlier windows.
pub(super) fn window(
    draft: DraftWindow,
    taken: &mut HashSet<u8>,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<Window> {
    let index = index(draft.index, path.field("index"), faults);
    let known = index.as_ref().ok().copied();
    // A second window 1 is still validated by the rules of window 1.
    let index = index.and_then(|index| require_unused(index, taken, path.field("index"), faults));
    let enabled = or_default(draft.enabled, true);
    let lock_on = if_present(draft.lock_on, |draft| {
        lock_on(draft, known, path.field("lockOn"), faults)
    });
    let mut names = HashSet::new();
    let lengths = (0, VALUES_PER_WINDOW_MAX);
    let values = or_default(draft.values, Vec::new()).and_then(|drafts| {
        check_list(
            drafts,
            lengths,
            path.field("values"),
            faults,
            |draft, path, faults| value(draft, known, &mut names, path, faults),
        )
    });
    Ok(Window {
        index: index?,
        enabled: enabled?,
        lock_on: lock_on?,
        values: values?,
    })
}

fn index(input: FieldInput<i64>, path: FieldPath<'_>, faults: &mut Faults) -> FieldResult<u8> {
    let number = required(input, path, faults)?;
    let parsed = u8::try_from(number)
        .ok()
        .filter(|index| *index <= WINDOW_INDEX_MAX);
    parsed.ok_or_else(|| {
        let message = format!("Must be from 0 to {WINDOW_INDEX_MAX}.");
        report(path, Problem::new(FaultCode::OutOfRange, message), faults)
    })
}

fn require_unused(
    index: u8,
    taken: &mut HashSet<u8>,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<u8> {
    if taken.insert(index) {
        return Ok(index);
    }
    let message = "Duplicate window index.";
    Err(report(
        path,
        Problem::new(FaultCode::Duplicate, message),
        faults,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::draft::{DraftLockOn, DraftValue};
    use crate::skan::samples::{codes, draft_value};
    use FieldInput::{Absent, Invalid, Value as V};
    use rstest::rstest;

    fn check(draft: DraftWindow) -> (FieldResult<Window>, Vec<(String, FaultCode)>) {
        let mut faults = Faults::new();
        let mut taken = HashSet::from([2]);
        let result = window(draft, &mut taken, FieldPath::Root.field("w"), &mut faults);
        (result, codes(&faults))
    }

    fn one(field: &str, code: Option<FaultCode>) -> Vec<(String, FaultCode)> {
        code.map(|code| (format!("w.{field}"), code))
            .into_iter()
            .collect()
    }

    #[rstest]
    #[case::first(V(0), None)]
    #[case::last_is_taken(V(2), Some(FaultCode::Duplicate))]
    #[case::below(V(-1), Some(FaultCode::OutOfRange))]
    #[case::above(V(3), Some(FaultCode::OutOfRange))]
    #[case::beyond_a_byte(V(256), Some(FaultCode::OutOfRange))]
    #[case::missing(Absent, Some(FaultCode::Required))]
    fn the_index_is_0_to_2_and_unique(
        #[case] index: FieldInput<i64>,
        #[case] expected: Option<FaultCode>,
    ) {
        let (result, found) = check(DraftWindow {
            index,
            ..Default::default()
        });
        assert_eq!(result.is_ok(), expected.is_none());
        assert_eq!(found, one("index", expected));
    }

    #[test]
    fn a_window_is_enabled_and_empty_by_default() {
        let expected = Window {
            index: 1,
            enabled: true,
            lock_on: None,
            values: vec![],
        };
        let (result, found) = check(DraftWindow {
            index: V(1),
            ..Default::default()
        });
        assert_eq!((result, found), (Ok(expected), vec![]));
    }

    #[rstest]
    #[case::most(128, None)]
    #[case::one_more(129, Some(FaultCode::TooLong))]
    fn a_window_has_at_most_128_values(#[case] number: usize, #[case] expected: Option<FaultCode>) {
        let values = (0..number)
            .map(|position| {
                V(DraftValue {
                    name: V(format!("{position}")),
                    ..draft_value()
                })
            })
            .collect();
        let draft = DraftWindow {
            index: V(0),
            values: V(values),
            ..Default::default()
        };
        assert_eq!(check(draft).1, one("values", expected));
    }

    #[test]
    fn values_keep_their_order() {
        let values = ["c", "a", "b"]
            .map(|name| {
                V(DraftValue {
                    name: V(name.to_owned()),
                    ..draft_value()
                })
            })
            .to_vec();
        let (result, _) = check(DraftWindow {
            index: V(0),
            values: V(values),
            ..Default::default()
        });
        let names =
            result.map(|window| window.values.into_iter().map(|value| value.name).collect());
        assert_eq!(names, Ok(["c", "a", "b"].map(str::to_owned).to_vec()));
    }

    #[test]
    fn names_must_be_unique_but_fine_values_may_be_shared() {
        let draft = DraftWindow {
            index: V(0),
            values: V(vec![V(draft_value()); 2]),
            ..Default::default()
        };
        assert_eq!(
            check(draft).1,
            one("values[1].name", Some(FaultCode::Duplicate))
        );
    }

    #[test]
    fn a_duplicate_window_is_validated_by_its_index() {
        let values = V(vec![V(draft_value())]);
        let (_, found) = check(DraftWindow {
            index: V(2),
            values,
            ..Default::default()
        });
        let expected = [
            ("w.index".to_owned(), FaultCode::Duplicate),
            ("w.values[0].fineValue".to_owned(), FaultCode::NotAllowed),
        ];
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::index(DraftWindow { index: Invalid, ..Default::default() })]
    #[case::enabled(DraftWindow { index: V(1), enabled: Invalid, ..Default::default() })]
    #[case::lock_on(DraftWindow { index: V(1), lock_on: Invalid, ..Default::default() })]
    #[case::values(DraftWindow { index: V(1), values: Invalid, ..Default::default() })]
    #[case::a_value(DraftWindow { index: V(1), values: V(vec![Invalid]), ..Default::default() })]
    #[case::a_fine_value_in_a_window_without_index(DraftWindow {
        index: Invalid,
        lock_on: V(DraftLockOn { fine_value: V(63), ..Default::default() }),
        values: V(vec![V(draft_value())]),
        ..Default::default()
    })]
    fn fields_of_the_wrong_type_are_not_reported_again(#[case] draft: DraftWindow) {
        let (result, found) = check(draft);
        assert_eq!((result.is_err(), found), (true, vec![]));
    }
}
