//! Validation: from a draft to a document, or to all its faults.
//!
//! One pass in document order. A rule that depends on an invalid field is skipped, so that the
//! sender sees only the causes and no faults that follow from them.

mod checks;
mod condition;
mod lock;
mod value;
mod window;

use std::collections::HashSet;

use crate::skan::document::{Document, WINDOWS_MAX};
use crate::skan::draft::Draft;
use crate::skan::field_path::FieldPath;
use crate::skan::validate::checks::{FieldResult, check_list, or_default};
use crate::skan::validate::window::window;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::fault::Faults;

/// Records every fault in the draft. Returns the document if there are no faults, including those
/// found before.
pub fn validate(draft: Draft, faults: &mut Faults) -> Option<Document> {
    document(draft, faults).ok().filter(|_| faults.is_empty())
}

fn document(draft: Draft, faults: &mut Faults) -> FieldResult<Document> {
    let enabled = or_default(draft.enabled, false);
    let currency = or_default(draft.currency, Currency::USD);
    let accept_test_signals = or_default(draft.accept_test_signals, false);
    let mut taken = HashSet::new();
    let path = FieldPath::Root.field("windows");
    let windows = or_default(draft.windows, Vec::new()).and_then(|drafts| {
        check_list(
            drafts,
            (0, WINDOWS_MAX),
            path,
            faults,
            |draft, path, faults| window(draft, &mut taken, path, faults),
        )
    });
    let mut windows = windows?;
    // Windows are identified by their index; their order does not matter.
    windows.sort_by_key(|window| window.index);
    Ok(Document {
        enabled: enabled?,
        currency: currency?,
        accept_test_signals: accept_test_signals?,
        windows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::draft::{DraftCondition, DraftLockOn, DraftValue, DraftWindow};
    use crate::skan::samples::{codes, draft_condition, draft_value};
    use crate::vocabulary::fault::{FaultCode, Problem};
    use crate::vocabulary::field_input::FieldInput::{Absent, Invalid, Value as V};
    use crate::vocabulary::money::Amount;
    use rstest::rstest;

    fn windows(indexes: &[i64]) -> Draft {
        let windows = indexes
            .iter()
            .map(|index| {
                V(DraftWindow {
                    index: V(*index),
                    ..Default::default()
                })
            })
            .collect();
        Draft {
            windows: V(windows),
            ..Default::default()
        }
    }

    #[test]
    fn an_empty_draft_is_the_disabled_document() {
        let mut faults = Faults::new();
        assert_eq!(
            validate(Draft::default(), &mut faults),
            Some(Document::disabled())
        );
        assert!(faults.is_empty());
    }

    #[test]
    fn given_fields_are_used() {
        let currency = Currency::parse("JPY").expect("a currency");
        let draft = Draft {
            enabled: V(true),
            currency: V(currency),
            accept_test_signals: V(true),
            windows: Absent,
        };
        let expected = Document {
            enabled: true,
            currency,
            accept_test_signals: true,
            windows: vec![],
        };
        assert_eq!(validate(draft, &mut Faults::new()), Some(expected));
    }

    #[test]
    fn windows_are_sorted_by_index() {
        let document = validate(windows(&[2, 0, 1]), &mut Faults::new());
        let indexes: Vec<u8> = document
            .iter()
            .flat_map(|document| &document.windows)
            .map(|w| w.index)
            .collect();
        assert_eq!(indexes, [0, 1, 2]);
    }

    #[rstest]
    #[case::none(&[], &[])]
    #[case::all_three(&[0, 1, 2], &[])]
    #[case::twice(&[1, 1], &[("windows[1].index", FaultCode::Duplicate)])]
    #[case::four(&[0, 1, 2, 0], &[
        ("windows", FaultCode::TooLong),
        ("windows[3].index", FaultCode::Duplicate),
    ])]
    fn each_window_occurs_at_most_once(
        #[case] indexes: &[i64],
        #[case] expected: &[(&str, FaultCode)],
    ) {
        let mut faults = Faults::new();
        let document = validate(windows(indexes), &mut faults);
        assert_eq!(document.is_some(), expected.is_empty());
        let found: Vec<_> = (&faults)
            .into_iter()
            .map(|f| (f.field.as_str(), f.code))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_fault_is_found_in_document_order() {
        let second = DraftValue {
            name: V("First".to_owned()),
            fine_value: V(64),
            coarse_value: V("highest".to_owned()),
            conditions: V(vec![
                V(DraftCondition {
                    event: V(String::new()),
                    ..draft_condition()
                }),
                Absent,
                V(DraftCondition {
                    min_revenue: V(Amount::from_micros(2)),
                    max_revenue: V(Amount::from_micros(1)),
                    ..draft_condition()
                }),
                V(DraftCondition::default()),
            ]),
            ..Default::default()
        };
        let first_window = DraftWindow {
            index: V(0),
            lock_on: V(DraftLockOn::default()),
            values: V(vec![
                V(DraftValue {
                    name: V("First".to_owned()),
                    ..draft_value()
                }),
                V(second),
                V(DraftValue::default()),
            ]),
            ..Default::default()
        };
        let second_window = DraftWindow {
            values: V(vec![V(draft_value())]),
            ..Default::default()
        };
        let third_window = DraftWindow {
            index: V(1),
            lock_on: V(DraftLockOn {
                fine_value: V(3),
                ..Default::default()
            }),
            values: V(vec![V(draft_value())]),
            ..Default::default()
        };
        let windows = vec![V(first_window), V(second_window), V(third_window)];
        let mut faults = Faults::new();
        let draft = Draft {
            windows: V(windows),
            ..Default::default()
        };
        assert_eq!(validate(draft, &mut faults), None);
        let found: Vec<_> = faults
            .iter()
            .map(|f| (f.field.as_str(), f.code.as_str()))
            .collect();
        let expected = [
            ("windows[0].lockOn", "required"),
            ("windows[0].values[1].name", "duplicate"),
            ("windows[0].values[1].fineValue", "out_of_range"),
            ("windows[0].values[1].coarseValue", "unknown_value"),
            ("windows[0].values[1].conditions", "too_long"),
            ("windows[0].values[1].conditions[0].event", "too_short"),
            ("windows[0].values[1].conditions[1]", "required"),
            (
                "windows[0].values[1].conditions[2].maxRevenue",
                "out_of_range",
            ),
            ("windows[0].values[1].conditions[3]", "required"),
            ("windows[0].values[1].conditions[3].event", "required"),
            ("windows[0].values[2].name", "required"),
            ("windows[0].values[2].fineValue", "required"),
            ("windows[0].values[2].coarseValue", "required"),
            ("windows[0].values[2].conditions", "required"),
            ("windows[1].index", "required"),
            ("windows[2].lockOn.fineValue", "not_allowed"),
            ("windows[2].values[0].fineValue", "not_allowed"),
        ];
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::enabled(Draft { enabled: Invalid, ..Default::default() })]
    #[case::currency(Draft { currency: Invalid, ..Default::default() })]
    #[case::accept_test_signals(Draft { accept_test_signals: Invalid, ..Default::default() })]
    #[case::windows(Draft { windows: Invalid, ..Default::default() })]
    #[case::a_window(Draft { windows: V(vec![Invalid]), ..Default::default() })]
    fn fields_of_the_wrong_type_are_not_reported_again(#[case] draft: Draft) {
        let mut faults = Faults::new();
        assert_eq!(validate(draft, &mut faults), None);
        assert!(faults.is_empty());
    }

    #[test]
    fn an_earlier_fault_leaves_no_document() {
        let mut faults = Faults::new();
        faults.add(
            "colour",
            Problem::new(FaultCode::UnknownField, "Unknown field."),
        );
        assert_eq!(validate(windows(&[0]), &mut faults), None);
        assert_eq!(
            codes(&faults),
            [("colour".to_owned(), FaultCode::UnknownField)]
        );
    }
}
