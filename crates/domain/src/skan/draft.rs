//! The document as the edge read it: of the right types, and otherwise as it came.

use crate::vocabulary::currency::Currency;
use crate::vocabulary::given::Given;
use crate::vocabulary::money::Amount;

/// A document not yet validated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    /// `enabled`, false by default.
    pub enabled: Given<bool>,
    /// `currency`, USD by default.
    pub currency: Given<Currency>,
    /// `acceptTestSignals`, false by default.
    pub accept_test_signals: Given<bool>,
    /// `windows`, none by default.
    pub windows: Given<Vec<Given<DraftWindow>>>,
}

/// A window not yet validated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftWindow {
    /// `index`, required.
    pub index: Given<i64>,
    /// `enabled`, true by default.
    pub enabled: Given<bool>,
    /// `lockOn`, optional.
    pub lock_on: Given<DraftLockOn>,
    /// `values`, none by default.
    pub values: Given<Vec<Given<DraftValue>>>,
}

/// A lock not yet validated; exactly one of its fields belongs there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftLockOn {
    /// `fineValue`.
    pub fine_value: Given<i64>,
    /// `coarseValue`.
    pub coarse_value: Given<String>,
    /// `event`.
    pub event: Given<String>,
}

/// A value not yet validated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftValue {
    /// `name`, required.
    pub name: Given<String>,
    /// `fineValue`, required or forbidden by the window.
    pub fine_value: Given<i64>,
    /// `coarseValue`, required.
    pub coarse_value: Given<String>,
    /// `lock`, false by default.
    pub lock: Given<bool>,
    /// `conditions`, required.
    pub conditions: Given<Vec<Given<DraftCondition>>>,
}

/// A condition not yet validated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftCondition {
    /// `event`, required.
    pub event: Given<String>,
    /// `minCount`, optional.
    pub min_count: Given<i64>,
    /// `maxCount`, optional.
    pub max_count: Given<i64>,
    /// `minRevenue`, optional.
    pub min_revenue: Given<Amount>,
    /// `maxRevenue`, optional.
    pub max_revenue: Given<Amount>,
}
