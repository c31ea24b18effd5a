//! Validates a window's value, including whether a fine value is allowed.

use std::collections::HashSet;

use crate::skan::document::{
    CONDITIONS_PER_VALUE_MAX, CONDITIONS_PER_VALUE_MIN, CoarseValue, ConversionValue,
    FINE_VALUE_MAX, FINE_VALUE_WINDOW, VALUE_NAME_CHARS_MAX,
};
use crate::skan::draft::DraftValue;
use crate::skan::field_path::FieldPath;
use crate::skan::validate::checks::{
    FieldResult, check_field, check_list, if_present, or_default, report, required,
};
use crate::skan::validate::condition::condition;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::field_input::FieldInput;
use crate::vocabulary::text;

/// Validates a value. `window` is `None` if the window's index is invalid; then only the range of
/// the fine value is checked, because it is unknown whether the window allows fine values.
pub(super) fn value(
    draft: DraftValue,
    window: Option<u8>,
    names: &mut HashSet<String>,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<ConversionValue> {
    let name = name(draft.name, names, path.field("name"), faults);
    let fine_value = fine_value_of(draft.fine_value, window, path.field("fineValue"), faults);
    let coarse_value = required(draft.coarse_value, path.field("coarseValue"), faults)
        .and_then(|text| coarse_value(&text, path.field("coarseValue"), faults));
    let lock = or_default(draft.lock, false);
    let path = path.field("conditions");
    let lengths = (CONDITIONS_PER_VALUE_MIN, CONDITIONS_PER_VALUE_MAX);
    let conditions = required(draft.conditions, path, faults)
        .and_then(|drafts| check_list(drafts, lengths, path, faults, condition));
    Ok(ConversionValue {
        name: name?,
        fine_value: fine_value?,
        coarse_value: coarse_value?,
        lock: lock?,
        conditions: conditions?,
    })
}

/// Validates a name. Surrounding white space is dropped, as in every name, so that names that look
/// alike are equal.
fn name(
    input: FieldInput<String>,
    names: &mut HashSet<String>,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<String> {
    let input = required(input, path, faults)?;
    let name = input.trim();
    // The shorter limit for values is checked first, because `Name` would report its own, longer
    // limit.
    let parsed =
        text::check_length(name, 1, VALUE_NAME_CHARS_MAX).and_then(|()| text::Name::parse(name));
    let name = check_field(parsed, path, faults)?.as_str().to_owned();
    if !names.insert(name.clone()) {
        let message = "Duplicate name in this window.";
        return Err(report(
            path,
            Problem::new(FaultCode::Duplicate, message),
            faults,
        ));
    }
    Ok(name)
}

fn fine_value_of(
    input: FieldInput<i64>,
    window: Option<u8>,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<Option<u8>> {
    if window == Some(FINE_VALUE_WINDOW) {
        let number = required(input, path, faults)?;
        return fine_value(number, window, path, faults).map(Some);
    }
    if_present(input, |number| fine_value(number, window, path, faults))
}

/// Validates a fine value, and that its window allows fine values.
pub(super) fn fine_value(
    number: i64,
    window: Option<u8>,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<u8> {
    if window.is_some_and(|window| window != FINE_VALUE_WINDOW) {
        let message = format!("Only allowed in window {FINE_VALUE_WINDOW}.");
        return Err(report(
            path,
            Problem::new(FaultCode::NotAllowed, message),
            faults,
        ));
    }
    let parsed = u8::try_from(number)
        .ok()
        .filter(|value| *value <= FINE_VALUE_MAX);
    parsed.ok_or_else(|| {
        let message = format!("Must be from 0 to {FINE_VALUE_MAX}.");
        report(path, Problem::new(FaultCode::OutOfRange, message), faults)
    })
}

/// Parses a coarse value.
pub(super) fn coarse_value(
    text: &str,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<CoarseValue> {
    check_field(CoarseValue::read(text), path, faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::draft::DraftCondition;
    use crate::skan::samples::{codes, draft_condition, draft_value};
    use FieldInput::{Absent, Invalid, Value as V};
    use rstest::rstest;

    fn found(draft: DraftValue, window: Option<u8>) -> Vec<(String, FaultCode)> {
        let mut faults = Faults::new();
        let mut names = HashSet::from(["Taken".to_owned()]);
        let result = value(
            draft,
            window,
            &mut names,
            FieldPath::Root.field("v"),
            &mut faults,
        );
        let found = codes(&faults);
        assert_eq!(result.is_ok(), found.is_empty());
        found
    }

    fn one(field: &str, code: Option<FaultCode>) -> Vec<(String, FaultCode)> {
        code.map(|code| (format!("v.{field}"), code))
            .into_iter()
            .collect()
    }

    #[rstest]
    #[case::one_character("a".to_owned(), None)]
    #[case::fifty_characters_not_bytes("ä".repeat(50), None)]
    #[case::fifty_and_white_space(format!(" {} ", "a".repeat(50)), None)]
    #[case::other_case("taken".to_owned(), None)]
    #[case::empty(String::new(), Some(FaultCode::TooShort))]
    #[case::white_space(" ".to_owned(), Some(FaultCode::TooShort))]
    #[case::fifty_one("a".repeat(51), Some(FaultCode::TooLong))]
    #[case::nul("a\0b".to_owned(), Some(FaultCode::InvalidCharacter))]
    #[case::two_lines("a\nb".to_owned(), Some(FaultCode::InvalidCharacter))]
    #[case::taken("Taken".to_owned(), Some(FaultCode::Duplicate))]
    #[case::taken_but_for_white_space("Taken ".to_owned(), Some(FaultCode::Duplicate))]
    fn the_name_has_1_to_50_characters_and_is_unique(
        #[case] name: String,
        #[case] expected: Option<FaultCode>,
    ) {
        let draft = DraftValue {
            name: V(name),
            ..draft_value()
        };
        assert_eq!(found(draft, Some(0)), one("name", expected));
    }

    #[rstest]
    #[case::least(Some(0), V(0), None)]
    #[case::most(Some(0), V(63), None)]
    #[case::below(Some(0), V(-1), Some(FaultCode::OutOfRange))]
    #[case::above(Some(0), V(64), Some(FaultCode::OutOfRange))]
    #[case::beyond_a_byte(Some(0), V(256), Some(FaultCode::OutOfRange))]
    #[case::missing_in_window_0(Some(0), Absent, Some(FaultCode::Required))]
    #[case::missing_in_window_1(Some(1), Absent, None)]
    #[case::missing_in_window_2(Some(2), Absent, None)]
    #[case::given_in_window_1(Some(1), V(0), Some(FaultCode::NotAllowed))]
    #[case::given_in_window_2(Some(2), V(64), Some(FaultCode::NotAllowed))]
    #[case::missing_in_an_unknown_window(None, Absent, None)]
    #[case::given_in_an_unknown_window(None, V(63), None)]
    #[case::above_in_an_unknown_window(None, V(64), Some(FaultCode::OutOfRange))]
    fn the_fine_value_is_0_to_63_in_window_0_and_absent_elsewhere(
        #[case] window: Option<u8>,
        #[case] fine_value: FieldInput<i64>,
        #[case] expected: Option<FaultCode>,
    ) {
        let draft = DraftValue {
            fine_value,
            ..draft_value()
        };
        assert_eq!(found(draft, window), one("fineValue", expected));
    }

    #[rstest]
    #[case::missing(Absent, Some(FaultCode::Required))]
    #[case::known(V("medium".to_owned()), None)]
    #[case::unknown(V("highest".to_owned()), Some(FaultCode::UnknownValue))]
    fn the_coarse_value_is_one_of_three(
        #[case] coarse_value: FieldInput<String>,
        #[case] expected: Option<FaultCode>,
    ) {
        let draft = DraftValue {
            coarse_value,
            ..draft_value()
        };
        assert_eq!(found(draft, Some(0)), one("coarseValue", expected));
    }

    #[rstest]
    #[case::none(0, Some(FaultCode::TooShort))]
    #[case::one(1, None)]
    #[case::three(3, None)]
    #[case::four(4, Some(FaultCode::TooLong))]
    fn a_value_has_1_to_3_conditions(#[case] number: usize, #[case] expected: Option<FaultCode>) {
        let conditions = V(vec![V(draft_condition()); number]);
        let draft = DraftValue {
            conditions,
            ..draft_value()
        };
        assert_eq!(found(draft, Some(0)), one("conditions", expected));
    }

    #[test]
    fn conditions_are_required() {
        let draft = DraftValue {
            conditions: Absent,
            ..draft_value()
        };
        assert_eq!(
            found(draft, Some(0)),
            one("conditions", Some(FaultCode::Required))
        );
    }

    #[test]
    fn fields_of_the_wrong_type_are_not_reported_again() {
        let draft = DraftValue {
            name: Invalid,
            fine_value: Invalid,
            coarse_value: Invalid,
            lock: Invalid,
            conditions: V(vec![
                Invalid,
                V(DraftCondition {
                    event: Invalid,
                    ..draft_condition()
                }),
            ]),
        };
        for window in [Some(0), Some(1), None] {
            let mut faults = Faults::new();
            let path = FieldPath::Root.field("v");
            let result = value(
                draft.clone(),
                window,
                &mut HashSet::new(),
                path,
                &mut faults,
            );
            assert_eq!((result.is_err(), codes(&faults)), (true, vec![]));
        }
    }
}
