//! The document as read from the request: types are checked, rules are not.

use crate::vocabulary::currency::Currency;
use crate::vocabulary::field_input::FieldInput;
use crate::vocabulary::money::Amount;

/// A document not yet validated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    /// `enabled`, false by default.
    pub enabled: FieldInput<bool>,
    /// `currency`, USD by default.
    pub currency: FieldInput<Currency>,
    /// `acceptTestSignals`, false by default.
    pub accept_test_signals: FieldInput<bool>,
    /// `windows`, none by default.
    pub windows: FieldInput<Vec<FieldInput<DraftWindow>>>,
}

/// A window not yet validated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftWindow {
    /// `index`, required.
    pub index: FieldInput<i64>,
    /// `enabled`, true by default.
    pub enabled: FieldInput<bool>,
    /// `lockOn`, optional.
    pub lock_on: FieldInput<DraftLockOn>,
    /// `values`, none by default.
    pub values: FieldInput<Vec<FieldInput<DraftValue>>>,
}

/// A lock not yet validated; exactly one of its fields must be set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftLockOn {
    /// `fineValue`.
    pub fine_value: FieldInput<i64>,
    /// `coarseValue`.
    pub coarse_value: FieldInput<String>,
    /// `event`.
    pub event: FieldInput<String>,
}

/// A value not yet validated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftValue {
    /// `name`, required.
    pub name: FieldInput<String>,
    /// `fineValue`, required or forbidden by the window.
    pub fine_value: FieldInput<i64>,
    /// `coarseValue`, required.
    pub coarse_value: FieldInput<String>,
    /// `lock`, false by default.
    pub lock: FieldInput<bool>,
    /// `conditions`, required.
    pub conditions: FieldInput<Vec<FieldInput<DraftCondition>>>,
}

/// A condition not yet validated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftCondition {
    /// `event`, required.
    pub event: FieldInput<String>,
    /// `minCount`, optional.
    pub min_count: FieldInput<i64>,
    /// `maxCount`, optional.
    pub max_count: FieldInput<i64>,
    /// `minRevenue`, optional.
    pub min_revenue: FieldInput<Amount>,
    /// `maxRevenue`, optional.
    pub max_revenue: FieldInput<Amount>,
}
