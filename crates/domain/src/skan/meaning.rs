//! A document's conversion-value mapping, to distinguish a changed mapping from changed names.
//!
//! A postback contains only a value. Everything that decides which value a device sets is part of
//! the mapping. The mapping does not include names, whether devices use the document, and which
//! postbacks count. A disabled window sets nothing and has no mapping, so it equals a missing
//! window, and editing it does not change the mapping. The order of values is their priority, so it
//! matters. The order of conditions does not matter, because all of them must hold.

use std::collections::BTreeSet;

use crate::skan::document::{CoarseValue, Condition, ConversionValue, Document, LockOn, Window};
use crate::vocabulary::currency::Currency;

/// Conversion-value mapping of a document; equal for two documents whose values mean the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DocumentMeaning<'a> {
    currency: Currency,
    windows: Vec<WindowMeaning<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
struct WindowMeaning<'a> {
    index: u8,
    lock_on: Option<&'a LockOn>,
    values: Vec<ValueMeaning<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
struct ValueMeaning<'a> {
    fine_value: Option<u8>,
    coarse_value: CoarseValue,
    lock: bool,
    conditions: BTreeSet<&'a Condition>,
}

impl<'a> DocumentMeaning<'a> {
    /// Returns the mapping of a document.
    pub(super) fn of(document: &'a Document) -> Self {
        let enabled = document.windows.iter().filter(|window| window.enabled);
        Self {
            currency: document.currency,
            windows: enabled.map(WindowMeaning::of).collect(),
        }
    }
}

impl<'a> WindowMeaning<'a> {
    fn of(window: &'a Window) -> Self {
        Self {
            index: window.index,
            lock_on: window.lock_on.as_ref(),
            values: window.values.iter().map(ValueMeaning::of).collect(),
        }
    }
}

impl<'a> ValueMeaning<'a> {
    // Destructured, so that the code does not compile with a new field until someone decides
    // whether the field is part of the mapping.
    fn of(
        ConversionValue {
            name: _,
            fine_value,
            coarse_value,
            lock,
            conditions,
        }: &'a ConversionValue,
    ) -> Self {
        Self {
            fine_value: *fine_value,
            coarse_value: *coarse_value,
            lock: *lock,
            conditions: conditions.iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::samples::{document, on, value, window};
    use rstest::rstest;

    fn base() -> Document {
        let conditions = [on("purchase").at_least(1), on("login").at_least(1)];
        let values = [
            value("Paid", Some(9), &conditions),
            value("Install", Some(0), &[on("install").at_least(1)]),
        ];
        let second = window(1, &[value("Paid", None, &[on("purchase").at_least(1)])]);
        document(&[
            window(0, &values),
            Window {
                enabled: false,
                ..second
            },
        ])
    }

    fn changed(change: impl FnOnce(&mut Document)) -> Document {
        let mut document = base();
        change(&mut document);
        document
    }

    #[rstest]
    #[case::nothing(base())]
    #[case::a_name(changed(|d| d.windows[0].values[0].name = "Payer".to_owned()))]
    #[case::enabled(changed(|d| d.enabled = false))]
    #[case::accept_test_signals(changed(|d| d.accept_test_signals = true))]
    #[case::the_order_of_conditions(changed(|d| d.windows[0].values[0].conditions.reverse()))]
    #[case::a_duplicate_condition(changed(|d| {
        d.windows[0].values[1].conditions.push(on("install").at_least(1));
    }))]
    #[case::a_disabled_window_changed(changed(|d| d.windows[1].values[0].lock = true))]
    #[case::a_disabled_window_removed(changed(|d| d.windows.truncate(1)))]
    #[case::a_disabled_window_added(changed(|d| {
        d.windows.push(Window { enabled: false, ..window(2, &[]) });
    }))]
    fn these_changes_keep_the_meaning(#[case] document: Document) {
        assert_eq!(DocumentMeaning::of(&document), DocumentMeaning::of(&base()));
    }

    #[rstest]
    #[case::the_currency(changed(|d| d.currency = Currency::parse("EUR").expect("a currency")))]
    #[case::a_fine_value(changed(|d| d.windows[0].values[0].fine_value = Some(8)))]
    #[case::a_coarse_value(changed(|d| d.windows[0].values[0].coarse_value = CoarseValue::High))]
    #[case::a_lock(changed(|d| d.windows[0].values[0].lock = true))]
    #[case::the_lock_of_the_window(changed(|d| d.windows[0].lock_on = Some(LockOn::FineValue(9))))]
    #[case::a_bound(changed(|d| d.windows[0].values[0].conditions[0].min_count = Some(2)))]
    #[case::a_condition_removed(changed(|d| d.windows[0].values[0].conditions.truncate(1)))]
    #[case::the_order_of_values(changed(|d| d.windows[0].values.reverse()))]
    #[case::a_value_removed(changed(|d| d.windows[0].values.truncate(1)))]
    #[case::a_window_enabled(changed(|d| d.windows[1].enabled = true))]
    #[case::a_window_disabled(changed(|d| d.windows[0].enabled = false))]
    #[case::an_empty_window_enabled(changed(|d| d.windows.push(window(2, &[]))))]
    fn these_changes_change_the_meaning(#[case] document: Document) {
        assert_ne!(DocumentMeaning::of(&document), DocumentMeaning::of(&base()));
    }
}
