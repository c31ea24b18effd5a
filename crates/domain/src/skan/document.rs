//! The document itself, as it is once nothing is wrong with it.

use crate::vocabulary::currency::Currency;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::money::Amount;

/// Apple's postback windows; a document has at most one entry for each.
pub const WINDOWS_MAX: usize = 3;
/// The last of the windows, which count from 0.
pub const WINDOW_INDEX_MAX: u8 = 2;
/// The only window whose postback carries a fine value.
pub const FINE_VALUE_WINDOW: u8 = 0;
/// Values in one window. More than the 64 fine values, because "or" is written as two values.
pub const VALUES_PER_WINDOW_MAX: usize = 128;
/// The largest fine value: Apple gives it six bits.
pub const FINE_VALUE_MAX: u8 = 63;
/// Characters in the name of a value.
pub const VALUE_NAME_CHARS_MAX: usize = 50;
/// A value without conditions would always hold, which nobody writes on purpose.
pub const CONDITIONS_PER_VALUE_MIN: usize = 1;
/// Conditions of one value.
pub const CONDITIONS_PER_VALUE_MAX: usize = 3;
/// Characters in the name of an event in a condition.
pub const EVENT_CHARS_MAX: usize = 100;
/// The event that the SDK counts by itself: once, at first launch, in window 0.
pub const INSTALL_EVENT: &str = "install";

/// The part of a configuration that a PUT replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Whether devices follow it.
    pub enabled: bool,
    /// The currency of every threshold.
    pub currency: Currency,
    /// Whether postbacks signed with Apple's development key are counted.
    pub accept_test_signals: bool,
    /// By index, each at most once. A missing window is a disabled one.
    pub windows: Vec<Window>,
}

impl Document {
    /// What holds for an app that nobody configured.
    pub const fn disabled() -> Self {
        Self {
            enabled: false,
            currency: Currency::USD,
            accept_test_signals: false,
            windows: Vec::new(),
        }
    }
}

/// What is handed to Apple in one of the postback windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Which window: 0, 1 or 2.
    pub index: u8,
    /// A disabled window sets nothing, and takes nothing over from another.
    pub enabled: bool,
    /// What ends the window early, beside a value with `lock`.
    pub lock_on: Option<LockOn>,
    /// In order of priority: the first whose conditions all hold wins.
    pub values: Vec<ConversionValue>,
}

/// What ends a window before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockOn {
    /// Reaching this fine value; in window 0 only.
    FineValue(u8),
    /// Reaching this coarse value.
    CoarseValue(CoarseValue),
    /// This event.
    Event(String),
}

/// One number, and what a device must have done for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionValue {
    /// What people call it; unique in its window.
    pub name: String,
    /// 0–63: always there in window 0, never in the others. Two values may share it.
    pub fine_value: Option<u8>,
    /// What Apple reports instead where too few people installed.
    pub coarse_value: CoarseValue,
    /// Whether reaching the value ends the window.
    pub lock: bool,
    /// All must hold.
    pub conditions: Vec<Condition>,
}

/// Apple's three steps. The order is theirs: low is least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoarseValue {
    /// The least.
    Low,
    /// Between.
    Medium,
    /// The most.
    High,
}

crate::keywords! {
    CoarseValue[3] {
        Low => "low",
        Medium => "medium",
        High => "high",
    }
}

impl CoarseValue {
    /// Reads Apple's word, exactly.
    pub fn read(text: &str) -> Result<Self, Problem> {
        Self::parse(text).ok_or_else(|| {
            Problem::new(FaultCode::UnknownValue, "Must be one of low, medium, high.")
        })
    }
}

/// What the count and the revenue of one event must be. The bounds that are there must all hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// The name of the event, standard or not.
    pub event: String,
    /// At least so many.
    pub min_count: Option<i64>,
    /// At most so many.
    pub max_count: Option<i64>,
    /// The sum over the event is this or more.
    pub min_revenue: Option<Amount>,
    /// The sum over the event is less than this, so that neighbouring ranges share a bound and no
    /// sum.
    pub max_revenue: Option<Amount>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::low("low", Ok(CoarseValue::Low))]
    #[case::medium("medium", Ok(CoarseValue::Medium))]
    #[case::high("high", Ok(CoarseValue::High))]
    #[case::other_case("High", Err(FaultCode::UnknownValue))]
    #[case::none_is_not_a_coarse_value("none", Err(FaultCode::UnknownValue))]
    #[case::empty("", Err(FaultCode::UnknownValue))]
    fn coarse_values(#[case] text: &str, #[case] expected: Result<CoarseValue, FaultCode>) {
        assert_eq!(
            CoarseValue::read(text).map_err(|problem| problem.code),
            expected
        );
    }

    #[test]
    fn a_coarse_value_survives_its_word() {
        for value in CoarseValue::ALL {
            assert_eq!(CoarseValue::parse(value.as_str()), Some(value));
        }
    }

    #[test]
    fn each_window_has_its_index() {
        assert_eq!(usize::from(WINDOW_INDEX_MAX) + 1, WINDOWS_MAX);
    }
}
