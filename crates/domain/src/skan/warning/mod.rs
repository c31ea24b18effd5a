//! Warnings about documents that are valid but probably not as intended. Warnings never reject a
//! document.
//!
//! Only enabled windows are checked, because disabled ones are work in progress. A disabled
//! document is checked too, so that warnings appear before it is enabled.

mod implication;

use crate::skan::document::{
    Condition, ConversionValue, Document, FINE_VALUE_WINDOW, INSTALL_EVENT, Window,
};
use crate::skan::field_path::FieldPath;
use crate::skan::warning::implication::implies;
use crate::vocabulary::money::Amount;

/// No value in window 0 holds after the install alone.
const INSTALL_WITHOUT_VALUE: &str = "install_without_value";
/// An earlier value always wins over this value.
const SHADOWED_VALUE: &str = "shadowed_value";
/// The fine value is above that of an earlier, more important value.
const RISING_FINE_VALUE: &str = "rising_fine_value";

/// A warning about a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Path in the stored document, whose windows are sorted by index.
    pub field: String,
    /// Machine-readable code; never renamed.
    pub code: &'static str,
    /// Message for people.
    pub message: String,
}

impl Warning {
    fn new(path: FieldPath<'_>, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            field: path.to_string(),
            code,
            message: message.into(),
        }
    }
}

/// Returns the warnings for a document, in document order.
pub fn warnings(document: &Document) -> Vec<Warning> {
    let windows = FieldPath::Root.field("windows");
    let mut warnings = Vec::new();
    for (position, window) in document.windows.iter().enumerate() {
        if window.enabled {
            let window_path = windows.item(position);
            let values = window_path.field("values");
            warnings.extend(install_without_value(window, values));
            for (position, value) in window.values.iter().enumerate() {
                let (earlier, path) = (&window.values[..position], values.item(position));
                warnings.extend(shadowed(value, earlier, window.index, path));
                warnings.extend(rising(value, earlier, path));
            }
        }
    }
    warnings
}

/// Warns if no value in window 0 holds right after the install: Apple then gets no value for
/// installs without events.
fn install_without_value(window: &Window, path: FieldPath<'_>) -> Option<Warning> {
    let reached = |value: &ConversionValue| value.conditions.iter().all(holds_after_install_alone);
    if window.index != FINE_VALUE_WINDOW || window.values.iter().any(reached) {
        return None;
    }
    let message = "No value holds after the install alone, so an install without events reports \
                   nothing. Add a last value with the condition `install`, `minCount` 1.";
    Some(Warning::new(path, INSTALL_WITHOUT_VALUE, message))
}

/// Returns whether the condition holds when only the install happened: count 1, no revenue.
fn holds_after_install_alone(condition: &Condition) -> bool {
    let count = i64::from(condition.event == INSTALL_EVENT);
    condition.min_count.is_none_or(|min| count >= min)
        && condition.max_count.is_none_or(|max| count <= max)
        && condition.min_revenue.is_none_or(|min| Amount::ZERO >= min)
        && condition.max_revenue.is_none_or(|max| Amount::ZERO < max)
}

/// Warns if an earlier value always wins, because this value's conditions imply the earlier value's
/// conditions.
fn shadowed(
    value: &ConversionValue,
    earlier: &[ConversionValue],
    window: u8,
    path: FieldPath<'_>,
) -> Option<Warning> {
    let by = earlier
        .iter()
        .find(|other| implies(&value.conditions, &other.conditions, window))?;
    let message = format!(
        "Never reached: whenever its conditions hold, those of the earlier value \"{}\" hold, too.",
        by.name
    );
    Some(Warning::new(path, SHADOWED_VALUE, message))
}

/// Warns about a fine value above that of an earlier value. A device never lowers its fine value,
/// so after this value it cannot reach the earlier one. The warning names the lowest earlier value
/// only.
fn rising(
    value: &ConversionValue,
    earlier: &[ConversionValue],
    path: FieldPath<'_>,
) -> Option<Warning> {
    let fine_value = value.fine_value?;
    let lowest = earlier.iter().min_by_key(|other| other.fine_value)?;
    let earlier_value = lowest.fine_value.filter(|lowest| *lowest < fine_value)?;
    let message = format!(
        "Higher than {earlier_value} of the earlier value \"{}\": a device that has reached \
         {fine_value} does not go back to {earlier_value}.",
        lowest.name
    );
    Some(Warning::new(
        path.field("fineValue"),
        RISING_FINE_VALUE,
        message,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::samples::{document, on, value, window};
    use rstest::rstest;

    /// Returns the path and code of each warning.
    fn found(windows: &[Window]) -> Vec<(String, &'static str)> {
        warnings(&document(windows))
            .into_iter()
            .map(|w| (w.field, w.code))
            .collect()
    }

    fn installed() -> Condition {
        on(INSTALL_EVENT).at_least(1)
    }

    fn bought() -> Condition {
        on("purchase").at_least(1)
    }

    #[rstest]
    #[case::the_install(vec![installed()], true)]
    #[case::nothing_bought(vec![on("purchase").at_most(0)], true)]
    #[case::installed_and_nothing_bought(vec![installed(), on("purchase").at_most(0)], true)]
    #[case::no_revenue(vec![on("purchase").from(0).below(1)], true)]
    #[case::a_count_of_zero(vec![on("purchase").at_least(0)], true)]
    #[case::two_installs(vec![on(INSTALL_EVENT).at_least(2)], false)]
    #[case::no_install(vec![on(INSTALL_EVENT).at_most(0)], false)]
    #[case::revenue(vec![on(INSTALL_EVENT).from(1)], false)]
    #[case::revenue_below_zero(vec![on(INSTALL_EVENT).below(0)], false)]
    #[case::an_event(vec![bought()], false)]
    #[case::the_install_and_an_event(vec![installed(), bought()], false)]
    fn window_0_needs_a_value_for_the_install_alone(
        #[case] conditions: Vec<Condition>,
        #[case] reached: bool,
    ) {
        let found = found(&[window(0, &[value("a", Some(0), &conditions)])]);
        let expected = [("windows[0].values".to_owned(), INSTALL_WITHOUT_VALUE)];
        assert_eq!(
            found,
            if reached {
                &expected[..0]
            } else {
                &expected[..]
            }
        );
    }

    #[test]
    fn an_enabled_window_0_without_values_warns() {
        assert_eq!(
            found(&[window(0, &[])]),
            [("windows[0].values".to_owned(), INSTALL_WITHOUT_VALUE)]
        );
    }

    #[rstest]
    #[case::no_window(vec![])]
    #[case::window_1(vec![window(1, &[value("a", None, &[bought()])])])]
    #[case::a_disabled_window_0(vec![Window { enabled: false, ..window(0, &[]) }])]
    fn other_windows_need_no_value_for_the_install(#[case] windows: Vec<Window>) {
        assert_eq!(found(&windows), []);
    }

    #[rstest]
    #[case::same_conditions(bought(), true)]
    #[case::stronger_conditions(bought().from(50), true)]
    #[case::weaker_conditions(on("purchase").at_least(0), false)]
    #[case::other_conditions(on("login").at_least(1), false)]
    fn a_value_is_shadowed_by_an_earlier_one(#[case] later: Condition, #[case] shadowed: bool) {
        let values = [value("a", None, &[bought()]), value("b", None, &[later])];
        let expected = [("windows[0].values[1]".to_owned(), SHADOWED_VALUE)];
        let found = found(&[window(2, &values)]);
        assert_eq!(
            found,
            if shadowed {
                &expected[..]
            } else {
                &expected[..0]
            }
        );
    }

    #[test]
    fn an_install_before_all_others_shadows_them() {
        let values = [
            value("a", Some(5), &[installed()]),
            value("b", Some(5), &[bought()]),
        ];
        assert_eq!(
            found(&[window(0, &values)]),
            [("windows[0].values[1]".to_owned(), SHADOWED_VALUE)]
        );
    }

    #[rstest]
    #[case::falling(&[9, 5, 0], &[])]
    #[case::equal_is_how_or_is_written(&[5, 5, 0], &[])]
    #[case::rising(&[5, 6, 0], &[1])]
    #[case::above_one_that_is_not_its_neighbour(&[3, 9, 4, 0], &[1, 2])]
    #[case::back_to_the_lowest(&[3, 9, 3, 0], &[1])]
    fn a_fine_value_above_an_earlier_one(#[case] fine: &[u8], #[case] expected: &[usize]) {
        let last = fine.len() - 1;
        let event = |position: usize| match position {
            position if position == last => installed(),
            position => on(&format!("event {position}")).at_least(1),
        };
        let values: Vec<_> = fine
            .iter()
            .enumerate()
            .map(|(position, fine)| value("a", Some(*fine), &[event(position)]))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|position| {
                (
                    format!("windows[0].values[{position}].fineValue"),
                    RISING_FINE_VALUE,
                )
            })
            .collect();
        assert_eq!(found(&[window(0, &values)]), expected);
    }

    #[test]
    fn warnings_are_in_document_order_and_name_the_other_value() {
        let values = [
            value("Low", Some(1), &[bought()]),
            value("High", Some(2), &[bought()]),
        ];
        let others = [value("A", None, &[bought()]), value("B", None, &[bought()])];
        let document = document(&[window(0, &values), window(1, &others)]);
        let found = warnings(&document);
        let fields: Vec<_> = found.iter().map(|warning| warning.field.as_str()).collect();
        let expected = [
            "windows[0].values",
            "windows[0].values[1]",
            "windows[0].values[1].fineValue",
            "windows[1].values[1]",
        ];
        assert_eq!(fields, expected);
        assert!(found[1].message.contains("\"Low\""));
        assert!(found[2].message.contains("1 of the earlier value \"Low\""));
    }

    #[test]
    fn a_disabled_window_does_not_warn() {
        let values = [
            value("a", Some(1), &[bought()]),
            value("b", Some(2), &[bought()]),
        ];
        assert_eq!(
            found(&[Window {
                enabled: false,
                ..window(0, &values)
            }]),
            []
        );
    }

    #[test]
    fn a_disabled_document_warns_before_it_is_enabled() {
        let document = Document {
            enabled: false,
            ..document(&[window(0, &[])])
        };
        assert_eq!(warnings(&document).len(), 1);
    }
}
