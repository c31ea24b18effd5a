//! Validates a lock, which ends a window early: exactly one condition.

use crate::skan::document::LockOn;
use crate::skan::draft::DraftLockOn;
use crate::skan::field_path::FieldPath;
use crate::skan::validate::checks::{AlreadyReported, FieldResult, if_present};
use crate::skan::validate::condition::event;
use crate::skan::validate::value::{coarse_value, fine_value};
use crate::vocabulary::fault::{FaultCode, Faults, Problem};

/// Validates a lock. All given fields are checked, although only one is allowed.
pub(super) fn lock_on(
    draft: DraftLockOn,
    window: Option<u8>,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<LockOn> {
    exactly_one(&draft, path, faults);
    let fine = if_present(draft.fine_value, |number| {
        fine_value(number, window, path.field("fineValue"), faults)
    });
    let coarse = if_present(draft.coarse_value, |text| {
        coarse_value(&text, path.field("coarseValue"), faults)
    });
    let event = if_present(draft.event, |name| event(name, path.field("event"), faults));
    match (fine?, coarse?, event?) {
        (Some(value), None, None) => Ok(LockOn::FineValue(value)),
        (None, Some(value), None) => Ok(LockOn::CoarseValue(value)),
        (None, None, Some(name)) => Ok(LockOn::Event(name)),
        _ => Err(AlreadyReported),
    }
}

fn exactly_one(draft: &DraftLockOn, path: FieldPath<'_>, faults: &mut Faults) {
    let present = [
        draft.fine_value.is_present(),
        draft.coarse_value.is_present(),
        draft.event.is_present(),
    ];
    let code = match present.into_iter().filter(|is_present| *is_present).count() {
        0 => FaultCode::Required,
        1 => return,
        _ => FaultCode::NotAllowed,
    };
    let message = "Must have exactly one of fineValue, coarseValue, event.";
    faults.add(path.to_string(), Problem::new(code, message));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::document::CoarseValue;
    use crate::skan::samples::codes;
    use crate::vocabulary::field_input::FieldInput::{self, Absent, Invalid, Value as V};
    use rstest::rstest;

    fn check(
        draft: DraftLockOn,
        window: Option<u8>,
    ) -> (FieldResult<LockOn>, Vec<(String, FaultCode)>) {
        let mut faults = Faults::new();
        let result = lock_on(draft, window, FieldPath::Root.field("lockOn"), &mut faults);
        (result, codes(&faults))
    }

    fn draft(
        fine_value: FieldInput<i64>,
        coarse_value: FieldInput<&str>,
        event: FieldInput<&str>,
    ) -> DraftLockOn {
        let owned = |input: FieldInput<&str>| match input {
            V(text) => V(text.to_owned()),
            Invalid => Invalid,
            Absent => Absent,
        };
        DraftLockOn {
            fine_value,
            coarse_value: owned(coarse_value),
            event: owned(event),
        }
    }

    #[rstest]
    #[case::fine_value(0, draft(V(63), Absent, Absent), LockOn::FineValue(63))]
    #[case::coarse_value(
        1,
        draft(Absent, V("high"), Absent),
        LockOn::CoarseValue(CoarseValue::High)
    )]
    #[case::event(2, draft(Absent, Absent, V("purchase")), LockOn::Event("purchase".to_owned()))]
    fn a_lock_has_one_condition(
        #[case] window: u8,
        #[case] draft: DraftLockOn,
        #[case] expected: LockOn,
    ) {
        assert_eq!(check(draft, Some(window)), (Ok(expected), vec![]));
    }

    #[rstest]
    #[case::none(0, draft(Absent, Absent, Absent), &[("lockOn", FaultCode::Required)])]
    #[case::two(0, draft(V(1), V("high"), Absent), &[("lockOn", FaultCode::NotAllowed)])]
    #[case::two_of_which_one_has_the_wrong_type(
        0, draft(Invalid, V("high"), Absent), &[("lockOn", FaultCode::NotAllowed)])]
    #[case::three_of_which_all_are_wrong(0, draft(V(64), V("most"), V("")), &[
        ("lockOn", FaultCode::NotAllowed),
        ("lockOn.fineValue", FaultCode::OutOfRange),
        ("lockOn.coarseValue", FaultCode::UnknownValue),
        ("lockOn.event", FaultCode::TooShort),
    ])]
    #[case::fine_value_below(
        0, draft(V(-1), Absent, Absent), &[("lockOn.fineValue", FaultCode::OutOfRange)])]
    #[case::fine_value_above(
        0, draft(V(64), Absent, Absent), &[("lockOn.fineValue", FaultCode::OutOfRange)])]
    #[case::fine_value_in_window_1(
        1, draft(V(1), Absent, Absent), &[("lockOn.fineValue", FaultCode::NotAllowed)])]
    #[case::event_too_long(
        2, draft(Absent, Absent, V(&"a".repeat(101))), &[("lockOn.event", FaultCode::TooLong)])]
    #[case::only_the_wrong_type(0, draft(Absent, Absent, Invalid), &[])]
    fn rejects_any_other_lock(
        #[case] window: u8,
        #[case] draft: DraftLockOn,
        #[case] expected: &[(&str, FaultCode)],
    ) {
        let (result, found) = check(draft, Some(window));
        assert_eq!(result, Err(AlreadyReported));
        let found: Vec<_> = found
            .iter()
            .map(|(field, code)| (field.as_str(), *code))
            .collect();
        assert_eq!(found, expected);
    }
}
