//! Drafts and documents that the tests of this module start from.

use crate::skan::document::{CoarseValue, Condition, Document, Value, Window};
use crate::skan::draft::{DraftCondition, DraftValue};
use crate::vocabulary::fault::{FaultCode, Faults};
use crate::vocabulary::given::Given;
use crate::vocabulary::money::Amount;

/// Where and what.
pub(super) fn codes(faults: &Faults) -> Vec<(String, FaultCode)> {
    faults
        .iter()
        .map(|fault| (fault.field.clone(), fault.code))
        .collect()
}

/// A condition without fault.
pub(super) fn draft_condition() -> DraftCondition {
    DraftCondition {
        event: Given::Value("purchase".to_owned()),
        min_count: Given::Value(1),
        ..Default::default()
    }
}

/// A value without fault, in window 0.
pub(super) fn draft_value() -> DraftValue {
    DraftValue {
        name: Given::Value("Paid".to_owned()),
        fine_value: Given::Value(40),
        coarse_value: Given::Value("high".to_owned()),
        lock: Given::Absent,
        conditions: Given::Value(vec![Given::Value(draft_condition())]),
    }
}

/// A condition without bounds, to be given some.
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
    /// With `minCount`.
    pub(super) fn at_least(self, count: i64) -> Self {
        Self {
            min_count: Some(count),
            ..self
        }
    }

    /// With `maxCount`.
    pub(super) fn at_most(self, count: i64) -> Self {
        Self {
            max_count: Some(count),
            ..self
        }
    }

    /// With `minRevenue`, in millionths.
    pub(super) fn from(self, micros: i64) -> Self {
        Self {
            min_revenue: Some(Amount::from_micros(micros)),
            ..self
        }
    }

    /// With `maxRevenue`, in millionths.
    pub(super) fn below(self, micros: i64) -> Self {
        Self {
            max_revenue: Some(Amount::from_micros(micros)),
            ..self
        }
    }
}

/// A value of window 0 (with a fine value) or another.
pub(super) fn value(name: &str, fine_value: Option<u8>, conditions: &[Condition]) -> Value {
    Value {
        name: name.to_owned(),
        fine_value,
        coarse_value: CoarseValue::Low,
        lock: false,
        conditions: conditions.to_vec(),
    }
}

/// An enabled window.
pub(super) fn window(index: u8, values: &[Value]) -> Window {
    Window {
        index,
        enabled: true,
        lock_on: None,
        values: values.to_vec(),
    }
}

/// An enabled document.
pub(super) fn document(windows: &[Window]) -> Document {
    Document {
        enabled: true,
        windows: windows.to_vec(),
        ..Document::disabled()
    }
}
