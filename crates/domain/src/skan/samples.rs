//! Drafts and documents for the tests of this module.

use crate::skan::document::{CoarseValue, Condition, ConversionValue, Document, Window};
use crate::skan::draft::{DraftCondition, DraftValue};
use crate::vocabulary::fault::{FaultCode, Faults};
use crate::vocabulary::field_input::FieldInput;
use crate::vocabulary::money::Amount;

/// Returns the path and code of each fault.
pub(super) fn codes(faults: &Faults) -> Vec<(String, FaultCode)> {
    faults
        .iter()
        .map(|fault| (fault.field.clone(), fault.code))
        .collect()
}

/// Returns a valid condition.
pub(super) fn draft_condition() -> DraftCondition {
    DraftCondition {
        event: FieldInput::Value("purchase".to_owned()),
        min_count: FieldInput::Value(1),
        ..Default::default()
    }
}

/// Returns a valid value for window 0.
pub(super) fn draft_value() -> DraftValue {
    DraftValue {
        name: FieldInput::Value("Paid".to_owned()),
        fine_value: FieldInput::Value(40),
        coarse_value: FieldInput::Value("high".to_owned()),
        lock: FieldInput::Absent,
        conditions: FieldInput::Value(vec![FieldInput::Value(draft_condition())]),
    }
}

/// Returns a condition without bounds.
pub(super) fn on(event: &str) -> Condition {
    Condition {
        event: event.to_owned(),
        min_count: None,
        max_count: None,
        min_revenue: None,
        max_revenue: None,
    }
}

impl Condition {
    /// Sets `minCount`.
    pub(super) fn at_least(self, count: i64) -> Self {
        Self {
            min_count: Some(count),
            ..self
        }
    }

    /// Sets `maxCount`.
    pub(super) fn at_most(self, count: i64) -> Self {
        Self {
            max_count: Some(count),
            ..self
        }
    }

    /// Sets `minRevenue`, in millionths.
    pub(super) fn from(self, micros: i64) -> Self {
        Self {
            min_revenue: Some(Amount::from_micros(micros)),
            ..self
        }
    }

    /// Sets `maxRevenue`, in millionths.
    pub(super) fn below(self, micros: i64) -> Self {
        Self {
            max_revenue: Some(Amount::from_micros(micros)),
            ..self
        }
    }
}

/// Returns a value for window 0 (with a fine value) or another window.
pub(super) fn value(
    name: &str,
    fine_value: Option<u8>,
    conditions: &[Condition],
) -> ConversionValue {
    ConversionValue {
        name: name.to_owned(),
        fine_value,
        coarse_value: CoarseValue::Low,
        lock: false,
        conditions: conditions.to_vec(),
    }
}

/// Returns an enabled window.
pub(super) fn window(index: u8, values: &[ConversionValue]) -> Window {
    Window {
        index,
        enabled: true,
        lock_on: None,
        values: values.to_vec(),
    }
}

/// Returns an enabled document.
pub(super) fn document(windows: &[Window]) -> Document {
    Document {
        enabled: true,
        windows: windows.to_vec(),
        ..Document::disabled()
    }
}
